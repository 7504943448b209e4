"""Helpers for readers of published image sets: completeness checks, MATLAB lists and class names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import read_text_file
from vidkin.datasets.folders import require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError

__all__ = ["class_name", "finish", "open_published", "read_columns", "read_matlab"]


def open_published(source: str | os.PathLike[str], what: str, where: str, needed: Sequence[str]) -> Path:
    """Return the folder of a set after checking that it contains all of these files and folders.

    Raises:
        DatasetError: The path is not a folder, or files are missing; the message lists them and says where to get the
            set.
    """
    folder = require_folder(source, what, where)
    missing = [name for name in needed if not (folder / name).exists()]
    if missing:
        raise DatasetError(f"{folder}: missing {', '.join(missing)} of {what}; get it from {where}")
    return folder


def read_columns(path: Path, *, cells: int) -> list[list[str]]:
    """Read the lines of a list, split at whitespace into this many cells; the last cell may contain spaces.

    Raises:
        DatasetError: A line has fewer cells.
    """
    rows = []
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        row = line.strip().split(maxsplit=cells - 1)
        if row and len(row) < cells:
            raise DatasetError(f"{path}, line {number}: must have {cells} columns, got {line.strip()[:60]!r}")
        if row:
            rows.append(row)
    return rows


def read_matlab(path: Path, *names: str) -> list[NDArray[Any]]:
    """Read arrays from a MATLAB file, flattened; nothing in it is executed.

    Raises:
        DatasetError: The file cannot be read, or one of the names is missing.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path, squeeze_me=True)
        return [np.atleast_1d(content[name]) for name in names]
    # scipy raises NotImplementedError for MATLAB 7.3 files, which are HDF5.
    except (OSError, ValueError, TypeError, NotImplementedError, KeyError, MatReadError) as error:
        raise DatasetError(f"{path}: cannot be read as a MATLAB file with {', '.join(names)}: {error}") from error


def class_name(name: str) -> str:
    """Convert a published name to a label, where ``/`` would separate levels: ``F/A-18`` becomes ``F-A-18``."""
    return " ".join(str(name).replace("/", "-").split())


def finish(
    name: str, folder: Path, items: Sequence[LabelledItem], where: str, *, validation: float, seed: int
) -> LabelledSet:
    """Create the set after checking that all photographs exist.

    Args:
        name: Name of the set.
        folder: Folder of the set.
        items: Items with the published split.
        where: Where to get missing photographs.
        validation: Fraction of each class's training items to use for validation; 0 for the published split only.
        seed: Random seed for choosing them.

    Raises:
        DatasetError: Photographs are missing.
    """
    absent = [item.path for item in items if not item.path.is_file()]
    if absent or not items:
        first = f", the first is {absent[0].relative_to(folder)}" if absent else ""
        raise DatasetError(f"{folder}: missing {len(absent)} of {len(items)} photographs{first}; get them from {where}")
    labelled = LabelledSet(name, "image", tuple(items), folder)
    if not validation:
        return labelled
    divided = make_split(labelled.part("train"), by="item", test=0.0, validation=validation, seed=seed)
    moved = {item.path: item.split for item in divided.items}
    return labelled.with_items(replace(item, split=moved.get(item.path, item.split)) for item in items)
