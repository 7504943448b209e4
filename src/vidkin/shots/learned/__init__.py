"""Detectors based on trained clip encoders, and their training."""

from vidkin.shots.learned.analysis import ShotAnalysis, find_shots
from vidkin.shots.learned.detector import LearnedDetector, open_learned
from vidkin.shots.learned.encoding import ShotModel, VideoFeatures, encode_with, video_features
from vidkin.shots.learned.hard_cuts import CUT_NUMBERS, HardCut, find_cuts
from vidkin.shots.learned.rules import CUT_RULES, CutRule, ShotRules, fit_shot_rules
from vidkin.shots.learned.shot_windows import Encode, ShotWindows
from vidkin.shots.learned.slope_cuts import find_slope_cuts
from vidkin.shots.learned.training.clips import ShotBatch, ShotClips
from vidkin.shots.learned.training.head import ShotRecipe, ShotTraining, train_on_shots
from vidkin.shots.learned.training.objectives import SHOT_LOSSES, ShotLoss, ShotObjective
from vidkin.shots.learned.training.recipes import ShotPlan, parse_shot_recipe
from vidkin.shots.learned.video_frames import VideoFrames, read_video_frames

__all__ = [
    "CUT_NUMBERS",
    "CUT_RULES",
    "SHOT_LOSSES",
    "CutRule",
    "Encode",
    "HardCut",
    "LearnedDetector",
    "ShotAnalysis",
    "ShotBatch",
    "ShotClips",
    "ShotLoss",
    "ShotModel",
    "ShotObjective",
    "ShotPlan",
    "ShotRecipe",
    "ShotRules",
    "ShotTraining",
    "ShotWindows",
    "VideoFeatures",
    "VideoFrames",
    "encode_with",
    "find_cuts",
    "find_shots",
    "find_slope_cuts",
    "fit_shot_rules",
    "open_learned",
    "parse_shot_recipe",
    "read_video_frames",
    "train_on_shots",
    "video_features",
]
