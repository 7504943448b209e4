"""Detectors made of trained clip encoders, and their training."""

from vidkin.shots.learned.analysis import ShotAnalysis, find_shots
from vidkin.shots.learned.clips import ShotBatch, ShotClips
from vidkin.shots.learned.detector import LearnedDetector, open_learned
from vidkin.shots.learned.encoding import ShotModel, encode_with, fit_to_square, video_features
from vidkin.shots.learned.hard_cuts import CUT_NUMBERS, HardCut, find_cuts
from vidkin.shots.learned.objectives import SHOT_LOSSES, ShotLoss, ShotObjective
from vidkin.shots.learned.recipes import ShotPlan, load_shot_recipe, show_shot_recipe
from vidkin.shots.learned.rules import ShotRules, fit_shot_rules
from vidkin.shots.learned.shot_windows import Encode, ShotWindows
from vidkin.shots.learned.training import ShotRecipe, ShotTraining, train_on_shots

__all__ = [
    "CUT_NUMBERS",
    "SHOT_LOSSES",
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
    "encode_with",
    "find_cuts",
    "find_shots",
    "fit_shot_rules",
    "fit_to_square",
    "load_shot_recipe",
    "open_learned",
    "show_shot_recipe",
    "train_on_shots",
    "video_features",
]
