"""Labeled collections: readers, splits, excerpts, and samples that are built without a download."""

from vidkin.datasets.collections import available_readers, open_labelled
from vidkin.datasets.excerpts import make_excerpts, make_frame_excerpts, middle_excerpt
from vidkin.datasets.labelled import SPLITS, Kind, LabelledItem, LabelledSet, LabelNames
from vidkin.datasets.made.labelled_samples import (
    LABELLED_PHOTOGRAPHS,
    build_labelled_samples,
    read_photographs,
)
from vidkin.datasets.made.photographs import PHOTOGRAPHS, camera_flight, photograph
from vidkin.datasets.made.sample_film import SAMPLE_SHOTS, write_sample_film
from vidkin.datasets.made.samples import SampleCollection, SampleCopy, build_samples
from vidkin.datasets.readers.events import read_events
from vidkin.datasets.readers.listing import read_manifest
from vidkin.datasets.readers.strokes import Drawing, draw_strokes, parse_strokes
from vidkin.datasets.readers.tree import read_classes, read_tree
from vidkin.datasets.reading import Fit, read_item
from vidkin.datasets.shot_labels.annotations import (
    ShotAnnotation,
    VideoAnnotation,
    read_shot_annotations,
    write_shot_annotations,
)
from vidkin.datasets.shot_labels.annotators import merge_annotators, merge_critical
from vidkin.datasets.shot_labels.soccernet import (
    SOCCERNET_EVENTS,
    SoccerNetHalf,
    find_soccernet_halves,
    read_soccernet,
    read_soccernet_half,
)
from vidkin.datasets.splits import check_split, make_split, read_split, write_split

__all__ = [
    "LABELLED_PHOTOGRAPHS",
    "PHOTOGRAPHS",
    "SAMPLE_SHOTS",
    "SOCCERNET_EVENTS",
    "SPLITS",
    "Drawing",
    "Fit",
    "Kind",
    "LabelNames",
    "LabelledItem",
    "LabelledSet",
    "SampleCollection",
    "SampleCopy",
    "ShotAnnotation",
    "SoccerNetHalf",
    "VideoAnnotation",
    "available_readers",
    "build_labelled_samples",
    "build_samples",
    "camera_flight",
    "check_split",
    "draw_strokes",
    "find_soccernet_halves",
    "make_excerpts",
    "make_frame_excerpts",
    "make_split",
    "merge_annotators",
    "merge_critical",
    "middle_excerpt",
    "open_labelled",
    "parse_strokes",
    "photograph",
    "read_classes",
    "read_events",
    "read_item",
    "read_manifest",
    "read_photographs",
    "read_shot_annotations",
    "read_soccernet",
    "read_soccernet_half",
    "read_split",
    "read_tree",
    "write_sample_film",
    "write_shot_annotations",
    "write_split",
]
