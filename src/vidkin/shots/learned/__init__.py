"""Detectors made of trained clip encoders, and their training."""

from vidkin.shots.learned.clips import ShotBatch, ShotClips, annotated_shots
from vidkin.shots.learned.detector import LearnedDetector, ShotModel, head_of, open_learned, video_features
from vidkin.shots.learned.objectives import SHOT_LOSSES, ShotLoss, ShotObjective
from vidkin.shots.learned.recipes import ShotPlan, load_shot_recipe, show_shot_recipe
from vidkin.shots.learned.rules import FoundShots, ShotRules, find_shots, fit_shot_rules
from vidkin.shots.learned.slope import CUT_NUMBERS, Encode, FoundCut, ShotWindows, find_cuts
from vidkin.shots.learned.training import ShotRecipe, ShotTraining, train_on_shots

__all__ = [
    "CUT_NUMBERS",
    "SHOT_LOSSES",
    "Encode",
    "FoundCut",
    "FoundShots",
    "LearnedDetector",
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
    "annotated_shots",
    "find_cuts",
    "find_shots",
    "fit_shot_rules",
    "head_of",
    "load_shot_recipe",
    "open_learned",
    "show_shot_recipe",
    "train_on_shots",
    "video_features",
]
