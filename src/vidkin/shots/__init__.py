"""Detect cuts and shots in videos, and export the results to files.

The detector interface, and functions named like their modules, are imported here; the rest is imported on first use.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names
from vidkin.media.time_code import timecode, timeline_rate
from vidkin.shots.contract import (
    TRANSITIONS,
    BlackStretch,
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
from vidkin.shots.shot_list import Shots

if TYPE_CHECKING:
    from vidkin.shots.evaluation import DetectorEvaluation, VideoScores, evaluate_detector
    from vidkin.shots.exporter import ExportedShots, ExportSettings, ShotExporter, copy_shots, split_shots
    from vidkin.shots.formats import (
        SHOT_FORMATS,
        ShotFormat,
        ShotsOfVideos,
        ShotTable,
        find_shot_format,
        find_shot_formats,
        import_otio,
        match_shot_format,
        shot_format_names,
        write_chapters,
        write_edl,
        write_fcpxml,
        write_otio,
        write_scene_cuts,
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
    from vidkin.shots.labels import (
        LabelTable,
        ShotAnnotation,
        VideoAnnotation,
        annotate_shots,
        check_shot,
        is_shot_labels,
        read_shot_annotations,
        write_shot_annotations,
    )
    from vidkin.shots.registry import available_detectors, open_detector, register_detector, with_threshold
    from vidkin.shots.stream import ShotStream
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "IMAGE_FORMATS",
    "NAME_FIELDS",
    "SHOT_FORMATS",
    "TRANSITIONS",
    "BlackStretch",
    "Curve",
    "Cut",
    "DetectedCut",
    "DetectedCuts",
    "DetectorEvaluation",
    "ExportSettings",
    "ExportedShots",
    "ImageFormat",
    "KnownCutsDetector",
    "LabelTable",
    "NameTemplate",
    "PlanesDetector",
    "RgbFrame",
    "Shot",
    "ShotAnnotation",
    "ShotDetection",
    "ShotDetector",
    "ShotExporter",
    "ShotFormat",
    "ShotStream",
    "ShotTable",
    "Shots",
    "ShotsOfVideos",
    "Transition",
    "VideoAnnotation",
    "VideoScores",
    "annotate_shots",
    "available_detectors",
    "build_detection",
    "check_shot",
    "copy_shots",
    "detect",
    "detect_many",
    "detect_shots",
    "drop_short_shots",
    "evaluate_detector",
    "find_shot_format",
    "find_shot_formats",
    "import_otio",
    "is_shot_labels",
    "match_shot_format",
    "merge_short_shots",
    "open_detector",
    "read_shot_annotations",
    "register_detector",
    "shot_format_names",
    "split_shots",
    "timecode",
    "timeline_rate",
    "with_threshold",
    "write_chapters",
    "write_contact_sheet",
    "write_edl",
    "write_fcpxml",
    "write_otio",
    "write_scene_cuts",
    "write_shot_annotations",
    "write_shots_csv",
    "write_stats_csv",
    "write_thumbnails",
]
