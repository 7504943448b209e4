"""User decisions saved with an index: verdicts on pairs and recurring segments, preferred copies; lookup by path."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, parse_json
from vidkin.errors import CollectionDamagedError, CollectionError, InvalidArgumentError, NotIndexedError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import NamedFolders, write_atomically
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord

DuplicateVerdict = Literal["match", "not a match"]
RecurringVerdict = Literal["recurs", "does not recur"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Decision(Result):
    """A user verdict on a pair of videos.

    Attributes:
        first, second: Paths of the files with the content of each video; empty if there are none left in the index.
        verdict: The verdict.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    verdict: DuplicateVerdict


@check_constructor
@dataclass(frozen=True, slots=True)
class DecidedStretch:
    """An occurrence of a recurring segment as decided by the user.

    Attributes:
        content: Content hash of the file.
        start, end: Start and end in seconds.
        belongs: Whether it belongs to the group; False for a wrong occurrence.
        source: Whether it is the original footage of a recap.
    """

    content: str
    start: float
    end: float
    belongs: bool = True
    source: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end < float("inf"):
            raise InvalidArgumentError(f"an occurrence must end after it starts, got [{self.start}, {self.end}] s")

    def is_at(self, other: DecidedStretch) -> bool:
        """Whether both concern about the same segment of the same file."""
        return self.content == other.content and overlaps((self.start, self.end), (other.start, other.end))


@dataclass(frozen=True, slots=True)
class RecurringDecision:
    """A user decision about a group of recurring segments.

    Attributes:
        verdict: Whether the segment recurs.
        name: Name of the segment; empty to use the name of its kind.
        kind: Kind of the group.
        stretches: The occurrences.
        found_by: Whether the group was found by picture or by sound; segments found by sound may look different.
    """

    verdict: RecurringVerdict
    name: str
    kind: str
    stretches: tuple[DecidedStretch, ...]
    found_by: Literal["picture", "sound"] = "picture"

    @property
    def is_inside(self) -> bool:
        """Whether the decision concerns a segment repeated within one file."""
        return len({stretch.content for stretch in self.stretches if stretch.belongs}) == 1

    def is_about(self, stretches: Iterable[DecidedStretch], found_by: str) -> bool:
        """Whether the decision concerns the group with these occurrences: it was found in the same way, and at least
        half of the smaller set of occurrences are the same."""
        if found_by != self.found_by:
            return False
        others = tuple(stretches)
        known = sum(any(one.is_at(other) for other in self.stretches) for one in others)
        return 2 * known >= min(len(others), len(self.stretches)) > 0


