"""Cuts, shots and curves of a video; detectors, and files made from their results.

The contract of detectors, and functions with the name of their module, are imported here; the rest is imported when it
is first used.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names
from vidkin.shots.contract import (
    TRANSITIONS,
    Curve,
    Cut,
    DetectedCut,
    DetectedCuts,
    KnownCutsDetector,
    PlanesDetector,
    RgbFrame,
    Shot,
    ShotDetection,
    ShotDetector,
    Transition,
)
from vidkin.shots.detect import (
    build_detection,
    detect,
    detect_many,
    detect_shots,
    drop_short_shots,
    merge_short_shots,
)
from vidkin.shots.timecode import timecode, timeline_rate

if TYPE_CHECKING:
    from vidkin.shots.exporter import ExportedShots, ExportSettings, ShotExporter, copy_shots, split_shots
    from vidkin.shots.fitted_rule import FittedRule, fit_rule
    from vidkin.shots.formats import (
        SHOT_FORMATS,
        ShotFormat,
        ShotTable,
        find_shot_format,
        find_shot_formats,
        import_otio,
        match_shot_format,
        shot_format_names,
        write_chapters,
        write_edl,
        write_otio,
        write_shots_csv,
        write_stats_csv,
    )
    from vidkin.shots.images import (
        IMAGE_FORMATS,
        NAME_FIELDS,
        ImageFormat,
        NameTemplate,
        write_contact_sheet,
        write_thumbnails,
    )
    from vidkin.shots.registry import available_detectors, open_detector, register_detector, with_threshold
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "IMAGE_FORMATS",
    "NAME_FIELDS",
    "SHOT_FORMATS",
    "TRANSITIONS",
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "ExportSettings",
    "ExportedShots",
    "FittedRule",
    "ImageFormat",
    "KnownCutsDetector",
    "NameTemplate",
    "PlanesDetector",
    "RgbFrame",
    "Shot",
    "ShotDetection",
    "ShotDetector",
    "ShotExporter",
    "ShotFormat",
    "ShotTable",
    "Transition",
    "available_detectors",
    "build_detection",
    "copy_shots",
    "detect",
    "detect_many",
    "detect_shots",
    "drop_short_shots",
    "find_shot_format",
    "find_shot_formats",
    "fit_rule",
    "import_otio",
    "match_shot_format",
    "merge_short_shots",
    "open_detector",
    "register_detector",
    "shot_format_names",
    "split_shots",
    "timecode",
    "timeline_rate",
    "with_threshold",
    "write_chapters",
    "write_contact_sheet",
    "write_edl",
    "write_otio",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
