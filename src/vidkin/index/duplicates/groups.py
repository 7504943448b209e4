"""Groups of copies: the role of each member, and which one to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vidkin._base.plain_values import Result, fields_as_json
from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.grouping import Relation

__all__ = ["DuplicateGroup", "DuplicateMember"]


@dataclass(frozen=True, slots=True)
class DuplicateMember(Result):
    """One file of a group.

    Attributes:
        path: The file.
        score: In [0, 1], against ``compared_with``; for the best one, the highest score of the others.
        width, height: Pixels as displayed.
        duration: Seconds.
        size: Bytes.
        best: The one to keep.
        relation: ``whole``: shows the same as the other one from start to end; ``excerpt``: is a part of it;
            ``contains``: has it and more; ``overlaps``: shares a part with it.
        compared_with: Path of the other one: the best if they match, otherwise the most similar one. None for the
            best.
        start, end: For an excerpt, the seconds of the other one that it shows; otherwise the seconds of this file that
            the other one shows; None for a whole.
        mirrored: Whether it is flipped left to right.
        lacking: Seconds of this file that the best one does not show; 0 for the best.
        links: Other names of the same file (hard links).
        doubt: Why it may not be a copy at all, in a few words; empty if there is no doubt.
    """

    path: str
    score: float
    width: int
    height: int
    duration: float
    size: int
    best: bool
    relation: Relation = "whole"
    compared_with: str | None = None
    start: float | None = None
    end: float | None = None
    mirrored: bool = False
    lacking: float = 0.0
    links: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def is_spare(self) -> bool:
        """Whether it can be removed without loss: the best one shows all of it, as far as can be told."""
        return not (self.best or self.lacking or self.doubt)

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``is_spare`` as plain values, as ``vidkin duplicates --json`` prints them."""
        return {**fields_as_json(self), "is_spare": self.is_spare}


@dataclass(frozen=True, slots=True)
class DuplicateGroup(Result):
    """Files that hold the same material, the best copy first.

    Attributes:
        members: The best first, the others by descending score.
        reason: Why the best one was chosen.
    """

    members: tuple[DuplicateMember, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        if len(self.members) < 2 or sum(member.best for member in self.members) != 1:
            raise InvalidArgumentError(
                f"a group must have at least 2 members with one of them the best, got {len(self.members)} with "
                f"{sum(member.best for member in self.members)}"
            )

    @property
    def best(self) -> DuplicateMember:
        """The copy to keep."""
        return next(member for member in self.members if member.best)

    @property
    def savings(self) -> int:
        """Bytes of the members that are spare; a file with several hard links frees its bytes only with all of them."""
        return sum(member.size for member in self.members if member.is_spare)

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``savings`` as plain values, as ``vidkin duplicates --json`` prints them."""
        return {**fields_as_json(self), "savings": self.savings}
