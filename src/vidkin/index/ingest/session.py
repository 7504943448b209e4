"""Update an index from files on disk: plan a step for each file, write in batches, and log internal errors."""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from vidkin.index.ingest.executor import Advanced, Described, Executor, Unreadable, internal_error
from vidkin.index.ingest.pruning import Losses, Prune, PruneGuard, find_losses
from vidkin.index.ingest.report import (
    FileOutcome,
    IngestInterrupted,
    IngestReport,
    OnProgress,
    OutcomeKind,
    Tally,
)
from vidkin.index.ingest.scan import Scan, VideoFile
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import content_hash, has_same_bytes, is_gone
from vidkin.index.storage.folder_rules import FolderRules
from vidkin.index.storage.records import Entry, VideoRecord, describe_cut_off, sampling_rate, window_vectors
from vidkin.index.storage.sound_files import SoundFiles
from vidkin.similarity import FrameFeatures

_logger = logging.getLogger(__name__)


def ingest(
    store: VectorStore,
    scan: Scan,
    executor: Executor,
    *,
    base_rate: float = 1.0,
    calibrate: Callable[[FrameFeatures], FrameFeatures] = lambda features: features,
    rules: FolderRules | None = None,
    prune: Prune = False,
    guard: PruneGuard | None = None,
    retry_broken: bool = False,
    on_progress: OnProgress | None = None,
    errors_file: Path | None = None,
    sounds: SoundFiles | None = None,
) -> IngestReport:
    """Read new and changed files, recognize moved ones, and record broken ones.

    Every video is saved within two seconds of being complete, so an interruption loses only the videos being processed,
    and the next call resumes. The caller must hold the write lock and have called :meth:`VectorStore.recover`.

    A file whose content cannot be read is recorded as broken and not read again until it changes. If the cause may be
    temporary (a killed worker, an unresponsive drive, lack of memory, an internal error), the record is marked as
    stale, and the next call retries the file.

    Args:
        store: Receives the videos.
        scan: The files, from :func:`vidkin.index.ingest.scan.scan`.
        executor: Extracts the features.
        base_rate: Sampling rate of ordinary videos in frames per second; saved in each record.
        calibrate: Function that adds the baselines to features.
        rules: Rules for files in folders, needed for ``prune``.
        prune: Remove records of files that are excluded or missing from the scanned folders.
        guard: Decides whether records may be removed, and records devices; default: a guard that knows no devices.
        retry_broken: Read broken files again even if they have not changed.
        on_progress: Callback for each finished file and at intervals in between.
        errors_file: File for tracebacks of internal errors; None to log them.
        sounds: Receives audio landmarks; files with sound but without stored landmarks are read again. None to ignore
            sound.

    Raises:
        IngestInterrupted: Ctrl-C was pressed; contains the report so far.
        VidkinError: The executor or the store failed; completed videos are saved first.
    """
    tally = Tally(scan, on_progress)
    session = _Session(store, tally, base_rate, calibrate, FailureLog(errors_file), sounds)
    heard = None if sounds is None else sounds.contents()
    try:
        for path, cause in scan.problems:
            tally.settle(FileOutcome(path, "broken", cause))
        session.read(executor, Plan(store.videos(), retry_broken=retry_broken, heard=heard).steps(scan.files))
        if unmatched := session.copy():
            session.read(executor, unmatched)
        _handle_losses(store, find_losses(store.videos(), scan, rules or FolderRules()), tally, prune, guard)
    except KeyboardInterrupt:
        raise IngestInterrupted(tally.report()) from None
    return tally.report()


def _handle_losses(store: VectorStore, losses: Losses, tally: Tally, prune: Prune, guard: PruneGuard | None) -> None:
    """Remove records of files moved away by plans, and remove missing files if allowed or report them otherwise."""
    guard = guard or PruneGuard()
    moved = guard.moved_away(losses)
    store.remove([record.id for record in moved])
    tally.remove([record.path for record in moved])
    losses = losses.without({record.path for record in moved})
    refusal = guard.refusal_reason(losses) if prune and prune != "anyway" else ""
    if prune and not refusal:
        store.remove([record.id for record in losses.records])
        tally.remove([record.path for record in losses.records], folders=losses.missing_folders)
        guard.record_devices(losses.scan, ())
        return
    named = {path for path, _ in losses.scan.problems}
    tally.miss("missing", (record.path for record in losses.gone if record.path not in named))
    tally.miss("excluded", (record.path for record in losses.excluded))
    tally.refuse(refusal)
    guard.record_devices(losses.scan, losses.gone + losses.unreachable)


