"""Results of a duplicate search: groups of copies, and the role of each file in its group."""

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
        path: Path of the file.
        score: Score against ``compared_with``, in [0, 1]; for the best file, the highest score in the group.
        width, height: Size in pixels as displayed.
        duration: Duration in seconds.
        size: Size in bytes.
        best: Whether this is the file to keep.
        relation: Relation to ``compared_with``. ``whole``: both match from start to end; ``excerpt``: this file is part
            of it; ``contains``: this file contains it and more; ``overlaps``: they share a segment.
        compared_with: Path of the other file: the best file if it matches, otherwise the most similar one. None for the
            best file.
        start, end: For an excerpt or a trimmed copy, start and end in seconds of the part of the other file that this
            file shows; otherwise start and end of the part of this file that the other shows. None for a whole copy.
        mirrored: Whether this file is flipped left to right.
        turned: Clockwise rotation of this file in degrees that matches the other file: 0, 90, 180 or 270.
        lacking: Seconds of this file that the best file does not show; 0 for the best file.
        links: Other names of the same file (hard links).
        doubt: Short reason why this file may not be a copy; empty if there is no doubt.
        stays: Short reason why this file is kept in any case, for example because it is in the library of ``incoming``
            or is the video part of a photograph. For the best file, why no other file may be chosen. Empty if the file
            may be removed.
        companions: Paths of files that belong to this file and are moved with it, such as subtitles.
        differences: Differences from ``compared_with``, see
            :class:`vidkin.index.duplicates.differences.Difference`; empty if none are known.
        segments: Segments that match ``compared_with``, with this file as the query; empty for byte-identical files.
        traits: Frame rate, audio tracks, date and other properties that distinguish copies; None if the file was not
            opened.
        proof: Result of decoding this file and ``kept_by``, or else the best file; None if they were not decoded.
        kept_by: Path of the kept file that contains everything in this file; None unless this is proven.
        findings: What the best file lacks according to the proof, except accepted findings.
        picture, sound: Scores by picture alone and by sound alone, in [0, 1]; for the best file, the highest in the
            group. None if either file has no sound, or the index has no audio fingerprints.
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
        """Create a member from a file record, its score, and the values of the other fields."""
        record = file.record
        shape = record.width, record.height, record.duration, record.size
        belonging = find_companions(record.path)
        if not others["best"] and not others.get("stays") and find_photograph(record.path, record.duration):
            others["stays"] = "it is the video part of a photograph"
        return cls(record.path, score, *shape, links=file.links, companions=belonging, **others)

    @property
    def is_spare(self) -> bool:
        """Whether the file can probably be removed: there is no known reason against it, but it may not be proven."""
        return not (self.best or self.lacking or self.doubt or self.stays)

    @property
    def is_proven(self) -> bool:
        """Whether decoding has proven that a kept file contains everything in this file."""
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
                f"a group must have at least 2 members, exactly one of which is the best, got "
                f"{len(self.members)} members with {sum(member.best for member in self.members)} best"
            )

    @property
    def best(self) -> DuplicateMember:
        """The file to keep."""
        return next(member for member in self.members if member.best)

    @property
    def savings(self) -> int:
        """Total size of the spare files in bytes; a file with hard links frees its space only if all are removed."""
        return sum(member.size for member in self.members if member.is_spare)

    def cards(self, path: str = "") -> list[Card]:
        """One frame of each file, for display in a notebook."""
        return [
            Card(member.path, None, shown_name(member.path), f"best: {self.reason}" if member.best else _facts(member))
            for member in self.members
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row per file."""
        return [member.to_dict() for member in self.members]

    def to_pandas(self) -> Any:
        """Return the files as a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@dataclass(frozen=True, slots=True)
class FoundGroup(Result):
    """Preliminary or final group, reported while the search is running.

    Attributes:
        id: Number of the group in this search; later reports with the same number replace earlier ones.
        sequence: Number of the report: 1, 2, 3 and so on.
        is_final: Whether the group will not change again. For preliminary groups, no files are read: the best file is
            chosen from data in the index, nothing is proven, and members may change.
        group: The group; None if it was withdrawn because its files no longer form a group or joined another one.
    """

    id: int
    sequence: int
    is_final: bool
    group: DuplicateGroup | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, with the fields of the group at the same level; if there is no group,
        ``members`` is empty."""
        group = {"members": [], "reason": "", "savings": 0} if self.group is None else self.group.to_dict()
        return {"id": self.id, "sequence": self.sequence, "is_final": self.is_final, **group}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FoundGroup:
        """Restore a result from the plain values of :meth:`to_dict`."""
        given = as_object(cls, values)
        return read_fields(cls, {**given, "group": given if given.get("members") else None})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """Return the type of each plain value, by key."""
        own = {name: kind for name, kind in field_types(cls).items() if name != "group"}
        return {**own, **DuplicateGroup.plain_types()}


def _facts(member: DuplicateMember) -> str:
    return f"{member.relation}, score {member.score:.2f}{', ' + member.doubt if member.doubt else ''}"
