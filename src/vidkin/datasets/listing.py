"""Readers of CSV files that list labeled files, or events in videos; errors name the line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vidkin._base.arguments import check_arguments
from vidkin._base.files import VIDEO_EXTENSIONS, PathLike, read_text_file
from vidkin.datasets.folders import SPLIT_NAMES, divide, infer_kind
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError

_REQUIRED = ("path", "category")

_OPTIONAL = ("subcategory", "split", "group", "start", "end")


@check_arguments
def read_manifest(
    source: PathLike,
    *,
    root: PathLike | None = None,
    kind: Literal["image", "video"] | None = None,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a UTF-8 CSV with the columns ``path,category[,subcategory][,split][,group][,start][,end]``.

    Args:
        source: The CSV file, with column names in the first line. Columns may be in any order; others are ignored.
            Without ``subcategory``, there is one level of labels. ``split`` is train, validation (or val), test or
            empty. Items with the same ``group``, by default the path, stay in the same split. ``start`` and ``end``
            are seconds of a video, empty for the whole file.
        root: Folder that paths are relative to; None is the folder of the CSV.
        kind: ``"image"`` or ``"video"``; None infers it from the extensions, and rejects a mixture of both.
        test: Fraction of each subcategory for the test split, if the file has no splits.
        validation: Fraction for the validation split.
        seed: Seed of the split.

    Raises:
        DatasetError: The file is missing or malformed (the message names the line), some of the listed files are
            missing, or the splits leak.
    """
    path = Path(source).expanduser()
    base = Path(root).expanduser() if root is not None else path.parent
    rows, columns = read_rows(path, _REQUIRED, optional=_OPTIONAL)
    # If there is a subcategory column, every file must have a subcategory.
    needed = [name for name in (*_REQUIRED, "subcategory") if name in columns]
    items = tuple(_item(row, needed, base) for row in rows)
    if not items:
        raise DatasetError(f"{path}: lists no files")
    missing = [item.path for item in items if not item.path.is_file()]
    if missing:
        raise DatasetError(
            f"{path}: {len(missing)} of {len(items)} files do not exist, the first is {missing[0]}; paths must be "
            f"relative to {base}"
        )
    what = kind or infer_kind((item.path for item in items), path)
    return _split_unless_listed(LabelledSet(path.stem, what, items, base), path, test, validation, seed)


def _item(row: CsvRow, needed: Sequence[str], base: Path) -> LabelledItem:
    cells = row.cells
    empty = [name for name in needed if not cells[name]]
    if empty:
        raise DatasetError(f"{row.location}: {', '.join(empty)} is empty")
    return row.item(
        path=base / cells["path"],
        category=cells["category"],
        subcategory=cells["subcategory"],
        group=cells["group"] or cells["path"],
        start=row.seconds("start") or 0.0,
        end=row.seconds("end"),
    )


