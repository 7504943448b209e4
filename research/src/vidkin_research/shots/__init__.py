"""The comparison of shot detectors."""

from vidkin_research.shots.composed import summarize_families
from vidkin_research.shots.published import PublishedDetector
from vidkin_research.shots.study import FAMILIES, ShotStudy, run_shot_study

__all__ = ["FAMILIES", "PublishedDetector", "ShotStudy", "run_shot_study", "summarize_families"]
