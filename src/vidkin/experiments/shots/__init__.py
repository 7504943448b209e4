"""The comparison of shot detectors."""

from vidkin.experiments.shots.study import ShotStudy, run_shot_study

__all__ = ["ShotStudy", "run_shot_study"]
