"""What a removed file has that the kept file lacks: the findings of a proof."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError

FindingKind = Literal[
    "picture",
    "ends",
    "resolution",
    "quality",
    "borders",
    "enlargement",
    "frame-rate",
    "dynamic-range",
    "alpha",
    "sound",
    "subtitles",
    "chapters",
    "attachments",
    "data",
    "metadata",
    "unreadable",
]
"""What can be missing from the kept file."""

FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)

NEVER_ACCEPTED: frozenset[FindingKind] = frozenset({"picture", "ends", "enlargement", "unreadable"})
"""Kinds that nobody can accept for all files at once, only pair by pair."""


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One thing that a removed file has and the kept file does not have, or may not have.

    Attributes:
        kind: What is missing.
        text: The finding in a few words, such as "0:09.0-0:14.0 shows something else".
        start, end: The stretch of the removed file that it is about, in seconds; None for the whole file.
        certainty: How sure it is, in (0, 1]; 1 for what the file itself states.
    """

    kind: FindingKind
    text: str
    start: float | None = None
    end: float | None = None
    certainty: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in FINDING_KINDS:
            raise InvalidArgumentError(f"kind must be one of {', '.join(FINDING_KINDS)}, got {self.kind!r}")
        if not 0.0 < self.certainty <= 1.0:
            raise InvalidArgumentError(f"certainty must be above 0 and at most 1, got {self.certainty}")
        if (self.start is None) != (self.end is None):
            raise InvalidArgumentError(f"start and end must both be given or both None, got {self.start}, {self.end}")
        if self.start is not None and self.end is not None and not 0.0 <= self.start <= self.end:
            raise InvalidArgumentError(f"start must be at least 0 and at most end, got {self.start} and {self.end}")


def check_accepted(kinds: Collection[str]) -> frozenset[FindingKind]:
    """Check kinds of findings that somebody accepts for all files.

    Raises:
        InvalidArgumentError: One is unknown, or is not to be accepted for all files at once.
    """
    allowed = [kind for kind in FINDING_KINDS if kind not in NEVER_ACCEPTED]
    for kind in kinds:
        if kind in NEVER_ACCEPTED:
            raise InvalidArgumentError(
                f"accept must not have {kind!r}: that is lost footage; mark a pair of files as duplicates instead"
            )
        if kind not in allowed:
            raise InvalidArgumentError(f"accept must be some of {', '.join(allowed)}, got {kind!r}")
    return frozenset(kind for kind in allowed if kind in kinds)
