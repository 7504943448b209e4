"""Room shots: cuts, shots, critical clips and curves of a video; detectors, and the files made of their results.

Exported here is what every detector shares, without torch. `vidkin.shots.band`, `vidkin.shots.learned` and
`vidkin.shots.judging` export their own names.
"""

from vidkin.shots.contract import DetectedCut, DetectedCuts, PlanesDetector, RgbFrame, ShotDetector
from vidkin.shots.critical import (
    TREND_TESTS,
    TrendTest,
    critical_score,
    fit_trend,
    rise_moment,
    trend_numbers,
)
from vidkin.shots.detect import build_detection, detect, detect_shots
from vidkin.shots.export.edit import write_chapters, write_edl
from vidkin.shots.export.exporter import SHOT_FORMATS, ExportedShots, ShotExporter, ShotFormat
from vidkin.shots.export.files import split_shots, write_thumbnails
from vidkin.shots.export.html import write_contact_sheet
from vidkin.shots.export.lists import detection_as_dict, write_shots_csv, write_stats_csv
from vidkin.shots.export.otio import import_otio, write_otio
from vidkin.shots.export.timecode import timecode, timeline_rate
from vidkin.shots.fitted_rule import FittedRule, fit_rule
from vidkin.shots.known_cuts import KnownCutsDetector
from vidkin.shots.parallel import detect_many
from vidkin.shots.registry import available_detectors, open_detector, register_detector
from vidkin.shots.shot import TRANSITIONS, Curve, Cut, Shot, ShotDetection, Transition
from vidkin.shots.trend import MannKendall, end_rise, mann_kendall, theil_sen

__all__ = [
    "SHOT_FORMATS",
    "TRANSITIONS",
    "TREND_TESTS",
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "ExportedShots",
    "FittedRule",
    "KnownCutsDetector",
    "MannKendall",
    "PlanesDetector",
    "RgbFrame",
    "Shot",
    "ShotDetection",
    "ShotDetector",
    "ShotExporter",
    "ShotFormat",
    "Transition",
    "TrendTest",
    "available_detectors",
    "build_detection",
    "critical_score",
    "detect",
    "detect_many",
    "detect_shots",
    "detection_as_dict",
    "end_rise",
    "fit_rule",
    "fit_trend",
    "import_otio",
    "mann_kendall",
    "open_detector",
    "register_detector",
    "rise_moment",
    "split_shots",
    "theil_sen",
    "timecode",
    "timeline_rate",
    "trend_numbers",
    "write_chapters",
    "write_contact_sheet",
    "write_edl",
    "write_otio",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
