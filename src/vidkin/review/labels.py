"""Human verdicts on video pairs and possible cuts, stored with an index, and whether there are enough for training.

``review/labels.json`` in the index folder contains ``{"pairs": [...], "cuts": [...]}`` with the fields of
:class:`PairLabel` and :class:`CutLabel`. Videos are identified by their content hashes, so that labels survive renames.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import write_text
from vidkin._base.values import Result, check_at_least, check_choice, read_json
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.opening import folder_of
from vidkin.index.storage.place import Place

PairVerdict = Literal["same", "same kind", "different"]
CutVerdict = Literal["cut", "no cut"]
REVIEW_FOLDER = "review"
"""Folder in an index for labels and training results."""


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class PairLabel(Result):
    """A person's verdict on how similar two videos are.

    Attributes:
        first, second: Content hashes of the videos in ascending order.
        verdict: ``same``, ``same kind`` or ``different``.
        source: Origin of the verdict, for example ``review page``.
        given: Time of the verdict in ISO 8601 format.
    """

    first: str
    second: str
    verdict: PairVerdict
    source: str
    given: str

    def __post_init__(self) -> None:
        check_choice("verdict", self.verdict, get_args(PairVerdict))
        if not self.first < self.second:
            raise InvalidArgumentError("a pair must consist of two different content hashes in ascending order")


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class CutLabel(Result):
    """A person's verdict on whether a new shot begins at a frame.

    Attributes:
        video: Content hash of the video.
        frame: First frame of the new shot, at least 1.
        verdict: ``cut`` or ``no cut``.
        source: Origin of the verdict.
        given: Time of the verdict in ISO 8601 format.
        moved_from: Original frame of a cut that was moved; None if it was not moved.
    """

    video: str
    frame: int
    verdict: CutVerdict
    source: str
    given: str
    moved_from: int | None = None

    def __post_init__(self) -> None:
        check_choice("verdict", self.verdict, get_args(CutVerdict))
        check_at_least(1, frame=self.frame)
        if self.moved_from is not None:
            check_at_least(1, moved_from=self.moved_from)


@dataclass(frozen=True, slots=True)
class Labels(Result):
    """All labels in an index.

    Attributes:
        pairs: One label per judged pair, in chronological order.
        cuts: One label per judged frame, in chronological order.
    """

    pairs: tuple[PairLabel, ...] = ()
    cuts: tuple[CutLabel, ...] = ()

    @classmethod
    def open(cls, index: Path) -> Labels:
        """Load the labels in an index; empty if there are none.

        Raises:
            CollectionDamagedError: The file is damaged; it is not changed.
        """
        path = _file(index)
        if not os.path.lexists(path):
            return cls()
        try:
            table = read_json(path)
            return cls(
                tuple(PairLabel(**_known(PairLabel, row)) for row in table.get("pairs", ())),
                tuple(CutLabel(**_known(CutLabel, row)) for row in table.get("cuts", ())),
            )
        except (OSError, ValueError, TypeError, AttributeError, InvalidArgumentError) as error:
            raise CollectionDamagedError(
                f"{path} is damaged ({error}); correct it, restore it from a backup or move it away"
            ) from error

    @staticmethod
    def judge_pair(
        place: Place, one: str, other: str, verdict: PairVerdict, *, source: str, wait: float = 5.0
    ) -> PairLabel:
        """Store a verdict on two videos, given by their content hashes; it replaces any earlier verdict.

        Raises:
            InvalidArgumentError: The hashes are equal, or the verdict is unknown.
            CollectionLockedError: Another process is writing.
        """
        first, second = sorted((one, other))
        label = PairLabel(first=first, second=second, verdict=verdict, source=source, given=_now())
        with place.exclusive(wait):
            labels = Labels.open(folder_of(place))
            kept = [old for old in labels.pairs if (old.first, old.second) != (first, second)]
            Labels((*kept, label), labels.cuts)._write(place)
        return label

    @staticmethod
    def forget_pair(place: Place, one: str, other: str, *, wait: float = 5.0) -> None:
        """Delete the verdict on two videos, given by their content hashes.

        Raises:
            InvalidArgumentError: There is no verdict on these videos.
            CollectionLockedError: Another process is writing.
        """
        first, second = sorted((one, other))
        with place.exclusive(wait):
            labels = Labels.open(folder_of(place))
            kept = tuple(old for old in labels.pairs if (old.first, old.second) != (first, second))
            if len(kept) == len(labels.pairs):
                raise InvalidArgumentError("there is no verdict on these two videos to undo")
            Labels(kept, labels.cuts)._write(place)

    @staticmethod
    def judge_cuts(
        place: Place,
        video: str,
        verdicts: Iterable[tuple[int, CutVerdict]],
        *,
        source: str,
        moved: Mapping[int, int] = MappingProxyType({}),
        wait: float = 5.0,
    ) -> list[CutLabel]:
        """Store verdicts on frames of a video; they replace earlier verdicts on the same frames.

        Args:
            place: Location of the index.
            video: Content hash of the video.
            verdicts: (frame, verdict) pairs.
            source: Origin of the verdicts.
            moved: Original frame of each moved cut by its new frame. The verdict on a moved cut replaces the verdicts
                on both frames, and an earlier move from the same frame.
            wait: Seconds to wait for another process to finish writing.

        Raises:
            InvalidArgumentError: A frame or a verdict is invalid.
            CollectionLockedError: Another process is writing.
        """
        added = [
            CutLabel(
                video=video, frame=frame, verdict=verdict, source=source, given=_now(), moved_from=moved.get(frame)
            )
            for frame, verdict in verdicts
        ]
        judged = {label.frame for label in added} | {label.moved_from for label in added if label.moved_from}
        with place.exclusive(wait):
            labels = Labels.open(folder_of(place))
            kept = [old for old in labels.cuts if old.video != video or judged.isdisjoint({old.frame, old.moved_from})]
            Labels(labels.pairs, (*kept, *added))._write(place)
        return added

    def _write(self, place: Place) -> None:
        path = _file(folder_of(place))
        path.parent.mkdir(exist_ok=True)
        write_text(path, json.dumps(asdict(self), indent=1) + "\n")


def is_held_back(*names: object) -> bool:
    """Whether a label is held out from training: about a third of all labels, selected by a hash of ``names`` so that
    the split never changes."""
    return sha256("\0".join(map(str, names)).encode()).digest()[0] < 256 // 3


def _file(index: Path) -> Path:
    return index / REVIEW_FOLDER / "labels.json"


def _known(kind: type[Any], row: dict[str, Any]) -> dict[str, Any]:
    return {field.name: row[field.name] for field in fields(kind) if field.name in row}


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


WANTED_PAIRS, WANTED_CUTS = 30, 20
"""Minimum number of verdicts for training; with fewer, the held-out part is too small to detect a difference."""


@dataclass(frozen=True, slots=True)
class Readiness(Result):
    """Whether there are enough verdicts for training.

    Attributes:
        given: Number of verdicts on videos in the index.
        wanted: Number of verdicts required for training.
        missing: Description of any other unmet requirement; empty if there is none.
    """

    given: int
    wanted: int
    missing: str

    @property
    def is_ready(self) -> bool:
        """Whether all requirements for training are met."""
        return self.given >= self.wanted and not self.missing


@check_arguments
def readiness_of_pairs(labels: Labels, contents: Collection[str]) -> Readiness:
    """Check whether there are enough verdicts on pairs for :func:`vidkin.review.train_measure`.

    Args:
        labels: Labels in the index.
        contents: Content hashes of the indexed videos that have features.
    """
    usable = [label for label in labels.pairs if label.first in contents and label.second in contents]
    parts = [(is_held_back(label.first, label.second), label.verdict) for label in usable]
    return Readiness(len(usable), WANTED_PAIRS, _missing(parts, "verdicts of at least two kinds"))


@check_arguments
def readiness_of_cuts(labels: Labels, contents: Collection[str]) -> Readiness:
    """Check whether there are enough verdicts on cuts for :func:`vidkin.review.train_cuts`.

    Args:
        labels: Labels in the index.
        contents: Content hashes of the indexed videos.
    """
    usable = [label for label in labels.cuts if label.video in contents]
    parts = [(is_held_back(label.video, label.frame), label.verdict) for label in usable]
    return Readiness(len(usable), WANTED_CUTS, _missing(parts, "both cuts and frames that are not cuts"))


def _missing(parts: Sequence[tuple[bool, Hashable]], words: str) -> str:
    """Describe the unmet requirement if the training or the held-out verdicts are all of one kind; empty otherwise."""
    kinds = [{verdict for is_back, verdict in parts if is_back is back} for back in (False, True)]
    if len(kinds[0] | kinds[1]) < 2:
        return words
    return f"{words} in the held-out third as well: more verdicts" if min(map(len, kinds)) < 2 else ""
