"""Comparison of retrieval losses on labeled collections: sets, methods, runs, tables."""

from vidkin_research.retrieval.methods import METHODS, Method, method_named
from vidkin_research.retrieval.page import as_page, write_report
from vidkin_research.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin_research.retrieval.sets import COMPARISON_SETS, ComparisonSet, comparison_set, open_set
from vidkin_research.retrieval.study import read_runs, run_comparison
from vidkin_research.retrieval.summary import Conclusion, Row, Summary, summarize
from vidkin_research.retrieval.training import RunSchedule, VolumeSettings

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
    "VolumeSettings",
    "as_page",
    "comparison_set",
    "method_named",
    "open_set",
    "read_runs",
    "run_comparison",
    "summarize",
    "write_report",
]
