"""Labeled collections: readers, splits, excerpts, and collections that are built without a download."""

from vidkin.datasets.collections import available_readers, open_labelled
from vidkin.datasets.excerpts import make_excerpts, make_frame_excerpts, middle_excerpt
from vidkin.datasets.labelled import SPLITS, Kind, LabelledItem, LabelledSet, LabelNames
from vidkin.datasets.made.edited_videos import COMPOSED_LABELS, build_composed
from vidkin.datasets.made.footage import Clip, Footage, read_footage
from vidkin.datasets.made.highlights import ACTIVITIES, HIGHLIGHT_PLACES, Activity, build_highlights
from vidkin.datasets.made.labelled_samples import (
    LABELLED_PHOTOGRAPHS,
    build_labelled_samples,
    read_photographs,
)
from vidkin.datasets.made.photographs import PHOTOGRAPHS, camera_flight, photograph
from vidkin.datasets.made.sample_film import SAMPLE_SHOTS, write_sample_film
from vidkin.datasets.made.samples import SampleCollection, SampleCopy, build_samples
from vidkin.datasets.made.sequences import Composition, compose
from vidkin.datasets.readers.aerial import read_aerial
from vidkin.datasets.readers.events import read_events
from vidkin.datasets.readers.fruit import read_fruit
from vidkin.datasets.readers.head_pose import NCKU, POINTING_04, read_head_pose
from vidkin.datasets.readers.images.aircraft import read_aircraft
from vidkin.datasets.readers.images.birds import read_nabirds
from vidkin.datasets.readers.images.cars import read_cars
from vidkin.datasets.readers.images.dogs import read_dogs
from vidkin.datasets.readers.images.flowers import read_flowers102
from vidkin.datasets.readers.images.grocery import read_grocery
from vidkin.datasets.readers.images.omniglot import read_omniglot
from vidkin.datasets.readers.images.pet import read_pet
from vidkin.datasets.readers.images.zappos import read_zappos
from vidkin.datasets.readers.listing import read_manifest
from vidkin.datasets.readers.strokes import Drawing, draw_strokes, parse_strokes
from vidkin.datasets.readers.tree import read_classes, read_tree
from vidkin.datasets.readers.vb100 import read_vb100
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
    "ACTIVITIES",
    "COMPOSED_LABELS",
    "HIGHLIGHT_PLACES",
    "LABELLED_PHOTOGRAPHS",
    "NCKU",
    "PHOTOGRAPHS",
    "POINTING_04",
    "SAMPLE_SHOTS",
    "SOCCERNET_EVENTS",
    "SPLITS",
    "Activity",
    "Clip",
    "Composition",
    "Drawing",
    "Fit",
    "Footage",
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
    "build_composed",
    "build_highlights",
    "build_labelled_samples",
    "build_samples",
    "camera_flight",
    "check_split",
    "compose",
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
    "read_aerial",
    "read_aircraft",
    "read_cars",
    "read_classes",
    "read_dogs",
    "read_events",
    "read_flowers102",
    "read_footage",
    "read_fruit",
    "read_grocery",
    "read_head_pose",
    "read_item",
    "read_manifest",
    "read_nabirds",
    "read_omniglot",
    "read_pet",
    "read_photographs",
    "read_shot_annotations",
    "read_soccernet",
    "read_soccernet_half",
    "read_split",
    "read_tree",
    "read_vb100",
    "read_zappos",
    "write_sample_film",
    "write_shot_annotations",
    "write_split",
]