def _split_unless_listed(labelled: LabelledSet, path: Path, test: float, validation: float, seed: int) -> LabelledSet:
    """Split a set, unless the file itself lists splits."""
    if any(item.split for item in labelled.items) and (test or validation):
        raise InvalidArgumentError(f"{path}: has splits; leave out test and validation")
    return divide(labelled, test, validation, seed)


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of a CSV file.

    Attributes:
        location: File and line number, for messages.
        cells: Stripped text by column; empty for missing columns.
    """

    location: str
    cells: Mapping[str, str]

    def seconds(self, column: str) -> float | None:
        """Return the time in seconds in a column; None if the cell is empty.

        Raises:
            DatasetError: The cell contains something else.
        """
        text = self.cells[column]
        try:
            return float(text) if text else None
        except ValueError:
            raise DatasetError(f"{self.location}: {column} must be a number of seconds, got {text!r}") from None

    @property
    def split(self) -> str:
        """The split of the row, under vidkin's name for it; empty if the row has none.

        Raises:
            DatasetError: The split is unknown.
        """
        name = self.cells.get("split", "").lower()
        if name and name not in SPLIT_NAMES:
            raise DatasetError(
                f"{self.location}: split must be train, validation, test or empty, got {self.cells['split']!r}"
            )
        return SPLIT_NAMES[name] if name else ""

    def item(self, **values: Any) -> LabelledItem:
        """Create an item with these values and the split of the row.

        Raises:
            DatasetError: A value or the split is invalid.
        """
        split = self.split
        try:
            return LabelledItem(split=split, **values)
        except ValueError as error:
            raise DatasetError(f"{self.location}: {error}") from error


def read_rows(
    path: Path, needed: Sequence[str], *, optional: Sequence[str] = ()
) -> tuple[list[CsvRow], frozenset[str]]:
    """Read all rows of a UTF-8 CSV file, and its column names.

    Args:
        path: The file, with column names in the first line, in any order.
        needed: Required columns.
        optional: Optional columns; all others are ignored.

    Raises:
        DatasetError: The file cannot be read, is not CSV, or lacks a column.
    """
    names = (*needed, *optional)
    if path.is_dir():
        raise DatasetError(f"{path}: is a folder; choose the CSV, or use the reader tree")
    try:
        reader = csv.DictReader(io.StringIO(read_text_file(path, encoding="utf-8-sig"), newline=""), strict=True)
        columns = frozenset(reader.fieldnames or ())
        lacking = [name for name in needed if name not in columns]
        if lacking:
            raise DatasetError(
                f"{path}: lacks the columns {', '.join(lacking)}; it needs {', '.join(needed)}"
                + (f" and may have {', '.join(optional)}" if optional else "")
            )
        rows = [
            CsvRow(
                f"{path}, line {reader.line_num}",
                {name: (row.get(name) or "").strip() for name in names},
            )
            for row in reader
        ]
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: does not exist; choose a CSV with {','.join(needed)}") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (csv.Error, ValueError) as error:
        raise DatasetError(f"{path}: is not CSV in UTF-8, {error}") from error
    return rows, columns


_REQUIRED_EVENT_COLUMNS = ("session", "start", "end", "event")

_OPTIONAL_EVENT_COLUMNS = ("layer", "split")


@check_arguments
def read_events(
    source: PathLike,
    *,
    root: PathLike | None = None,
    layer: str = "",
    shortest: float = 2.0,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a UTF-8 CSV with the columns ``session,start,end,event[,layer][,split]``, one event per line.

    It can hold the events of the Honda Driving Dataset (HDD), which publishes annotation files with layers
    (goal-oriented, stimulus-driven, cause, attention) for 137 sessions. Times are in seconds.

    Args:
        source: The CSV file.
        root: Folder of the videos; None is the folder of the CSV. ``session`` is the path of a video in it, or the
            video's name without extension, at any depth.
        layer: Use only the events of this layer; empty uses all.
        shortest: Drop events shorter than this, in seconds; a stack of differences spans 2 seconds.
        test: Fraction for the test split, if the file has no splits; a session is never spread over several splits.
        validation: Fraction for the validation split.
        seed: Seed of the split.

    Returns:
        A set of kind ``"video"`` with one level of labels; the group of an item is its session.

    Raises:
        DatasetError: The file is missing or malformed (the message names the line), or a session has no video.
        InvalidArgumentError: A setting is out of range.
    """
    if not (shortest >= 0 and math.isfinite(shortest)):
        raise InvalidArgumentError(f"shortest must be at least 0 seconds, got {shortest}")
    path = Path(source).expanduser()
    base = Path(root).expanduser() if root is not None else path.parent
    rows, _ = read_rows(path, _REQUIRED_EVENT_COLUMNS, optional=_OPTIONAL_EVENT_COLUMNS)
    videos = {file.stem: file for file in sorted(base.rglob("*")) if file.suffix.lower() in VIDEO_EXTENSIONS}
    events = [_event(row, base, videos) for row in rows if not layer or row.cells["layer"] == layer]
    kept = [item for item in events if item.end is not None and item.end - item.start >= shortest]
    if not kept:
        raise DatasetError(
            f"{path}: has no event of at least {shortest:g} s" + (f" in layer {layer!r}" if layer else "")
        )
    return _split_unless_listed(LabelledSet(path.stem, "video", tuple(kept), base), path, test, validation, seed)


def _event(row: CsvRow, base: Path, videos: Mapping[str, Path]) -> LabelledItem:
    session, event = row.cells["session"], row.cells["event"]
    start, end = row.seconds("start"), row.seconds("end")
    if start is None or end is None:
        raise DatasetError(f"{row.location}: start and end must not be empty")
    named = base / session
    video = named if named.is_file() else videos.get(session)
    if video is None:
        raise DatasetError(f"{row.location}: there is no video {session!r} in {base}")
    return row.item(path=video, category=event.replace("/", "-"), group=session, start=start, end=end)
