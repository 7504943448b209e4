"""Readers for the shot labels of public collections: ClipShots, BBC Planet Earth, RAI, SHOT and OmniShotCut."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from vidkin._base.files import PathLike, read_text_file
from vidkin._base.values import read_json
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.shots import Transition
from vidkin_research.shots.extents import LabeledTransition

__all__ = ["SHOT_COLLECTIONS", "ShotCollection", "labels_of_video", "read_shot_labels", "transitions_between"]

logger = logging.getLogger(__name__)

Labels = dict[str, tuple[LabeledTransition, ...]]
"""Transitions in frame order, by video name without extension."""

_MAX_FRAMES = 10_000_000


@dataclass(frozen=True, slots=True)
class ShotCollection:
    """A public collection of videos with labeled shots, and the evaluation rule of its authors.

    Attributes:
        title: Name of the collection.
        read: Function that reads its labels from a file or folder.
        rule: Matching rule of its published F1, see :func:`vidkin.metric.measures.boundary_scores`; None if published
            results are computed differently.
        tolerance: Maximum distance of a match in frames in that F1.
        has_kinds: Whether its labels include the kind of transition; otherwise jumps are labeled as cuts.
        by_number: Whether videos and labels have different names, so that they are matched by the first number in the
            name.
    """

    title: str
    read: Callable[[Path], Labels]
    rule: Literal["nearest", "overlap"] | None = "overlap"
    tolerance: int = 2
    has_kinds: bool = False
    by_number: bool = False


def read_shot_labels(name: str, path: PathLike) -> Labels:
    """Read the labels of a collection.

    Args:
        name: One of `SHOT_COLLECTIONS`.
        path: File or folder of its labels.

    Raises:
        InvalidArgumentError: The collection is unknown.
        DatasetError: The labels cannot be read or have a different format.
    """
    if name not in SHOT_COLLECTIONS:
        raise InvalidArgumentError(f"labels must be one of {', '.join(SHOT_COLLECTIONS)}, got {name!r}")
    try:
        return SHOT_COLLECTIONS[name].read(Path(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError) as error:
        raise DatasetError(
            f"{os.fspath(path)}: not a label file of {SHOT_COLLECTIONS[name].title} ({error!r})"
        ) from error


def labels_of_video(name: str, labels: Labels, video: str) -> tuple[LabeledTransition, ...] | None:
    """Return a collection's labels for a video, given its name without extension; None if there are none."""
    if video in labels or not SHOT_COLLECTIONS[name].by_number:
        return labels.get(video)
    numbers = {_first_number(own): own for own in labels}
    return labels.get(numbers.get(_first_number(video), ""))


def _first_number(text: str) -> int | None:
    number = re.search(r"\d+", text)
    return int(number[0]) if number else None


def transitions_between(shots: Iterable[Sequence[int]]) -> tuple[LabeledTransition, ...]:
    """Return the transitions between shots, given as (first frame, last frame); frames between two shots are gradual.

    Raises:
        ValueError: The shots overlap or are not in order.
    """
    ordered = [(_frame(first), _frame(last)) for first, last, *_ in shots]
    found = []
    for (begin, last), (first, _) in pairwise(ordered):
        if not begin <= last < first:
            raise ValueError(f"shots must be in order and not overlap, got end {last} before start {first}")
        if first == last + 1:
            found.append(LabeledTransition("hard", first, first))
        else:
            found.append(LabeledTransition("gradual", last + 1, first - 1))
    return tuple(found)


def _frame(value: Any) -> int:
    frame = int(value)
    if frame != value or not 0 <= frame < _MAX_FRAMES:
        raise ValueError(f"frames must be integers of at least 0, got {value!r}")
    return frame


def _read_clipshots(path: Path) -> Labels:
    """Read ``{video: {"transitions": [[last frame before, first frame after], ...], "frame_num": N}}``."""
    labels = {}
    for video, entry in read_json(path).items():
        found: list[LabeledTransition] = []
        for before, after in entry["transitions"]:
            last, first = _frame(before), _frame(after)
            found += transitions_between([(last, last), (first, first)])
        labels[Path(video).stem] = tuple(sorted(found, key=lambda one: one.start))
    return labels


def _read_ranges(path: Path, ending: str, later: int) -> Labels:
    """Read text files with the first and last frame of one shot per line."""
    files = sorted(path.glob(f"*{ending}")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"there is no file *{ending}")
    labels = {}
    for file in files:
        rows = [line.split() for line in read_text_file(file).splitlines() if line.strip()]
        shots = [(int(row[0]) + later, int(row[1]) + later) for row in rows]
        labels[file.name.removesuffix(ending)] = transitions_between(shots)
    return labels


def _read_bbc(path: Path) -> Labels:
    """Read BBC's labels, whose frame numbers are one lower than in the decoded videos, as in published evaluations."""
    return _read_ranges(path, ".txt", 1)


def _read_rai(path: Path) -> Labels:
    return _read_ranges(path, "_gt.txt", 0)


