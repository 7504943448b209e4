"""Open the image sets of the comparison from folders with their published layout."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vidkin._base.values import check_positive
from vidkin.datasets import LabelledItem, LabelledSet, make_split, open_labelled
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin_research.frame_excerpts import make_frame_excerpts
from vidkin_research.images.contract import BACKBONE, ImagePart, ImageTask
from vidkin_research.readers.collections import PUBLIC_COLLECTIONS

__all__ = ["IMAGE_SETS", "ImageCollection", "open_task"]

# Number of stills per turntable video or sky clip, and number of frames in the excerpt around each still.
_STILLS = 4
_STILL_FRAMES = 5


@dataclass(frozen=True, kw_only=True)
class ImageCollection:
    """An image collection of the comparison.

    Attributes:
        name: Name on the command line.
        folder: Path of the collection relative to the data folder.
        reader: Reader of :func:`vidkin.datasets.open_labelled`.
        options: Options of the reader.
        fit: How images are fitted to the square.
        about: Classes and split, in a few words.
    """

    name: str
    folder: str
    reader: str
    options: dict[str, Any] = field(default_factory=dict)
    fit: str = "crop"
    about: str


IMAGE_SETS: tuple[ImageCollection, ...] = (
    ImageCollection(
        name="flowers",
        folder="photos/flowers",
        reader="classes",
        about="photographs of 5 kinds of flowers, published split",
    ),
    ImageCollection(
        name="grocery",
        folder="labelled/grocery",
        reader="grocery",
        about="photographs of 81 products, published split",
    ),
    ImageCollection(
        name="fruit",
        folder="labelled/fruit",
        reader="fruit",
        about="stills from turntable videos of 67 varieties, tested on another rotation axis",
    ),
    ImageCollection(
        name="omniglot",
        folder="labelled/omniglot",
        reader="omniglot",
        fit="letterbox",
        about="drawings of 242 characters, drawers 1-12 for training and 16-20 for testing",
    ),
    ImageCollection(
        name="aerial",
        folder="labelled/aerial",
        reader="aerial",
        about="stills from clips of four kinds of flying objects, two sensors, split by recording",
    ),
    *(
        ImageCollection(name=public.name, folder=public.name, reader=public.name, about=public.about)
        for public in PUBLIC_COLLECTIONS
        if not public.video
    ),
    ImageCollection(
        name="pictures", folder="", reader="classes", about="your own images, class/file or split/class/file"
    ),
)


def open_task(
    chosen: ImageCollection,
    data: str | os.PathLike[str],
    *,
    size: int = 112,
    per_class: int = 0,
    long_tail: float = 1.0,
    weights: Path | None = None,
    steps: int = 300,
    learning_rate: float = 0.002,
    validation: bool = False,
    backbone: str = BACKBONE,
    frozen_batch_norm: bool = True,
    device: str = "cpu",
) -> ImageTask:
    """Open the training and test images of a set.

    Args:
        chosen: The set.
        data: The folder that contains ``chosen.folder``, or ``chosen.folder`` itself.
        size: Side of the square images in pixels.
        per_class: Number of images per class and split, sampled evenly; 0 uses all.
        long_tail: Size of the smallest training class relative to the largest: the k-th of C classes, sorted by name,
            keeps ``long_tail ** (k / (C - 1))`` of its training images; 1 keeps all.
        weights: Backbone weights.
        steps: Number of optimizer steps of rows that train.
        learning_rate: Learning rate of rows that fine-tune a network.
        validation: Whether to evaluate on the validation split instead of the test split, to choose settings; a set
            without one uses a fifth of its training groups.
        backbone, frozen_batch_norm, device: As in :class:`ImageTask`.

    Raises:
        DatasetError: The collection is missing or incomplete, or has fewer than two classes.
        InvalidArgumentError: A setting is out of range.
    """
    if not 0 < long_tail <= 1 or per_class < 0:
        raise InvalidArgumentError(
            f"long_tail must be above 0 and at most 1 and per_class at least 0, got {long_tail} and {per_class}"
        )
    check_positive(learning_rate=learning_rate)
    nested = Path(data) / chosen.folder
    source = nested if nested.is_dir() else Path(data) / Path(chosen.folder).name
    labelled = open_labelled(source, reader=chosen.reader, **chosen.options)
    if labelled.kind == "video":
        labelled = make_frame_excerpts(labelled, count=_STILLS, frames=_STILL_FRAMES)
    if "train" not in labelled.split_counts():
        labelled = make_split(labelled, test=0.3, validation=0.0)
    if validation:
        labelled = _use_validation(labelled)
    # A class without training images cannot be recognized, and one without test images is never queried.
    known = {item.label for item in labelled.part("train").items}
    train = _limit(labelled.part("train").items, per_class, long_tail)
    test = _limit((item for item in labelled.part("test").items if item.label in known), per_class, 1.0)
    whole = replace(labelled, items=(*train, *test), names=None)
    if len(whole.part("train").subcategories()) < 2 or not test:
        raise DatasetError(
            f"{source}: must have at least 2 classes with training images and test images of these classes, got "
            f"{len(train)} training and {len(test)} test images of {', '.join(whole.subcategories()) or 'no class'}"
        )
    words = [chosen.name, *(["long-tailed"] if long_tail < 1 else []), *(["validation"] if validation else [])]
    words += [backbone.partition("?")[0].rpartition(":")[2]] if backbone != BACKBONE else []
    return ImageTask(
        ", ".join(words),
        ImagePart(whole.part("train"), size, chosen.fit),
        ImagePart(whole.part("test"), size, chosen.fit),
        weights,
        steps,
        learning_rate,
        backbone,
        frozen_batch_norm,
        device,
    )


def _use_validation(labelled: LabelledSet) -> LabelledSet:
    """Use the validation items as the test split, and drop the test items."""
    train = labelled.part("train")
    if "validation" in labelled.split_counts():
        held = labelled.part("validation").items
    else:
        divided = make_split(train, test=0.2, validation=0.0)
        train, held = divided.part("train"), divided.part("test").items
    return labelled.with_items([*train.items, *(replace(item, split="test") for item in held)])


def _limit(items: Iterable[LabelledItem], per_class: int, long_tail: float) -> list[LabelledItem]:
    by_class: defaultdict[str, list[LabelledItem]] = defaultdict(list)
    for item in items:
        by_class[item.label].append(item)
    last = max(1, len(by_class) - 1)
    chosen: list[LabelledItem] = []
    for rank, name in enumerate(sorted(by_class)):
        members = by_class[name]
        count = min(len(members), per_class or len(members))
        count = max(2, round(count * long_tail ** (rank / last))) if long_tail < 1 else count
        chosen += [
            members[index] for index in np.linspace(0, len(members) - 1, min(count, len(members))).round().astype(int)
        ]
    return chosen
