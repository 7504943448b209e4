"""A CSV of events in videos, as of the Honda driving dataset (HDD)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from vidkin._base.extensions import VIDEO_EXTENSIONS
from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.datasets.readers.csv_list import CsvRow, read_rows
from vidkin.datasets.readers.tree import divide
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["read_events"]

_NEEDED = ("session", "start", "end", "event")
_OPTIONAL = ("layer", "split")


def read_events(
    source: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    layer: str = "",
    shortest: float = 2.0,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a CSV in UTF-8 with the columns ``session,start,end,event[,layer][,split]``, one event a line.

    HDD is published as annotation files, a tree of layers (goal-oriented, stimulus-driven, cause, attention) for each
    of 137 sessions; this is their content as a list, times in seconds.

    Args:
        source: The CSV file.
        root: Folder of the videos; None is the folder of the CSV. ``session`` is the path of a video in it, or its name
            without an extension, at any depth.
        layer: Take the events of this layer only; empty takes all.
        shortest: Leave out events shorter than this, seconds; a stack of differences spans 2.
        test: Share for the test, if the list has no splits; sessions are kept whole.
        validation: Share for validation.
        seed: Seed of the division.

    Returns:
        Kind ``"video"``, one level of labels; the group is the session.

    Raises:
        DatasetError: The file is missing or malformed (the message has the line), or a session has no video.
        InvalidArgumentError: A setting is out of range.
    """
    if not (shortest >= 0 and math.isfinite(shortest)):
        raise InvalidArgumentError(f"shortest must be at least 0 seconds, got {shortest}")
    path = Path(source).expanduser()
    base = Path(root).expanduser() if root is not None else path.parent
    rows, _ = read_rows(path, _NEEDED, optional=_OPTIONAL)
    videos = {file.stem: file for file in sorted(base.rglob("*")) if file.suffix.lower() in VIDEO_EXTENSIONS}
    events = [_event(row, base, videos) for row in rows if not layer or row.cells["layer"] == layer]
    kept = [item for item in events if item.end is not None and item.end - item.start >= shortest]
    if not kept:
        raise DatasetError(
            f"{path}: has no event of {shortest:g} s or more" + (f" in layer {layer!r}" if layer else "")
        )
    if any(item.split for item in kept) and (test or validation):
        raise InvalidArgumentError(f"{path}: has splits; leave out test and validation")
    return divide(LabelledSet(path.stem, "video", tuple(kept), base), test, validation, seed)


def _event(row: CsvRow, base: Path, videos: Mapping[str, Path]) -> LabelledItem:
    session, event = row.cells["session"], row.cells["event"]
    start, end = row.seconds("start"), row.seconds("end")
    if start is None or end is None:
        raise DatasetError(f"{row.place}: start and end must not be empty")
    named = base / session
    video = named if named.is_file() else videos.get(session)
    if video is None:
        raise DatasetError(f"{row.place}: there is no video {session!r} in {base}")
    try:
        return LabelledItem(
            path=video,
            category=event.replace("/", "-"),
            group=session,
            split=row.split,
            start=start,
            end=end,
        )
    except ValueError as error:
        raise DatasetError(f"{row.place}: {error}") from error
