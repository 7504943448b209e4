"""What has to be done for each file found, by comparing it with the records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vidkin.index.ingest.scan import FoundFile, content_hash, is_gone
from vidkin.index.storage.contract import VideoRecord

__all__ = ["Copy", "Extract", "Keep", "Move", "Plan", "Step", "Unreadable"]


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing has changed. ``record`` differs from the stored one if only the time of change did."""

    file: FoundFile
    record: VideoRecord
    touched: bool


@dataclass(frozen=True, slots=True)
class Move:
    """The content is known from a path that is gone: ``record`` is the old one with the new path."""

    file: FoundFile
    record: VideoRecord
    old_path: str


@dataclass(frozen=True, slots=True)
class Copy:
    """The content is that of another file: its features serve for this one as well.

    Unless, by the time it is done, the other file's record says that its content has changed.
    """

    file: FoundFile
    hash: str
    source_path: str
    known: bool


@dataclass(frozen=True, slots=True)
class Extract:
    """The file has to be read. ``known`` when it replaces a record of the same path."""

    file: FoundFile
    hash: str
    known: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The file cannot even be opened."""

    file: FoundFile
    cause: str


Step = Keep | Move | Copy | Extract | Unreadable


class Plan:
    """Steps for files, made one at a time: hashing goes on beside decoding.

    Args:
        records: All records of the collection.
        retry_broken: Read broken files again although they did not change.
    """

    def __init__(self, records: Iterable[VideoRecord], *, retry_broken: bool = False) -> None:
        self._by_path = {record.path: record for record in records}
        self._by_hash: dict[str, list[VideoRecord]] = defaultdict(list)
        for record in self._by_path.values():
            self._by_hash[record.content_hash].append(record)
        self._retry_broken = retry_broken
        self._moved: dict[int, str] = {}
        self._in_work: dict[str, str] = {}

    def steps(self, files: Iterable[FoundFile]) -> Iterator[Step]:
        """One step for each file, in order."""
        for file in files:
            yield self._step(file)

    def _step(self, file: FoundFile) -> Step:
        record = self._by_path.get(file.path)
        retry = record is not None and (
            record.to_be_read_again or (self._retry_broken and record.status == "broken")
        )
        if record is not None and not retry and (record.size, record.mtime_ns) == (file.size, file.mtime_ns):
            return Keep(file, record, touched=False)
        try:
            digest = content_hash(file.path, file.size)
        except OSError as error:
            return Unreadable(file, f"cannot be read: {(error.strerror or type(error).__name__).lower()}")
        if record is not None and not retry and record.content_hash == digest:
            return Keep(file, replace(record, size=file.size, mtime_ns=file.mtime_ns), touched=True)
        if record is None and (moved := self._moved_from(digest)) is not None:
            self._moved[moved.id] = file.path
            now = replace(moved, path=file.path, size=file.size, mtime_ns=file.mtime_ns)
            return Move(file, now, moved.path)
        source = self._same_content(digest)
        if source is not None:
            return Copy(file, digest, source, known=record is not None)
        self._in_work[digest] = file.path
        return Extract(file, digest, known=record is not None)

    def _moved_from(self, digest: str) -> VideoRecord | None:
        """A record of this content whose file is gone, and that no other file has been recognised as."""
        for record in self._by_hash.get(digest, ()):
            again = record.to_be_read_again or (record.status == "broken" and self._retry_broken)
            if record.id in self._moved or again:
                continue
            if is_gone(record.path):
                return record
        return None

    def _same_content(self, digest: str) -> str | None:
        """Path of a file with this content that has features, or will have when this run is done."""
        for record in self._by_hash.get(digest, ()):
            if record.status == "ok":
                return self._moved.get(record.id, record.path)
        return self._in_work.get(digest)
