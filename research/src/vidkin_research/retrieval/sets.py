"""The labeled collections of the comparison, split into train, validation and test."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vidkin.datasets import LabelledSet, make_split, open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin_research.frame_excerpts import make_frame_excerpts
from vidkin_research.readers.collections import PUBLIC_COLLECTIONS

__all__ = ["COMPARISON_SETS", "ComparisonSet", "comparison_set", "open_set"]

PathLike = str | os.PathLike[str]

_EXCERPTS = 3
_EXCERPT_FRAMES = 10


@dataclass(frozen=True, kw_only=True)
class ComparisonSet:
    """A labeled collection of the comparison.

    Attributes:
        name: Name on the command line.
        video: Whether items are videos (or strokes shown as video) rather than images.
        folder: Path of the collection relative to the data folder; empty for the data folder itself.
        reader: Reader of :func:`vidkin.datasets.open_labelled`.
        options: Options of the reader.
        size: Side in pixels of the frame network's input.
        rate: Frames per second of training clips, which then consist of consecutive frames at a random position of the
            video at each step. None samples the frames of a clip evenly from its item, always the same ones.
        about: Categories, subcategories and split, in a few words.
    """

    name: str
    video: bool
    folder: str
    reader: str
    options: dict[str, Any] = field(default_factory=dict)
    size: int = 128
    rate: float | None = None
    about: str


COMPARISON_SETS: tuple[ComparisonSet, ...] = (
    ComparisonSet(
        name="fruit",
        video=True,
        folder="labelled/fruit",
        reader="fruit",
        rate=8.0,
        about="turntable videos of 67 varieties of apple, cherry and tomato, three excerpts of ten frames per video; "
        "the first rotation axis is train and gallery, the second test, a third validation. The positives of test "
        "quadlets are other excerpts of the query's video, those of gallery quadlets are of another axis",
    ),
    ComparisonSet(
        name="strokes",
        video=True,
        folder="labelled/omniglot",
        reader="omniglot",
        options={"kind": "strokes"},
        size=96,
        rate=2.0,
        about="videos of 242 characters from 8 alphabets being drawn; drawers 1-12 train and gallery, 13-15 "
        "validation, 16-20 test",
    ),
    ComparisonSet(
        name="aerial",
        video=True,
        folder="labelled/aerial",
        reader="aerial",
        about="aircraft, birds, drones and helicopters in the sky, in visible and infrared light; train, "
        "validation and test are split by recording",
    ),
    ComparisonSet(
        name="grocery",
        video=False,
        folder="labelled/grocery",
        reader="grocery",
        about="photographs of 81 products in three store departments; published split",
    ),
    ComparisonSet(
        name="omniglot",
        video=False,
        folder="labelled/omniglot",
        reader="omniglot",
        about="images of 242 characters from 8 alphabets; drawers 1-12 train and gallery, 13-15 validation, 16-20 test",
    ),
    *(
        ComparisonSet(
            name=public.name,
            video=public.video,
            folder=public.name,
            reader=public.name,
            options=dict(public.options),
            rate=20.0 if public.video else None,
            about=public.about,
        )
        for public in PUBLIC_COLLECTIONS
        if public.has_categories
    ),
    ComparisonSet(
        name="videos",
        video=True,
        folder="",
        reader="tree",
        about="your own videos, category/subcategory/file",
    ),
    ComparisonSet(
        name="pictures",
        video=False,
        folder="",
        reader="tree",
        about="your own images, category/subcategory/file",
    ),
)


def comparison_set(name: str) -> ComparisonSet:
    """Find a collection by name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists the known names.
    """
    for known in COMPARISON_SETS:
        if known.name == name:
            return known
    raise InvalidArgumentError(
        f"a set must be one of {', '.join(known.name for known in COMPARISON_SETS)}, got {name!r}"
    )


def open_set(
    chosen: ComparisonSet, data: PathLike, *, on_broken: Callable[[MediaError], None] | None = None
) -> LabelledSet:
    """Open the items of a collection, split into train, validation and test.

    For fruit, the third axis (28 varieties have one) is validation, so that choices do not depend on the test split,
    and every video provides three excerpts of ten frames. In your own collection (reader ``tree``), unreadable items
    are left out; without a split, it is split 60 : 10 : 30 by group.

    Args:
        chosen: The collection.
        data: The folder that contains ``chosen.folder``.
        on_broken: Callback that receives the error of each item that is left out.

    Raises:
        DatasetError: The collection is missing or incomplete, or none of its items can be read.
        InvalidArgumentError: The set is for another kind of items, or a split is empty.
    """
    folder = Path(data)
    nested = folder / chosen.folder
    # The folder of the collection itself is also accepted.
    source = nested if nested.is_dir() else folder / Path(chosen.folder).name
    labelled = open_labelled(source, reader=chosen.reader, **chosen.options)
    if (labelled.kind != "image") is not chosen.video:
        raise InvalidArgumentError(
            f"{source}: contains items of kind {labelled.kind}, but set {chosen.name} is for "
            f"{'videos' if chosen.video else 'images'}"
        )
    if chosen.reader == "tree":
        readable, last = [], None
        for item in labelled.items:
            try:
                read_item(item, labelled.kind, size=16, frames=None if labelled.kind == "image" else 1)
            except MediaError as error:
                last = error
                if on_broken is not None:
                    on_broken(error)
            else:
                readable.append(item)
        if not readable:
            raise DatasetError(
                f"{labelled.name}: none of the {len(labelled)} items can be read; the last error was: {last}"
            )
        labelled = labelled.with_items(readable)
    if chosen.reader == "fruit":
        # Per variety, the first axis is train, the second test, the third validation.
        axes: defaultdict[str, int] = defaultdict(int)
        items = []
        for item in labelled.items:
            items.append(replace(item, split=("train", "test", "validation")[min(axes[item.label], 2)]))
            axes[item.label] += 1
        labelled = make_frame_excerpts(labelled.with_items(items), count=_EXCERPTS, frames=_EXCERPT_FRAMES)
    if "" in labelled.split_counts():
        labelled = make_split(labelled, test=0.3, validation=0.1)
    for split in ("train", "validation", "test"):
        labelled.part(split)
    return labelled
