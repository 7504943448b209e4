"""Room shots: cuts, shots, critical clips, curves; baselines; lists and files made of them."""

from vidkin.shots.band.detector import BandDetector
from vidkin.shots.band.features import band_features
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds
from vidkin.shots.band.training import LabelledSequence, fit_thresholds, sequence_scores, train_transitions
from vidkin.shots.contract import DetectedCut, DetectedCuts, PlanesDetector, RgbFrame, ShotDetector
from vidkin.shots.critical import (
    TREND_TESTS,
    TrendTest,
    critical_score,
    fit_trend,
    rise_moment,
    trend_numbers,
)
from vidkin.shots.detect import detect, detect_shots
from vidkin.shots.export.edit import write_chapters, write_edl
from vidkin.shots.export.files import split_shots, write_thumbnails
from vidkin.shots.export.lists import detection_as_dict, write_shots_csv, write_stats_csv
from vidkin.shots.export.otio import import_otio, write_otio
from vidkin.shots.export.timecode import timecode, timeline_rate
from vidkin.shots.fitted_rule import FittedRule, fit_rule
from vidkin.shots.judging.critical_clips import (
    CriticalScores,
    JudgedShot,
    TrueShot,
    judge_shots,
    score_critical,
    score_found_critical,
)
from vidkin.shots.judging.detections import (
    BoundaryLabels,
    ShotScores,
    boundaries_of_cuts,
    evaluate_cuts,
    read_boundary_labels,
)
from vidkin.shots.learned.clip_objectives import SHOT_LOSSES, ShotLoss, ShotObjective
from vidkin.shots.learned.clips import ShotBatch, ShotClips, annotated_shots
from vidkin.shots.learned.detector import LearnedDetector, ShotModel, head_of, open_learned, video_features
from vidkin.shots.learned.fit import ShotRecipe, ShotTraining, train_on_shots
from vidkin.shots.learned.rules import FoundShots, ShotRules, find_shots, fit_shot_rules
from vidkin.shots.learned.slope import CUT_NUMBERS, Encode, FoundCut, ShotWindows, find_cuts
from vidkin.shots.registry import available_detectors, open_detector, register_detector
from vidkin.shots.shot import Curve, Cut, Shot, ShotDetection
from vidkin.shots.trend import MannKendall, end_rise, mann_kendall, theil_sen

__all__ = [
    "CUT_NUMBERS",
    "SHOT_LOSSES",
    "TREND_TESTS",
    "BandDetector",
    "BoundaryLabels",
    "CriticalScores",
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "Encode",
    "FittedRule",
    "FoundCut",
    "FoundShots",
    "JudgedShot",
    "LabelledSequence",
    "LearnedDetector",
    "MannKendall",
    "PlanesDetector",
    "RgbFrame",
    "Shot",
    "ShotBatch",
    "ShotClips",
    "ShotDetection",
    "ShotDetector",
    "ShotLoss",
    "ShotModel",
    "ShotObjective",
    "ShotRecipe",
    "ShotRules",
    "ShotScores",
    "ShotTraining",
    "ShotWindows",
    "TransitionNetwork",
    "TransitionThresholds",
    "TrendTest",
    "TrueShot",
    "annotated_shots",
    "available_detectors",
    "band_features",
    "boundaries_of_cuts",
    "critical_score",
    "detect",
    "detect_shots",
    "detection_as_dict",
    "end_rise",
    "evaluate_cuts",
    "find_cuts",
    "find_shots",
    "fit_rule",
    "fit_shot_rules",
    "fit_thresholds",
    "fit_trend",
    "head_of",
    "import_otio",
    "judge_shots",
    "mann_kendall",
    "open_detector",
    "open_learned",
    "read_boundary_labels",
    "register_detector",
    "rise_moment",
    "score_critical",
    "score_found_critical",
    "sequence_scores",
    "split_shots",
    "theil_sen",
    "timecode",
    "timeline_rate",
    "train_on_shots",
    "train_transitions",
    "trend_numbers",
    "video_features",
    "write_chapters",
    "write_edl",
    "write_otio",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
