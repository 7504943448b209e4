"""Comparison of detections and critical clips with their labels."""

from vidkin.shots.judging.critical_clips import (
    CriticalScores,
    JudgedShot,
    TrueShot,
    judge_shots,
    score_critical,
    score_detected_critical,
)
from vidkin.shots.judging.detections import (
    BoundaryLabels,
    ShotScores,
    cut_boundaries,
    evaluate_cuts,
    read_boundary_labels,
)

__all__ = [
    "BoundaryLabels",
    "CriticalScores",
    "JudgedShot",
    "ShotScores",
    "TrueShot",
    "cut_boundaries",
    "evaluate_cuts",
    "judge_shots",
    "read_boundary_labels",
    "score_critical",
    "score_detected_critical",
]
