"""Cuts, shots, critical clips and curves of a video; detectors, and files made from their results.

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
    from vidkin.shots.critical import (
        TREND_TESTS,
        FittedRule,
        MannKendall,
        TrendTest,
        critical_score,
        end_rise,
        fit_rule,
        fit_trend,
        mann_kendall,
        rise_moment,
        theil_sen,
        trend_numbers,
    )
    from vidkin.shots.exporter import ExportedShots, ExportSettings, ShotExporter, copy_shots, split_shots
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
    "TREND_TESTS",
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "ExportSettings",
    "ExportedShots",
    "FittedRule",
    "ImageFormat",
    "KnownCutsDetector",
    "MannKendall",
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
    "TrendTest",
    "available_detectors",
    "build_detection",
    "copy_shots",
    "critical_score",
    "detect",
    "detect_many",
    "detect_shots",
    "drop_short_shots",
    "end_rise",
    "find_shot_format",
    "find_shot_formats",
    "fit_rule",
    "fit_trend",
    "import_otio",
    "mann_kendall",
    "match_shot_format",
    "merge_short_shots",
    "open_detector",
    "register_detector",
    "rise_moment",
    "shot_format_names",
    "split_shots",
    "theil_sen",
    "timecode",
    "timeline_rate",
    "trend_numbers",
    "with_threshold",
    "write_chapters",
    "write_contact_sheet",
    "write_edl",
    "write_otio",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