def _read_shot(path: Path) -> Labels:
    """Read ``kuaishou_v2.txt``, or the authors' pickle as JSON: ``{video: [[first frame, last frame], ...]}``.

    The text file has a line ``VIDEO FRAMES`` per video, followed by a line ``LAST,FIRST`` per transition: the last
    frame before it and the first frame after it.
    """
    if path.suffix.lower() != ".txt":
        return {Path(video).stem: transitions_between(shots) for video, shots in read_json(path).items()}
    labels: dict[str, list[LabeledTransition]] = {}
    found: list[LabeledTransition] = []
    for number, line in enumerate(read_text_file(path).splitlines(), 1):
        if opening := re.fullmatch(r"(\S+)\.mp4\s+\d+\s*", line):
            found = labels.setdefault(opening[1], [])
        elif line.strip():
            # A few lines have two commas, an extra comma at the end, or a dot instead.
            pair = re.fullmatch(r"\s*(\d+)\s*[,.]+\s*(\d+)\s*,*\s*", line)
            if pair is None or not labels:
                raise ValueError(f"line {number} must have two frames and follow a video name, got {line!r}")
            last, first = _frame(int(pair[1])), _frame(int(pair[2]))
            if last >= first:
                logger.warning(
                    "%s: line %d skipped, because the transition ends before it starts: %s", path, number, line.strip()
                )
                continue
            found += transitions_between([(last, last), (first, first)])
    return {video: tuple(sorted(own, key=lambda one: one.start)) for video, own in labels.items()}


# OmniShotCut's content labels of a range, by number and by name; all other names are geometric transitions.
_OMNI_NUMBERS = ("general", "dissolve", "wipe", "push", "slide", "zoom", "fade", "doorway", "padding")
_OMNI_SHOTS = ("general", "")
_OMNI_GRADUAL: tuple[tuple[str, Transition], ...] = (
    ("dissolve", "dissolve"),
    ("cross_blur", "dissolve"),
    ("fade", "fade"),
    ("dip_to", "fade"),
)
_OMNI_JUMP, _OMNI_JUMP_NUMBER, _OMNI_PADDING = "jump", 4, "padding"


def _read_omnishotcut(path: Path) -> Labels:
    """Read ranges of shots and transitions, with labels for their content and for how each one begins.

    Three formats are accepted. The authors' pickle as JSON and the output of their evaluation: a list of videos with
    ``video_path`` and ``ranges`` (or ``gt_ranges``) of [first frame, frame after the last], and one entry per range in
    ``intra_labels`` and ``inter_labels``. A mapping ``{video: {"shots": [[first, last], ...], "intra_labels": [...],
    "inter_labels": [...]}}``. And a list of videos with ``video_name`` and ``shots`` of ``start_frame``,
    ``end_frame_exclusive``, ``intra_label`` and ``inter_label``.
    """
    content = read_json(path)
    if isinstance(content, Mapping):
        return {
            Path(video).stem: _from_omni(zip(entry["shots"], entry["intra_labels"], entry["inter_labels"], strict=True))
            for video, entry in content.items()
        }
    return dict(_omni_entry(entry) for entry in content)


def _omni_entry(entry: Mapping[str, Any]) -> tuple[str, tuple[LabeledTransition, ...]]:
    if "shots" in entry:
        listed = [(shot["start_frame"], shot["end_frame_exclusive"]) for shot in entry["shots"]]
        intra, inter = ([shot[name] for shot in entry["shots"]] for name in ("intra_label", "inter_label"))
        video = entry["video_name"]
    else:
        own = "gt_" if "gt_ranges" in entry else ""
        listed, intra, inter = (entry[own + name] for name in ("ranges", "intra_labels", "inter_labels"))
        video = entry["video_path"]
    ranges = [(first, end - 1) for first, end in listed]
    return Path(video).stem, _from_omni(zip(ranges, intra, inter, strict=True))


def _from_omni(ranges: Iterable[tuple[Sequence[int], str | int, str | int]]) -> tuple[LabeledTransition, ...]:
    found: list[LabeledTransition] = []
    end: int | None = None  # last frame of the previous range
    after_transition = True  # there is no cut before the first range
    for (begin, finish), intra, inter in ranges:
        first, last = _frame(begin), _frame(finish)
        if last < first or (end is not None and first <= end):
            raise ValueError(f"ranges must be in order and not overlap, got {first} to {last} after {end}")
        content = (_OMNI_NUMBERS[intra] if isinstance(intra, int) else intra).lower()
        if content == _OMNI_PADDING:
            continue
        if content not in _OMNI_SHOTS:
            kinds: list[Transition] = [kind for word, kind in _OMNI_GRADUAL if word in content]
            kind: Transition = kinds[0] if kinds else "wipe"
            found.append(LabeledTransition(kind, first, last))
            after_transition = True
        else:
            if end is not None and first > end + 1:
                found.append(LabeledTransition("gradual", end + 1, first - 1))
            elif not after_transition:
                is_jump = inter == _OMNI_JUMP_NUMBER or _OMNI_JUMP in str(inter).lower()
                found.append(LabeledTransition("jump" if is_jump else "hard", first, first))
            after_transition = False
        end = last
    return tuple(found)


SHOT_COLLECTIONS: dict[str, ShotCollection] = {
    "clipshots": ShotCollection("ClipShots", _read_clipshots),
    "bbc": ShotCollection("BBC Planet Earth", _read_bbc, by_number=True),
    "rai": ShotCollection("RAI", _read_rai),
    "shot": ShotCollection("SHOT", _read_shot),
    "omnishotcut": ShotCollection("OmniShotCut", _read_omnishotcut, rule=None, has_kinds=True),
}
"""The collections by name. Published F1 of the first four counts transitions that overlap within 2 frames."""
