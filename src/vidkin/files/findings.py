"""Findings of a proof: content of a removed file that the kept file lacks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from vidkin._base.arguments import check_constructor
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
"""Kinds of content that can be missing from the kept file."""

FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)

NEVER_ACCEPTED: frozenset[FindingKind] = frozenset({"picture", "ends", "enlargement", "unreadable"})
"""Kinds that can only be accepted for one pair at a time, not for all files at once."""


@check_constructor
@dataclass(frozen=True, slots=True)
class Finding(Result):
    """Content of a removed file that the kept file lacks or may lack.

    Attributes:
        kind: Kind of content.
        text: Short description, such as "0:09.0-0:14.0 shows something else".
        start, end: Affected part of the removed file in seconds; None for the whole file.
        certainty: Confidence in (0, 1]; 1 for properties from the file header.
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
    """Check the kinds of findings that the user accepts for all files.

    Raises:
        InvalidArgumentError: A kind is unknown or cannot be accepted for all files at once.
    """
    allowed = [kind for kind in FINDING_KINDS if kind not in NEVER_ACCEPTED]
    for kind in kinds:
        if kind in NEVER_ACCEPTED:
            raise InvalidArgumentError(
                f"accept must not contain {kind!r}, which is lost footage; mark a pair of files as duplicates instead"
            )
        if kind not in allowed:
            raise InvalidArgumentError(f"accept may only contain {', '.join(allowed)}, got {kind!r}")
    return frozenset(kind for kind in allowed if kind in kinds)
