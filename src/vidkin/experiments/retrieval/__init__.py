"""The comparison of retrieval losses on labelled collections: sets, methods, runs, tables."""

from vidkin.experiments.retrieval.methods import METHODS, Method, method_named
from vidkin.experiments.retrieval.page import Row, Summary, Verdict, as_page, summarise
from vidkin.experiments.retrieval.runs import Run, Schedule
from vidkin.experiments.retrieval.sets import COMPARISON_SETS, ComparisonSet, comparison_set, open_set
from vidkin.experiments.retrieval.study import ComparisonPlan, read_runs, run_comparison

__all__ = [
    "COMPARISON_SETS",
    "METHODS",
    "ComparisonPlan",
    "ComparisonSet",
    "Method",
    "Row",
    "Run",
    "Schedule",
    "Summary",
    "Verdict",
    "as_page",
    "comparison_set",
    "method_named",
    "open_set",
    "read_runs",
    "run_comparison",
    "summarise",
]
