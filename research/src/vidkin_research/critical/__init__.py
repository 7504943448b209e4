"""Comparison of losses on critical clips."""

from vidkin_research.critical.study import CriticalStudy, run_critical_study

__all__ = ["CriticalStudy", "run_critical_study"]
