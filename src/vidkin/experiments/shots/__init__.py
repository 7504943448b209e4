"""The comparison of shot detectors."""

from vidkin.experiments.shots.published import PublishedDetector
from vidkin.experiments.shots.study import ShotStudy, run_shot_study

__all__ = ["PublishedDetector", "ShotStudy", "run_shot_study"]