class _Session:
    """State of one update."""

    def __init__(
        self,
        store: VectorStore,
        tally: Tally,
        base_rate: float,
        calibrate: Callable[[FrameFeatures], FrameFeatures],
        failures: FailureLog,
        sounds: SoundFiles | None,
    ) -> None:
        self._store = store
        self._tally = tally
        self._writer = BatchWriter(store, tally)
        self._base_rate = base_rate
        self._calibrate = calibrate
        self._failures = failures
        self._sounds = sounds
        self._copies: list[Copy] = []
        self._in_work: dict[str, Extract] = {}

    def read(self, executor: Executor, steps: Iterable[PlanStep]) -> None:
        """Perform all steps except copies, which must wait for their sources, and save the results."""
        try:
            for event in executor.run(self._paths_to_read(steps)):
                if isinstance(event, Advanced):
                    self._tally.advance(event.path, event.frames, event.seconds)
                elif isinstance(event, Described):
                    self._add_described(self._in_work.pop(event.path), event)
                elif isinstance(event, Unreadable):
                    self._add_unreadable(self._in_work.pop(event.path), event)
                self._writer.write_if_due()
        finally:
            self._writer.write()

    def copy(self) -> list[Extract]:
        """Copy features to files whose content is already known.

        Returns:
            Files whose source has changed in the meantime, so that they must be read themselves.
        """
        unmatched = []
        for start in range(0, len(self._copies), VIDEOS_PER_COMMIT):
            pairs = []
            for step in self._copies[start : start + VIDEOS_PER_COMMIT]:
                source = self._store.find(step.source_path)
                if source is not None and source.content_hash == step.hash:
                    pairs.append((step, source))
                else:
                    unmatched.append(Extract(step.file, step.hash, step.known))
            readable = [source.id for _, source in pairs if source.status == "ok"]
            features = dict(zip(readable, self._store.read_many(readable), strict=True))
            for step, source in pairs:
                file = step.file
                record = replace(
                    source,
                    id=-1,
                    path=file.path,
                    size=file.size,
                    mtime_ns=file.mtime_ns,
                    added_at=time.time(),
                )
                known = features.get(source.id)
                if known is None:
                    self._writer.append(Entry(record), "broken", source.cause)
                else:
                    windows = self._store.read_windows(source.id)
                    entry = Entry(replace(record, windows=len(windows)), known, windows)
                    self._writer.append(entry, _kind_of(step), f"same content as {source.path}")
            self._writer.write()
        return unmatched

    def _paths_to_read(self, steps: Iterable[PlanStep]) -> Iterator[str]:
        """Carry out the steps that need no reading, and yield the paths to read on demand."""
        for step in steps:
            if isinstance(step, Extract):
                self._in_work[step.file.path] = step
                yield step.file.path
            elif isinstance(step, Copy):
                self._copies.append(step)
            elif isinstance(step, Keep):
                kind: OutcomeKind = "unchanged" if step.record.status == "ok" else "broken"
                outcome = FileOutcome(step.file.path, kind, step.record.cause, known=kind == "broken")
                if step.touched:
                    self._writer.update(step.record, outcome)
                    self._writer.write_if_due()
                else:
                    self._tally.settle(outcome)
            elif isinstance(step, Move):
                outcome = FileOutcome(step.file.path, "moved", f"was {step.old_path}")
                self._writer.update(step.record, outcome)
                self._writer.write_if_due()
            else:
                self._tally.settle(FileOutcome(step.file.path, "broken", step.cause))

    def _add_unreadable(self, step: Extract, event: Unreadable) -> None:
        cause = self._failures.write(event.path, event.cause, event.trace) if event.trace else event.cause
        record = _record(step.file, step.hash, status="broken", cause=cause)
        self._writer.append(Entry(record.as_stale(cause) if event.temporary else record), "broken", cause)

    def _add_described(self, step: Extract, event: Described) -> None:
        if _has_changed(step.file):
            cause = "the file changed while it was being read; index it again"
            stale = _record(step.file, "", status="broken", cause=cause).as_stale(cause)
            self._writer.append(Entry(stale), "broken", cause)
            return
        info = event.info
        self._tally.finish(event.path, info.duration)
        try:
            features = self._calibrate(event.features)
            windows = window_vectors(features)
        # As in the executor, a failure on one video must not affect others.
        except Exception as error:  # noqa: BLE001
            self._add_unreadable(step, internal_error(event.path, error))
            return
        damage = event.damage
        if info.cut_off:
            damage = "; ".join(filter(None, (describe_cut_off(info), damage)))
        record = _record(
            step.file,
            step.hash,
            duration=info.duration,
            width=info.width,
            height=info.height,
            frame_rate=info.frame_rate,
            codec=info.codec,
            bit_depth=info.bit_depth,
            has_audio=info.has_audio,
            frames=len(features),
            sampling_rate=sampling_rate(info.duration, self._base_rate),
            windows=len(windows),
            damage=damage,
        )
        if damage:
            _logger.warning("%s: %s", step.file.path, damage)
        if self._sounds is not None and step.hash:
            # An executor without sound support returns None; saving this as "no sound" avoids rereading the file.
            self._sounds.write(step.hash, event.sound or ())
        self._writer.append(Entry(record, features, windows), _kind_of(step), damage)


