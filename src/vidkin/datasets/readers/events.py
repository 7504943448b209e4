"""A CSV of events in videos, as of the Honda driving dataset (HDD)."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from pathlib import Path

from vidkin._base.extensions import VIDEO_EXTENSIONS
from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.datasets.readers.tree import SPLIT_NAMES, divide
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["read_events"]

_NEEDED = ("session", "start", "end", "event")


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
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            lacking = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
            if lacking:
                raise DatasetError(
                    f"{path}: lacks the columns {', '.join(lacking)}; it needs {', '.join(_NEEDED)}"
                )
            rows = [(f"{path}, line {reader.line_num}", row) for row in reader]
    except OSError as error:
        raise DatasetError(
            f"{path}: {error.strerror or error}; choose a CSV with {','.join(_NEEDED)}"
        ) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: is not CSV in UTF-8, {error}") from error
    videos = {
        found.stem: found for found in sorted(base.rglob("*")) if found.suffix.lower() in VIDEO_EXTENSIONS
    }
    events = [
        _event(row, place, base, videos) for place, row in rows if not layer or row.get("layer") == layer
    ]
    kept = [item for item in events if item.end is not None and item.end - item.start >= shortest]
    if not kept:
        raise DatasetError(
            f"{path}: has no event of {shortest:g} s or more" + (f" in layer {layer!r}" if layer else "")
        )
    if any(item.split for item in kept) and (test or validation):
        raise InvalidArgumentError(f"{path}: has splits; leave out test and validation")
    return divide(LabelledSet(path.stem, "video", tuple(kept), base), test, validation, seed)


def _event(
    row: Mapping[str | None, str | None], place: str, base: Path, videos: Mapping[str, Path]
) -> LabelledItem:
    session, start, end, event = ((row.get(name) or "").strip() for name in _NEEDED)
    split = (row.get("split") or "").strip().lower()
    named = base / session
    video = named if named.is_file() else videos.get(session)
    if video is None:
        raise DatasetError(f"{place}: there is no video {session!r} in {base}")
    if split and split not in SPLIT_NAMES:
        raise DatasetError(f"{place}: split must be train, validation, test or empty, got {split!r}")
    try:
        return LabelledItem(
            path=video,
            category=event.replace("/", "-"),
            group=session,
            split=SPLIT_NAMES[split] if split else "",
            start=float(start),
            end=float(end),
        )
    except ValueError as error:
        raise DatasetError(f"{place}: {error}") from error
