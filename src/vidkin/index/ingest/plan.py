"""Plan what to do with each file by comparing it with the records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vidkin.index.ingest.scan import VideoFile
from vidkin.index.storage.files import content_hash, has_same_bytes, is_gone
from vidkin.index.storage.records import VideoRecord


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing has changed; if ``touched``, ``record`` has a new modification time."""

    file: VideoFile
    record: VideoRecord
    touched: bool


@dataclass(frozen=True, slots=True)
class Move:
    """The content is known from a path that is gone: ``record`` is the old one with the new path."""

    file: VideoFile
    record: VideoRecord
    old_path: str


@dataclass(frozen=True, slots=True)
class Copy:
    """The content is that of another file, whose features are reused.

    Unless the other file's record says by then that its content has changed.
    """

    file: VideoFile
    hash: str
    source_path: str
    known: bool


@dataclass(frozen=True, slots=True)
class Extract:
    """The file must be read; ``known`` if it replaces a record of the same path."""

    file: VideoFile
    hash: str
    known: bool


@dataclass(frozen=True, slots=True)
class Fail:
    """The file cannot even be opened."""

    file: VideoFile
    cause: str


PlanStep = Keep | Move | Copy | Extract | Fail


class Plan:
    """Plans steps for files one at a time, so that files are hashed while others are decoded.

    Args:
        records: All records of the index.
        retry_broken: Read broken files again even if they have not changed.
    """

    def __init__(self, records: Iterable[VideoRecord], *, retry_broken: bool = False) -> None:
        self._by_path = {record.path: record for record in records}
        self._by_hash: dict[str, list[VideoRecord]] = defaultdict(list)
        for record in self._by_path.values():
            self._by_hash[record.content_hash].append(record)
        self._retry_broken = retry_broken
        self._moved: dict[int, str] = {}
        self._in_work: dict[str, str] = {}

    def steps(self, files: Iterable[VideoFile]) -> Iterator[PlanStep]:
        """One step for each file, in order."""
        for file in files:
            yield self._step(file)

    def _step(self, file: VideoFile) -> PlanStep:
        record = self._by_path.get(file.path)
        retry = record is not None and self._must_be_read(record)
        if record is not None and not retry and (record.size, record.mtime_ns) == (file.size, file.mtime_ns):
            return Keep(file, record, touched=False)
        try:
            content = content_hash(file.path, file.size)
            digest = content.text
            same = [other for other in self._by_hash.get(digest, ()) if other.path != file.path]
            # Files with the same partial hash have the same bytes: each was compared when it was added.
            twin = next((other.path for other in same if not is_gone(other.path)), None)
            is_like_twin = content.is_whole or twin is None or has_same_bytes(file.path, twin)
            if record is not None and not retry and record.content_hash == digest and is_like_twin:
                return Keep(file, replace(record, size=file.size, mtime_ns=file.mtime_ns), touched=True)
            # A record whose file is gone and that has not been matched to another file yet.
            moved = (
                record is None
                and is_like_twin
                and next(
                    (
                        other
                        for other in same
                        if other.id not in self._moved and not self._must_be_read(other) and is_gone(other.path)
                    ),
                    None,
                )
            )
            if moved:
                self._moved[moved.id] = file.path
                now = replace(moved, path=file.path, size=file.size, mtime_ns=file.mtime_ns)
                return Move(file, now, moved.path)
            # A file that has features, or will have them when this run is done.
            sources = (self._moved.get(other.id, other.path) for other in same if other.status == "ok")
            source = next(sources, self._in_work.get(digest))
            if source is not None:
                if content.is_whole or has_same_bytes(file.path, source):
                    return Copy(file, digest, source, known=record is not None)
                # The hash covers only part of the file: this one needs a hash of its own.
                digest = content_hash(file.path, file.size, whole=True).text
        except OSError as error:
            return Fail(file, f"cannot be read: {(error.strerror or type(error).__name__).lower()}")
        self._in_work[digest] = file.path
        return Extract(file, digest, known=record is not None)

    def _must_be_read(self, record: VideoRecord) -> bool:
        """Whether the file must be read, changed or not."""
        return record.needs_reindex or (self._retry_broken and record.status == "broken")
