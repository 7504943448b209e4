"""Any folder ``category/subcategory/file``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from vidkin._base.extensions import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.datasets.readers.folders import files_below, folder_of, kind_of, subfolders
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["SPLIT_NAMES", "divided", "items_of_tree", "read_tree"]

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "trainval": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}
"""What people call the parts -> what they are called here."""

_ENDINGS = {None: IMAGE_EXTENSIONS | VIDEO_EXTENSIONS, "image": IMAGE_EXTENSIONS, "video": VIDEO_EXTENSIONS}


def read_tree(
    source: str | os.PathLike[str],
    *,
    kind: Literal["image", "video"] | None = None,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a folder ``category/subcategory/file``, or ``split/category/subcategory/file``.

    If all folders at the top are called train, val, test or the like, they are the splits. Files may lie deeper, as
    ``category/subcategory/session/file``: then what lies in one folder below the subcategory is one group, which a
    split keeps whole. Hidden files and files of other kinds (by their ending) are passed over.

    Args:
        source: The folder.
        kind: ``"image"`` or ``"video"``; None finds out, and refuses a mixture.
        test: Share of each subcategory for the test, of a folder without splits of its own; 0 with ``validation`` 0
            leaves all items undecided.
        validation: Share for validation.
        seed: Chooses who goes where.

    Raises:
        DatasetError: Nothing is at that depth, images or videos lie above it, or kinds are mixed.
    """
    if kind not in _ENDINGS:
        raise InvalidArgumentError(f"kind is {kind!r}, allowed are image, video and None (find out)")
    folder = folder_of(source, "labelled files, category/subcategory/file")
    top = subfolders(folder)
    split_folders = bool(top) and all(path.name.lower() in SPLIT_NAMES for path in top)
    if split_folders and (test or validation):
        raise InvalidArgumentError(
            f"{folder} has splits of its own ({', '.join(path.name for path in top)}); leave test and validation away"
        )
    items: list[LabelledItem] = []
    for base in top if split_folders else [folder]:
        found = items_of_tree(base, _ENDINGS[kind])
        if split_folders:
            split = SPLIT_NAMES[base.name.lower()]
            found = (replace(item, split=split, group=f"{base.name}/{item.group}") for item in found)
        items += found
    if not items:
        raise DatasetError(
            f"{folder} has no {kind or 'image or video'} at category/subcategory/file "
            "(or at split/category/subcategory/file)"
        )
    what = kind or kind_of((item.path for item in items), folder)
    return divided(LabelledSet(folder.resolve().name, what, tuple(items), folder), test, validation, seed)


def items_of_tree(folder: Path, endings: frozenset[str]) -> Iterator[LabelledItem]:
    """Items of ``folder/category/subcategory/[group/]file``, sorted by path.

    Raises:
        DatasetError: A file with one of the endings lies above that depth.
    """
    for path in files_below(folder, endings, deep=True):
        parts = path.relative_to(folder).parts
        if len(parts) < 3:
            raise DatasetError(
                f"{path} is not at category/subcategory/file below {folder}; move it there, or list the files in a "
                "CSV (reader manifest)"
            )
        # category/subcategory/session of a deep file, the file itself of one that lies right there.
        group = "/".join(parts[:3])
        yield LabelledItem(path=path, category=parts[0], subcategory=parts[1], group=group)


def divided(labelled: LabelledSet, test: float, validation: float, seed: int) -> LabelledSet:
    """The set with a new split, or as it is where no share is asked for."""
    if not test and not validation:
        return labelled
    return make_split(labelled, test=test, validation=validation, seed=seed)