def _kind_of(step: Copy | Extract) -> OutcomeKind:
    return "changed" if step.known else "added"


def _record(file: VideoFile, digest: str, **values: Any) -> VideoRecord:
    """Create a record for a file with these values."""
    return VideoRecord(
        path=file.path,
        size=file.size,
        mtime_ns=file.mtime_ns,
        content_hash=digest,
        added_at=time.time(),
        **values,
    )


def _has_changed(file: VideoFile) -> bool:
    """Whether size or modification time differ from the scan; a file deleted since was read completely."""
    try:
        now = os.stat(file.path)
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) != (file.size, file.mtime_ns)


# Finished entries are committed after this many seconds, videos or bytes, whichever comes first.
SECONDS_PER_COMMIT = 2.0
VIDEOS_PER_COMMIT = 32
_BYTES_PER_COMMIT = 64 << 20

# Updates carry no features, so a batch can contain more of them.
_UPDATES_PER_COMMIT = 32 * VIDEOS_PER_COMMIT


class BatchWriter:
    """Collects entries and updated records, commits them in batches, and then reports their outcomes.

    Args:
        store: Store to write to.
        tally: Receives the outcomes.
    """

    def __init__(self, store: VectorStore, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._entries: list[tuple[Entry, OutcomeKind, str]] = []
        self._updates: list[tuple[VideoRecord, FileOutcome]] = []
        self._bytes = 0
        self._since = 0.0

    def append(self, entry: Entry, kind: OutcomeKind, cause: str) -> None:
        """Add a new entry to the next batch."""
        self._entries.append((entry, kind, cause))
        if entry.features is not None:
            self._bytes += entry.features.values.nbytes

    def update(self, record: VideoRecord, outcome: FileOutcome) -> None:
        """Add an updated record to the next batch."""
        self._updates.append((record, outcome))

    def write(self) -> None:
        """Commit everything, then report the outcomes."""
        updates, self._updates = self._updates, []
        self._store.update([record for record, _ in updates])
        for _, outcome in updates:
            self._tally.settle(outcome)
        entries, self._entries, self._bytes = self._entries, [], 0
        self._store.append_many([entry for entry, _, _ in entries])
        for entry, kind, cause in entries:
            self._tally.settle(FileOutcome(entry.record.path, kind, cause))
        self._since = time.monotonic()

    def write_if_due(self) -> None:
        """Commit if the batch is large enough or has waited long enough."""
        if not self._entries and not self._updates:
            self._since = time.monotonic()
        elif (
            len(self._entries) >= VIDEOS_PER_COMMIT
            or len(self._updates) >= _UPDATES_PER_COMMIT
            or self._bytes >= _BYTES_PER_COMMIT
            or time.monotonic() - self._since >= SECONDS_PER_COMMIT
        ):
            self.write()


ERRORS_FILE = "errors.log"

# The log is truncated beyond this size, so that a bug affecting every video does not fill the disk.
_MAX_BYTES = 4 << 20


class FailureLog:
    """Appends tracebacks to a file, or logs them if there is no file or it cannot be written.

    Args:
        path: The file, created on the first entry; None to use the logger instead.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def write(self, video: str, cause: str, trace: str) -> str:
        """Save a traceback; return the cause with a note that says where the traceback is.

        Args:
            video: Path of the file that was being read.
            cause: One-line description of the error.
            trace: The traceback.
        """
        # Use ascii() so that file names that are not valid Unicode cannot cause an error here.
        entry = f"{video!a}: {cause}\n{trace}\n"
        if self._path is None:
            _logger.error("%s", entry)
            return cause
        try:
            # Never write through a planted symbolic link.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._path, flags, 0o666)
            with open(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                if file.tell() > _MAX_BYTES:
                    file.truncate(0)
                file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {entry}")
        except OSError as error:
            _logger.error("%s cannot be written (%s); the traceback is: %s", self._path, error, entry)
            return cause
        return f"{cause}; traceback in {self._path}"


@dataclass(frozen=True, slots=True)
class Keep:
    """A file whose content has not changed; if ``touched``, ``record`` has a new modification time."""

    file: VideoFile
    record: VideoRecord
    touched: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A file known from a path that no longer exists; ``record`` is the old record with the new path."""

    file: VideoFile
    record: VideoRecord
    old_path: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A file with the same content as another file, whose features are reused.

    If the other file turns out to have changed, this file is read instead.
    """

    file: VideoFile
    hash: str
    source_path: str
    known: bool


@dataclass(frozen=True, slots=True)
class Extract:
    """A file that must be read; ``known`` if it replaces a record with the same path."""

    file: VideoFile
    hash: str
    known: bool


@dataclass(frozen=True, slots=True)
class Fail:
    """A file that cannot be opened."""

    file: VideoFile
    cause: str


PlanStep = Keep | Move | Copy | Extract | Fail


class Plan:
    """Plans the step for each file lazily, so that files are hashed while others are being decoded.

    Args:
        records: All records of the index.
        retry_broken: Read broken files again even if they have not changed.
        heard: Content hashes with stored audio landmarks; other files with sound are read again. None to ignore sound.
    """

    def __init__(
        self, records: Iterable[VideoRecord], *, retry_broken: bool = False, heard: Collection[str] | None = None
    ) -> None:
        self._by_path = {record.path: record for record in records}
        self._by_hash: dict[str, list[VideoRecord]] = defaultdict(list)
        for record in self._by_path.values():
            self._by_hash[record.content_hash].append(record)
        self._retry_broken = retry_broken
        self._heard = heard
        self._moved: dict[int, str] = {}
        self._in_work: dict[str, str] = {}

    def steps(self, files: Iterable[VideoFile]) -> Iterator[PlanStep]:
        """Yield one step for each file, in order."""
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
            # Files in the index that share a partial hash are byte-identical, because each was compared when added.
            twin = next((other.path for other in same if not is_gone(other.path)), None)
            is_like_twin = content.is_whole or twin is None or has_same_bytes(file.path, twin)
            if record is not None and not retry and record.content_hash == digest and is_like_twin:
                return Keep(file, replace(record, size=file.size, mtime_ns=file.mtime_ns), touched=True)
            # Look for the record of a missing file that has not been matched to another file yet.
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
            # Look for a file that has features, or will have them after this update.
            sources = (self._moved.get(other.id, other.path) for other in same if other.status == "ok")
            source = next(sources, self._in_work.get(digest))
            if source is not None:
                if content.is_whole or has_same_bytes(file.path, source):
                    return Copy(file, digest, source, known=record is not None)
                # The partial hashes collide but the contents differ; use a hash of the whole file.
                digest = content_hash(file.path, file.size, whole=True).text
        except OSError as error:
            return Fail(file, f"cannot be read: {(error.strerror or type(error).__name__).lower()}")
        self._in_work[digest] = file.path
        return Extract(file, digest, known=record is not None)

    def _must_be_read(self, record: VideoRecord) -> bool:
        """Whether the file must be read even if it has not changed."""
        is_unheard = self._heard is not None and record.has_audio and record.content_hash not in self._heard
        return record.needs_reindex or is_unheard or (self._retry_broken and record.status == "broken")