def overlaps(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two segments of a file, (start, end) in seconds, are mostly the same: half of the shorter lies within the
    longer, which is at most four times as long."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter, longer = sorted((one[1] - one[0], other[1] - other[0]))
    return shared >= 0.5 * shorter and shorter >= 0.25 * longer


@dataclass(slots=True)
class Decisions:
    """User decisions of an index; files are identified by content hash.

    Attributes:
        verdicts: Verdicts keyed by unordered pair of content hashes.
        preferred: Paths of the copies to keep, keyed by content hash.
        recurring: Decisions about groups of recurring segments.
    """

    FILE = "decisions.json"

    verdicts: dict[frozenset[str], DuplicateVerdict] = field(default_factory=dict)
    preferred: dict[str, str] = field(default_factory=dict)
    recurring: list[RecurringDecision] = field(default_factory=list)

    def decide(self, first: str, second: str, verdict: DuplicateVerdict) -> None:
        """Set the verdict on two content hashes, replacing an earlier one.

        Raises:
            InvalidArgumentError: The hashes are equal.
        """
        if first == second:
            raise InvalidArgumentError("the two videos must differ, got byte-identical files")
        self.verdicts[frozenset((first, second))] = verdict

    def forget(self, first: str, second: str) -> None:
        """Delete the verdict on two content hashes.

        Raises:
            InvalidArgumentError: There is no such verdict.
        """
        if self.verdicts.pop(frozenset((first, second)), None) is None:
            raise InvalidArgumentError(
                "there is no decision about these two videos; list all decisions with `vidkin decisions`"
            )

    def verdict(self, first: str, second: str) -> DuplicateVerdict | None:
        """Return the verdict on a pair, or None."""
        return self.verdicts.get(frozenset((first, second)))

    def prefers(self, record: VideoRecord) -> bool:
        """Whether the user prefers the content of this file, no matter which of its byte-identical files."""
        return record.content_hash in self.preferred

    def names(self, record: VideoRecord) -> bool:
        """Whether the user prefers exactly this file."""
        return self.preferred.get(record.content_hash) == record.path

    @classmethod
    def open(cls, place: Place) -> Decisions:
        """Load the decisions of an index.

        Raises:
            CollectionDamagedError: The file is damaged; it is not deleted.
        """
        content = place.read(cls.FILE)
        if content is None:
            return cls()
        try:
            decisions, table = cls(), parse_json(content.decode())
            for row in table["decisions"]:
                first, second, verdict = row["first"], row["second"], row["verdict"]
                if (
                    not isinstance(first, str)
                    or not isinstance(second, str)
                    or verdict not in get_args(DuplicateVerdict)
                ):
                    raise ValueError(f"{row} is not a decision")
                decisions.decide(first, second, verdict)
            for row in table.get("preferred", ()):
                content, file = row["content"], row["path"]
                if not isinstance(content, str) or not isinstance(file, str):
                    raise ValueError(f"{row} is not a preferred copy")
                decisions.preferred[content] = file
            decisions.recurring = [_recurring_decision(row) for row in table.get("recurring", ())]
            return decisions
        except (ValueError, KeyError, TypeError, InvalidArgumentError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); correct it, restore it from a backup or move it away"
            ) from error

    def save(self, place: Place) -> None:
        """Save the decisions in the index, atomically."""
        rows: list[dict[str, str]] = [
            {"first": min(pair), "second": max(pair), "verdict": verdict}
            for pair, verdict in sorted(self.verdicts.items(), key=lambda item: sorted(item[0]))
        ]
        table: dict[str, list[Any]] = {"decisions": rows}
        if self.preferred:
            table["preferred"] = [
                {"content": content, "path": path} for content, path in sorted(self.preferred.items())
            ]
        if self.recurring:
            table["recurring"] = [asdict(decision) for decision in self.recurring]
        write_atomically(place, self.FILE, json.dumps(table, indent=1).encode())


def _recurring_decision(row: Mapping[str, Any]) -> RecurringDecision:
    """Parse a stored decision.

    Raises:
        ValueError, KeyError, TypeError, InvalidArgumentError: The decision is invalid.
    """
    stretches = tuple(
        DecidedStretch(
            str(each["content"]),
            float(each["start"]),
            float(each["end"]),
            each.get("belongs") is not False,
            each.get("source") is True,
        )
        for each in row["stretches"]
    )
    if row["verdict"] not in get_args(RecurringVerdict) or not isinstance(row["name"], str):
        raise ValueError(f"{row} is not a decision about recurring segments")
    found_by: Literal["picture", "sound"] = "sound" if row.get("found_by") == "sound" else "picture"
    return RecurringDecision(row["verdict"], row["name"], str(row["kind"]), stretches, found_by)


def decide_pair(
    place: Place,
    store: VectorStore,
    first: PathLike,
    second: PathLike,
    verdict: DuplicateVerdict,
    *,
    wait: float,
) -> None:
    """Save a verdict on two videos of an index.

    Args:
        place: Location of the index.
        store: Store of the index.
        first, second: Two files in the index.
        verdict: The verdict, which overrides their score.
        wait: Seconds to wait for another writer.

    Raises:
        NotIndexedError: A file is not in the index, or its content is unknown.
        CollectionLockedError: Another process is writing.
    """
    hashes = content_hash_of(store, first), content_hash_of(store, second)
    with changing(place, wait) as decisions:
        decisions.decide(*hashes, verdict)


