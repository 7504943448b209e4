"""Room shots: cuts, shots, critical clips, curves; baselines; lists and files made of them."""

from vidkin.shots.detect import detect, detect_shots
from vidkin.shots.detector import DetectedCut, DetectedCuts, RgbFrame, ShotDetector
from vidkin.shots.export_edit import write_chapters, write_edl
from vidkin.shots.export_files import split_shots, write_thumbnails
from vidkin.shots.export_lists import detection_as_dict, write_shots_csv, write_stats_csv
from vidkin.shots.export_otio import import_otio, write_otio
from vidkin.shots.registry import available_detectors, open_detector, register_detector
from vidkin.shots.shot import Curve, Cut, Shot, ShotDetection
from vidkin.shots.timecode import timecode, timeline_rate

__all__ = [
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "RgbFrame",
    "Shot",
    "ShotDetection",
    "ShotDetector",
    "available_detectors",
    "detect",
    "detect_shots",
    "detection_as_dict",
    "import_otio",
    "open_detector",
    "register_detector",
    "split_shots",
    "timecode",
    "timeline_rate",
    "write_chapters",
    "write_edl",
    "write_otio",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
