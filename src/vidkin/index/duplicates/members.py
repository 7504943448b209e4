"""Results of `vidkin duplicates`: groups of copies, and the role of each file in its group."""

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
        score: In [0, 1], against ``compared_with``; for the best file, the highest score of the others.
        width, height: Pixels as displayed.
        duration: Seconds.
        size: Bytes.
        best: Whether it is the file to keep.
        relation: ``whole``: shows the same as the other file from start to end; ``excerpt``: is a part of it;
            ``contains``: includes it and more; ``overlaps``: shares a part with it.
        compared_with: Path of the other file: the best file if they match, otherwise the most similar one. None for the
            best.
        start, end: For an excerpt or a trimmed copy, the seconds of the other file that it shows; otherwise the seconds
            of this file that the other file shows; None for a whole copy.
        mirrored: Whether it is flipped left to right.
        turned: Degrees by which it must be rotated clockwise to match the other file: 0, 90, 180 or 270.
        lacking: Seconds of this file that the best file does not show; 0 for the best.
        links: Other names of the same file (hard links).
        doubt: Short reason why it may not be a copy at all; empty if there is no doubt.
        stays: Short reason why it stays regardless of the best file: it is in the library of ``incoming``, or is the
            movie of a photograph. For the best file, why it must not change. Empty if it may be removed.
        companions: Paths of files that belong to it and are moved with it, such as subtitles.
        differences: Ways in which it differs from ``compared_with``, see
            :class:`vidkin.index.duplicates.differences.Difference`; empty if none are known.
        segments: Where it matches ``compared_with``, with this file as the query; empty if both have the same bytes.
        traits: Frame rate, sound tracks, date and other properties that distinguish copies; None if the file was not
            opened.
        proof: Result of decoding this file and ``kept_by``, or else the best file; None if they were not decoded.
        kept_by: Path of the file that stays and contains everything in it; None unless that is proven.
        findings: Content that the best file lacks according to the proof, and that was not accepted.
        picture, sound: Scores by picture alone and by sound alone, in [0, 1]; for the best file, the highest of the
            others. None if one of the two files has no sound, or the index has no audio fingerprints.
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
        """Make a member for this file, with these other fields."""
        record = file.record
        shape = record.width, record.height, record.duration, record.size
        belonging = find_companions(record.path)
        if not others["best"] and not others.get("stays") and find_photograph(record.path, record.duration):
            others["stays"] = "the movie of a photograph of the same name"
        return cls(record.path, score, *shape, links=file.links, companions=belonging, **others)

    @property
    def is_spare(self) -> bool:
        """Whether it can probably be removed, because there is no known reason against it; `is_proven` is the proof."""
        return not (self.best or self.lacking or self.doubt or self.stays)

    @property
    def is_proven(self) -> bool:
        """Whether decoding has proven that a file that stays has everything in it."""
        return self.kept_by is not None and self.is_spare


@check_constructor
@dataclass(frozen=True, slots=True)
class DuplicateGroup(Result):
    """Files with the same content, the best copy first.

    Attributes:
        members: The best file first, then the others by descending score.
        reason: Why the best file was chosen.
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
        """Bytes of the spare members; a file with several hard links frees its bytes only if all of them are
        removed."""
        return sum(member.size for member in self.members if member.is_spare)

    def cards(self, path: str = "") -> list[Card]:
        """A frame of each file, for a notebook."""
        return [
            Card(member.path, None, shown_name(member.path), f"best: {self.reason}" if member.best else _facts(member))
            for member in self.members
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row per file."""
        return [member.to_dict() for member in self.members]

    def to_pandas(self) -> Any:
        """The files as a pandas DataFrame; :class:`vidkin.errors.MissingPartError` if pandas is not installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@dataclass(frozen=True, slots=True)
class FoundGroup(Result):
    """Preliminary or final group, reported while the search runs.

    Attributes:
        id: Number of the group in this search; a later report with the same number replaces it.
        sequence: 1, 2, 3 and so on, in the order in which groups are reported.
        is_final: Whether the group will not change again. Until then no files were read for it: its best file is chosen
            by data in the index, nothing is proven, and members may change.
        group: The group; None if it was withdrawn, because its files are in no group or in another one.
    """

    id: int
    sequence: int
    is_final: bool
    group: DuplicateGroup | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, with the fields of the group at the same level; without a group, ``members`` is
        empty."""
        group = {"members": [], "reason": "", "savings": 0} if self.group is None else self.group.to_dict()
        return {"id": self.id, "sequence": self.sequence, "is_final": self.is_final, **group}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FoundGroup:
        """Restore a group from the plain values of :meth:`to_dict`."""
        given = as_object(cls, values)
        return read_fields(cls, {**given, "group": given if given.get("members") else None})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """The type of each plain value by its key."""
        own = {name: kind for name, kind in field_types(cls).items() if name != "group"}
        return {**own, **DuplicateGroup.plain_types()}


def _facts(member: DuplicateMember) -> str:
    return f"{member.relation}, score {member.score:.2f}{', ' + member.doubt if member.doubt else ''}"
