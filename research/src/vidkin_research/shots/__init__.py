"""Comparison of shot detectors."""

from vidkin_research.shots.published import PublishedDetector
from vidkin_research.shots.study import FAMILIES, ShotStudy, run_shot_study

__all__ = ["FAMILIES", "PublishedDetector", "ShotStudy", "run_shot_study"]