def forget_pair(place: Place, store: VectorStore, first: PathLike, second: PathLike, *, wait: float) -> None:
    """Delete the verdict on two videos of an index; see :func:`decide_pair`.

    Raises:
        InvalidArgumentError: There is no such verdict.
    """
    hashes = content_hash_of(store, first), content_hash_of(store, second)
    with changing(place, wait) as decisions:
        decisions.forget(*hashes)


def prefer_copy(
    place: Place, store: VectorStore, path: PathLike, instead_of: Iterable[PathLike], *, wait: float
) -> None:
    """Save which of several copies to keep, replacing earlier preferences among them.

    Args:
        place: Location of the index.
        store: Store of the index.
        path: The file to keep, which must be in the index.
        instead_of: The other copies, which must be in the index.
        wait: Seconds to wait for another writer.

    Raises:
        NotIndexedError: A file is not in the index, or its content is unknown.
        CollectionLockedError: Another process is writing.
    """
    others = {content_hash_of(store, other) for other in instead_of}
    content, record = content_hash_of(store, path), find_records(store, path)[0]
    with changing(place, wait) as decisions:
        for other in others:
            decisions.preferred.pop(other, None)
        decisions.preferred[content] = record.path


def list_decisions(place: Place, store: VectorStore) -> list[Decision]:
    """Return all verdicts on pairs in an index, sorted by files."""
    paths: dict[str, list[str]] = {}
    for record in store.videos():
        paths.setdefault(record.content_hash, []).append(record.path)
    decisions = []
    for pair, verdict in Decisions.open(place).verdicts.items():
        first, second = sorted(tuple(paths.get(content, ())) for content in pair)
        decisions.append(Decision(first, second, verdict))
    return sorted(decisions, key=lambda decision: (decision.first, decision.second))


@contextmanager
def changing(place: Place, wait: float) -> Iterator[Decisions]:
    """Yield the decisions of an index for modification, and save them at the end of the block; the write lock is held
    throughout."""
    with place.exclusive(wait):
        decisions = Decisions.open(place)
        yield decisions
        decisions.save(place)


def find_records(store: VectorStore, path: str | os.PathLike[str]) -> list[VideoRecord]:
    """Find the record of a file, or the records of all files in a folder and its subfolders.

    Args:
        store: Store of the index.
        path: Path of a video or folder; it may be relative or start with ``~``, and differ in Unicode normalization.

    Returns:
        At least one record.

    Raises:
        NotIndexedError: There is no such record.
    """
    name = os.path.abspath(os.path.expanduser(os.fspath(path)))
    inside = NamedFolders([name])
    records = [r for r in store.videos() if r.path == name or inside.holding(r.path)]
    if not records:
        normalized = _plain(name)
        records = [r for r in store.videos() if _plain(r.path) == normalized]
    if not records:
        raise NotIndexedError(f"{name} is not in the index; list indexed videos with `vidkin info --videos`")
    return records


def content_hash_of(store: VectorStore, path: PathLike) -> str:
    """Return the content hash of one video in an index; paths are resolved as in :func:`find_records`.

    Raises:
        NotIndexedError: There is no such record, or its content is unknown.
        CollectionError: The path is a folder with several videos.
    """
    records = find_records(store, path)
    if len(records) > 1:
        raise CollectionError(f"{os.fspath(path)} is a folder with {len(records)} videos; specify a single file")
    if not records[0].content_hash:
        raise NotIndexedError(f"{records[0].path} changed while it was being read; index it again")
    return records[0].content_hash


def has_record(store: VectorStore, path: str | os.PathLike[str]) -> bool:
    """Whether there is a record of exactly this file; paths are resolved as in :func:`find_records`."""
    name = os.path.abspath(os.path.expanduser(os.fspath(path)))
    normalized = _plain(name)
    return store.find(name) is not None or any(_plain(record.path) == normalized for record in store.videos())


def _plain(path: str) -> str:
    """Normalize a path for comparison: to Unicode NFC and, on Windows, to one case and kind of slash."""
    return os.path.normcase(unicodedata.normalize("NFC", path))
