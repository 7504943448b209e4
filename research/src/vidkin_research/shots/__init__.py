"""The comparison of shot detectors."""

from vidkin_research.shots.published import PublishedDetector
from vidkin_research.shots.study import ShotStudy, run_shot_study

__all__ = ["PublishedDetector", "ShotStudy", "run_shot_study"]
