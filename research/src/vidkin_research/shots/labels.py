"""Labels of shots of public collections, as transitions: ClipShots, BBC Planet Earth, RAI, SHOT, OmniShotCut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from vidkin._base.files import PathLike
from vidkin._base.values import read_json
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.shots import Transition
from vidkin_research.shots.extents import LabeledTransition

__all__ = ["SHOT_COLLECTIONS", "ShotCollection", "read_shot_labels", "transitions_between"]

Labels = dict[str, tuple[LabeledTransition, ...]]
"""Transitions in order of frames, by name of the video without its ending."""

_MOST_FRAMES = 10_000_000


@dataclass(frozen=True, slots=True)
class ShotCollection:
    """A public collection of videos with labeled shots, and how its authors count.

    Attributes:
        title: Its name.
        read: Reads its labels from a file or folder.
        rule: Matching rule of its protocol, see :func:`vidkin.metric.measures.boundary_scores`.
        tolerance: Frames by which a match can be off in its protocol.
        has_kinds: Whether its labels tell kinds of transitions.
    """

    title: str
    read: Callable[[Path], Labels]
    rule: Literal["nearest", "overlap"] = "overlap"
    tolerance: int = 2
    has_kinds: bool = False


def read_shot_labels(name: str, path: PathLike) -> Labels:
    """Read the labels of a collection.

    Args:
        name: One of `SHOT_COLLECTIONS`.
        path: Its file of labels, or the folder of its files.

    Raises:
        InvalidArgumentError: There is no such collection.
        DatasetError: The labels cannot be read or have another form.
    """
    if name not in SHOT_COLLECTIONS:
        raise InvalidArgumentError(f"labels must be one of {', '.join(SHOT_COLLECTIONS)}, got {name!r}")
    try:
        return SHOT_COLLECTIONS[name].read(Path(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DatasetError(f"{os.fspath(path)}: not labels of {SHOT_COLLECTIONS[name].title} ({error!r})") from error


def transitions_between(shots: Iterable[Sequence[int]]) -> tuple[LabeledTransition, ...]:
    """The transitions between shots, each given by its first and last frame; frames between two shots are gradual.

    Raises:
        ValueError: The shots overlap or are not in order.
    """
    ordered = [(_frame(first), _frame(last)) for first, last, *_ in shots]
    found = []
    for (begin, last), (first, _) in pairwise(ordered):
        if not begin <= last < first:
            raise ValueError(f"shots must follow each other, got one that ends at {last} before one from {first} on")
        if first == last + 1:
            found.append(LabeledTransition("hard", first, first))
        else:
            found.append(LabeledTransition("gradual", last + 1, first - 1))
    return tuple(found)


def _frame(value: Any) -> int:
    frame = int(value)
    if frame != value or not 0 <= frame < _MOST_FRAMES:
        raise ValueError(f"frames must be whole numbers of at least 0, got {value!r}")
    return frame


def _read_clipshots(path: Path) -> Labels:
    """``{video: {"transitions": [[last frame before, first frame after], ...], "frame_num": N}}``."""
    labels = {}
    for video, entry in read_json(path).items():
        found: list[LabeledTransition] = []
        for before, after in entry["transitions"]:
            last, first = _frame(before), _frame(after)
            found += transitions_between([(last, last), (first, first)])
        labels[Path(video).stem] = tuple(sorted(found, key=lambda one: one.start))
    return labels


def _read_ranges(path: Path, ending: str, later: int) -> Labels:
    """Text files with the first and the last frame of a shot in each line."""
    files = sorted(path.glob(f"*{ending}")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"there is no file *{ending}")
    labels = {}
    for file in files:
        rows = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        shots = [(int(row[0]) + later, int(row[1]) + later) for row in rows]
        labels[file.name.removesuffix(ending)] = transitions_between(shots)
    return labels


def _read_bbc(path: Path) -> Labels:
    """Frames of BBC's labels are one less than those of the decoded videos, as published evaluations have it."""
    return _read_ranges(path, ".txt", 1)


def _read_rai(path: Path) -> Labels:
    return _read_ranges(path, "_gt.txt", 0)


def _read_shot(path: Path) -> Labels:
    """``{video: [[first frame, last frame], ...]}``; the authors' pickle has to be written as JSON before."""
    return {Path(video).stem: transitions_between(shots) for video, shots in read_json(path).items()}


# What OmniShotCut calls the content of a range, and how it comes in; other names of content are geometric transitions.
_OMNI_SHOTS = ("general", "")
_OMNI_GRADUAL: tuple[tuple[str, Transition], ...] = (("dissolve", "dissolve"), ("fade", "fade"))
_OMNI_JUMP = "jump"


def _read_omnishotcut(path: Path) -> Labels:
    """Ranges of shots and of transitions, with labels of what each range is and how it comes in.

    ``{video: {"shots": [[first, last], ...], "intra_labels": [...], "inter_labels": [...]}}``, or a list of videos with
    ``video_name`` and ``shots`` of ``start_frame``, ``end_frame_exclusive``, ``intra_label`` and ``inter_label``.
    """
    content = read_json(path)
    if isinstance(content, Mapping):
        return {
            Path(video).stem: _from_omni(zip(entry["shots"], entry["intra_labels"], entry["inter_labels"], strict=True))
            for video, entry in content.items()
        }
    return {
        Path(entry["video_name"]).stem: _from_omni(
            (
                (shot["start_frame"], shot["end_frame_exclusive"] - 1),
                shot["intra_label"],
                shot["inter_label"],
            )
            for shot in entry["shots"]
        )
        for entry in content
    }


def _from_omni(ranges: Iterable[tuple[Sequence[int], str, str]]) -> tuple[LabeledTransition, ...]:
    found: list[LabeledTransition] = []
    end: int | None = None  # last frame of the range before
    after_transition = True  # nothing opens the first range
    for (begin, finish), intra, inter in ranges:
        first, last = _frame(begin), _frame(finish)
        if last < first or (end is not None and first <= end):
            raise ValueError(f"ranges must follow each other, got {first} to {last} after {end}")
        if intra.lower() not in _OMNI_SHOTS:
            kinds: list[Transition] = [kind for word, kind in _OMNI_GRADUAL if word in intra.lower()]
            kind: Transition = kinds[0] if kinds else "wipe"
            found.append(LabeledTransition(kind, first, last))
            after_transition = True
        else:
            if end is not None and first > end + 1:
                found.append(LabeledTransition("gradual", end + 1, first - 1))
            elif not after_transition:
                found.append(LabeledTransition("jump" if _OMNI_JUMP in inter.lower() else "hard", first, first))
            after_transition = False
        end = last
    return tuple(found)


SHOT_COLLECTIONS: dict[str, ShotCollection] = {
    "clipshots": ShotCollection("ClipShots", _read_clipshots),
    "bbc": ShotCollection("BBC Planet Earth", _read_bbc),
    "rai": ShotCollection("RAI", _read_rai),
    "shot": ShotCollection("SHOT", _read_shot),
    "omnishotcut": ShotCollection("OmniShotCut", _read_omnishotcut, has_kinds=True),
}
"""The collections by name. F1 of the first four is published for transitions that overlap within 2 frames."""
