"""What `vidkin duplicates` finds: groups of copies, and the role of each file in its group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vidkin._base.arguments import check_constructor
from vidkin._base.plain import as_object, field_types, read_fields
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.files.companions import find_companions, find_photograph
from vidkin.files.findings import Finding
from vidkin.files.proof_record import Proof
from vidkin.index.duplicates.comparisons import FileRecord, Relation
from vidkin.index.duplicates.differences import Difference
from vidkin.index.duplicates.traits import Traits
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import Segment


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
        start, end: For an excerpt, or a copy whose ends are cut off, the seconds of the other one that it shows;
            otherwise the seconds of this file that the other one shows; None for a whole.
        mirrored: Whether it is flipped left to right.
        turned: Degrees by which it has to be turned clockwise to show the other one: 0, 90, 180 or 270.
        lacking: Seconds of this file that the best one does not show; 0 for the best.
        links: Other names of the same file (hard links).
        doubt: Why it may not be a copy at all, in a few words; empty if there is no doubt.
        stays: Why it stays whatever the best one shows, in a few words: it is in the library of ``incoming``, or the
            movie of a photograph. Of the best one: why nothing of it may change. Empty if nothing speaks against it.
        companions: Files that belong to it and go where it goes, such as subtitles; paths.
        differences: What kind of copy it is: each way in which it differs from ``compared_with``, see
            :class:`vidkin.index.duplicates.differences.Difference`; empty if nothing can be told.
        segments: Where it matches ``compared_with``, with this file as the query; none where both have the same bytes.
        traits: Frame rate, sound tracks, date and what else tells copies apart; None where the file was not opened.
        proof: What decoding this file and ``kept_by``, or else the best one, has shown; None if they were not decoded.
        kept_by: Path of the file that stays and has everything in it; None unless that is proven.
        findings: What it has that the best one lacks, by the proof, and nobody accepted.
        picture, sound: What each of them says alone, in [0, 1]; of the best one, the highest of the others. None where
            one of the two files has no sound, or the index knows none.
    """

    derived: ClassVar = ("is_spare", "is_proven")

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
    turned: int = 0
    lacking: float = 0.0
    links: tuple[str, ...] = ()
    doubt: str = ""
    stays: str = ""
    companions: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    segments: tuple[Segment, ...] = ()
    picture: float | None = None
    sound: float | None = None
    traits: Traits | None = None
    proof: Proof | None = None
    kept_by: str | None = None
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, file: FileRecord, score: float, **others: Any) -> DuplicateMember:
        """A member that is this file; the other fields as they are named."""
        record = file.record
        shape = record.width, record.height, record.duration, record.size
        belonging = find_companions(record.path)
        if not others["best"] and not others.get("stays") and find_photograph(record.path, record.duration):
            others["stays"] = "the movie of a photograph of the same name"
        return cls(record.path, score, *shape, links=file.links, companions=belonging, **others)

    @property
    def is_spare(self) -> bool:
        """Whether it seems that it can be removed: nothing speaks against it. `is_proven` says whether it is proven."""
        return not (self.best or self.lacking or self.doubt or self.stays)

    @property
    def is_proven(self) -> bool:
        """Whether decoding has proven that a file that stays has everything in it."""
        return self.kept_by is not None and self.is_spare


@check_constructor
@dataclass(frozen=True, slots=True)
class DuplicateGroup(Result):
    """Files that hold the same material, the best copy first.

    Attributes:
        members: The best first, the others by descending score.
        reason: Why the best one was chosen.
    """

    derived: ClassVar = ("savings",)

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

    def cards(self, path: str = "") -> list[Card]:
        """A picture of each file, for a notebook."""
        return [
            Card(member.path, None, shown_name(member.path), f"best: {self.reason}" if member.best else _facts(member))
            for member in self.members
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a file."""
        return [member.to_dict() for member in self.members]

    def to_pandas(self) -> Any:
        """The files as a pandas DataFrame; :class:`vidkin.errors.MissingPartError` where it is not installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@dataclass(frozen=True, slots=True)
class FoundGroup(Result):
    """A group as far as it is known while a search is at work.

    Attributes:
        id: Number of the group in this search: a later one with the same number replaces it.
        sequence: 1, 2, 3 and so on, in the order in which groups are told.
        is_final: Whether it stays as it is. Until then no file was read for it: its best one is preferred by what the
            index knows, nothing is proven, and members come and go.
        group: The group; None if its files are in none, or in another one, after all.
    """

    id: int
    sequence: int
    is_final: bool
    group: DuplicateGroup | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, those of the group beside the others; without a group ``members`` is empty."""
        group = {"members": [], "reason": "", "savings": 0} if self.group is None else self.group.to_dict()
        return {"id": self.id, "sequence": self.sequence, "is_final": self.is_final, **group}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FoundGroup:
        """The group of which :meth:`to_dict` gave these plain values."""
        given = as_object(cls, values)
        return read_fields(cls, {**given, "group": given if given.get("members") else None})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """The type of each plain value by its key."""
        own = {name: kind for name, kind in field_types(cls).items() if name != "group"}
        return {**own, **DuplicateGroup.plain_types()}


def _facts(member: DuplicateMember) -> str:
    return f"{member.relation}, score {member.score:.2f}{', ' + member.doubt if member.doubt else ''}"
