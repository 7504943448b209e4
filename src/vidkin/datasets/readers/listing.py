"""A CSV of labeled files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.datasets.readers.csv_list import CsvRow, read_rows
from vidkin.datasets.readers.folders import infer_kind
from vidkin.datasets.readers.tree import divide
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["read_manifest"]

_NEEDED = ("path", "category")
_OPTIONAL = ("subcategory", "split", "group", "start", "end")


def read_manifest(
    source: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    kind: Literal["image", "video"] | None = None,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a CSV in UTF-8 with the columns ``path,category[,subcategory][,split][,group][,start][,end]``.

    Args:
        source: The CSV file; its first line has the names. Columns may be in any order, others are ignored.
            Without ``subcategory`` labels have one level. ``split`` is train, validation (or val) or test, or empty;
            ``group`` is what a split keeps together, by default the path; ``start`` and ``end`` are seconds of a
            video, empty for the whole file.
        root: Folder that paths are relative to; None is the folder of the CSV.
        kind: ``"image"`` or ``"video"``; None infers it from extensions, and refuses a mixture.
        test: Share of each subcategory for the test, if the list has no splits.
        validation: Share for validation.
        seed: Seed of the division.

    Raises:
        DatasetError: The file is missing or malformed (the message has the line), files in it are missing, or
            its splits leak.
    """
    path = Path(source).expanduser()
    base = Path(root).expanduser() if root is not None else path.parent
    rows, columns = read_rows(path, _NEEDED, optional=_OPTIONAL)
    # A list has subcategories for all of its files or for none.
    needed = [name for name in (*_NEEDED, "subcategory") if name in columns]
    items = tuple(_item(row, needed, base) for row in rows)
    if not items:
        raise DatasetError(f"{path}: lists no files")
    missing = [item.path for item in items if not item.path.is_file()]
    if missing:
        raise DatasetError(
            f"{path}: {len(missing)} of {len(items)} files do not exist, the first is {missing[0]}; paths are relative "
            f"to {base}"
        )
    decided = any(item.split for item in items)
    if decided and (test or validation):
        raise InvalidArgumentError(f"{path}: has splits; leave out test and validation")
    what = kind or infer_kind((item.path for item in items), path)
    return divide(LabelledSet(path.stem, what, items, base), test, validation, seed)


def _item(row: CsvRow, needed: Sequence[str], base: Path) -> LabelledItem:
    cells = row.cells
    empty = [name for name in needed if not cells[name]]
    if empty:
        raise DatasetError(f"{row.place}: {', '.join(empty)} is empty")
    try:
        return LabelledItem(
            path=base / cells["path"],
            category=cells["category"],
            subcategory=cells["subcategory"],
            group=cells["group"] or cells["path"],
            split=row.split,
            start=row.seconds("start") or 0.0,
            end=row.seconds("end"),
        )
    except ValueError as error:
        raise DatasetError(f"{row.place}: {error}") from error
