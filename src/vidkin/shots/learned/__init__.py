"""Detectors based on trained clip encoders."""

from vidkin.shots.learned.analysis import ShotAnalysis, find_shots
from vidkin.shots.learned.detector import LearnedDetector, open_learned
from vidkin.shots.learned.encoding import ShotModel, VideoFeatures, encode_with, video_features
from vidkin.shots.learned.hard_cuts import CUT_NUMBERS, HardCut, find_cuts
from vidkin.shots.learned.rules import CUT_RULES, CutRule, ShotRules, fit_shot_rules
from vidkin.shots.learned.shot_windows import Encode, ShotWindows
from vidkin.shots.learned.slope_cuts import find_slope_cuts

__all__ = [
    "CUT_NUMBERS",
    "CUT_RULES",
    "CutRule",
    "Encode",
    "HardCut",
    "LearnedDetector",
    "ShotAnalysis",
    "ShotModel",
    "ShotRules",
    "ShotWindows",
    "VideoFeatures",
    "encode_with",
    "find_cuts",
    "find_shots",
    "find_slope_cuts",
    "fit_shot_rules",
    "open_learned",
    "video_features",
]
