"""The comparison of retrieval losses on labeled collections: sets, methods, runs, tables."""

from vidkin.experiments.retrieval.methods import METHODS, Method, method_named
from vidkin.experiments.retrieval.page import as_page, write_report
from vidkin.experiments.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin.experiments.retrieval.sets import COMPARISON_SETS, ComparisonSet, comparison_set, open_set
from vidkin.experiments.retrieval.study import read_runs, run_comparison
from vidkin.experiments.retrieval.summary import Conclusion, Row, Summary, summarize
from vidkin.experiments.retrieval.training import RunSchedule

__all__ = [
    "COMPARISON_SETS",
    "METHODS",
    "ComparisonPlan",
    "ComparisonRun",
    "ComparisonSet",
    "Conclusion",
    "Method",
    "Row",
    "RunSchedule",
    "Summary",
    "as_page",
    "comparison_set",
    "method_named",
    "open_set",
    "read_runs",
    "run_comparison",
    "summarize",
    "write_report",
]
