"""Labeled collections: readers, splits, excerpts, and sample collections that are built without a download.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.datasets.collections import available_readers, open_labelled
    from vidkin.datasets.folders import read_classes, read_tree
    from vidkin.datasets.labeled import SPLITS, LabelledItem, LabelledSet, LabelNames
    from vidkin.datasets.labeled_photographs import LABELLED_PHOTOGRAPHS, build_labelled_samples, read_photographs
    from vidkin.datasets.listing import read_events, read_manifest
    from vidkin.datasets.photographs import PHOTOGRAPHS, camera_flight, photograph
    from vidkin.datasets.reading import (
        make_excerpts,
        middle_excerpt,
        read_content,
        read_item,
        register_kind,
    )
    from vidkin.datasets.sample_film import SAMPLE_SHOTS, write_sample_film
    from vidkin.datasets.samples import SampleCollection, SampleQuery, build_samples, write_copy
    from vidkin.datasets.splits import check_split, make_split, read_split, write_split
    from vidkin.media.frames import Fit
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "LABELLED_PHOTOGRAPHS",
    "PHOTOGRAPHS",
    "SAMPLE_SHOTS",
    "SPLITS",
    "Fit",
    "LabelNames",
    "LabelledItem",
    "LabelledSet",
    "SampleCollection",
    "SampleQuery",
    "available_readers",
    "build_labelled_samples",
    "build_samples",
    "camera_flight",
    "check_split",
    "make_excerpts",
    "make_split",
    "middle_excerpt",
    "open_labelled",
    "photograph",
    "read_classes",
    "read_content",
    "read_events",
    "read_item",
    "read_manifest",
    "read_photographs",
    "read_split",
    "read_tree",
    "register_kind",
    "write_copy",
    "write_sample_film",
    "write_split",
]
