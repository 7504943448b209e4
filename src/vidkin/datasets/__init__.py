"""Room datasets: labelled collections, and a sample collection that needs no download."""

from vidkin.datasets.photographs import PHOTOGRAPHS, camera_flight, photograph
from vidkin.datasets.samples import SampleCollection, SampleCopy, build_samples
from vidkin.datasets.shot_annotations import (
    SOCCERNET_EVENTS,
    ShotAnnotation,
    VideoAnnotation,
    read_shot_annotations,
    read_soccernet,
    write_shot_annotations,
)

__all__ = [
    "PHOTOGRAPHS",
    "SOCCERNET_EVENTS",
    "SampleCollection",
    "SampleCopy",
    "ShotAnnotation",
    "VideoAnnotation",
    "build_samples",
    "camera_flight",
    "photograph",
    "read_shot_annotations",
    "read_soccernet",
    "write_shot_annotations",
]
