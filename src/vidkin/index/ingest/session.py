"""Bring an index up to date with the files on disk."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from vidkin.index.ingest.batch_writer import VIDEOS_A_COMMIT, BatchWriter
from vidkin.index.ingest.failure_log import FailureLog
from vidkin.index.ingest.files.content import is_gone
from vidkin.index.ingest.files.rules import FolderRules
from vidkin.index.ingest.files.scan import Scan, VideoFile
from vidkin.index.ingest.plan import Copy, Extract, Keep, Move, Plan, PlanStep
from vidkin.index.ingest.report import (
    FileOutcome,
    IngestInterrupted,
    IngestReport,
    OnProgress,
    OutcomeKind,
)
from vidkin.index.ingest.tally import Tally
from vidkin.index.ingest.workers.executor import Advanced, Described, Executor, Unreadable
from vidkin.index.ingest.workers.serial import internal_error
from vidkin.index.records import Entry, VideoRecord, describe_cut_off
from vidkin.index.sampling_rate import sampling_rate
from vidkin.index.storage.contract import VectorStore
from vidkin.index.windows import window_vectors
from vidkin.similarity import FrameFeatures

__all__ = ["ingest"]

_logger = logging.getLogger(__name__)


def ingest(
    store: VectorStore,
    scan: Scan,
    executor: Executor,
    *,
    base_rate: float = 1.0,
    calibrate: Callable[[FrameFeatures], FrameFeatures] = lambda features: features,
    rules: FolderRules | None = None,
    prune: bool = False,
    retry_broken: bool = False,
    on_progress: OnProgress | None = None,
    errors_file: Path | None = None,
) -> IngestReport:
    """Read new and changed files, recognize moved ones, and record broken ones.

    Every video is written as soon as it is complete (at most half a second later), so that an interruption
    loses only the videos being processed; the next call resumes from there. The caller holds the
    writer's lock and has called :meth:`VectorStore.recover`.

    A file whose content cannot be read is recorded as broken, and not read again until it changes. If the cause may
    pass (a killed worker, a hung drive, no memory, an internal error) the record is stale: the next call
    reads the file again.

    Args:
        store: Receives the videos.
        scan: The files, from :func:`vidkin.index.ingest.files.scan.scan`.
        executor: Makes the features.
        base_rate: Frames per second of ordinary videos, as the executor samples them; stored in the record.
        calibrate: Adds the baseline to features.
        rules: Which files of folders were included; for ``prune``.
        prune: Remove records whose files are gone from the folders that were scanned, or excluded.
        retry_broken: Read broken files again even if they have not changed.
        on_progress: Callback for each finished file and at intervals in between.
        errors_file: Receives the tracebacks of internal errors; None logs them.

    Raises:
        IngestInterrupted: On Ctrl-C, with the report so far.
        VidkinError: Raised by the executor or the store; everything complete is written before.
    """
    tally = Tally(scan, on_progress)
    session = _Session(store, tally, base_rate, calibrate, FailureLog(errors_file))
    try:
        for path, cause in scan.problems:
            tally.settle(FileOutcome(path, "broken", cause))
        session.read(executor, Plan(store.videos(), retry_broken=retry_broken).steps(scan.files))
        if without_twin := session.copy():
            session.read(executor, without_twin)
        # Records of files that should be in the scanned folders, or were named, but were not in the scan.
        folders = tuple(os.path.join(folder, "") for folder in scan.folders)
        seen = {file.path for file in scan.files}
        named = {path for path, _ in scan.problems}
        unseen = [
            record
            for record in store.videos()
            if record.path not in seen and (record.path.startswith(folders) or record.path in named)
        ]
        gone = [record for record in unseen if is_gone(record.path)]
        gone_ids = {record.id for record in gone}
        excluded = [
            record
            for record in unseen
            if record.id not in gone_ids
            and any(
                record.path.startswith(os.path.join(folder, ""))
                and (rules or FolderRules()).excludes_below(record.path, folder)
                for folder in scan.folders
            )
        ]
        if prune:
            store.remove([record.id for record in gone + excluded])
            tally.remove([record.path for record in gone + excluded])
        else:
            tally.miss("missing", (record.path for record in gone if record.path not in named))
            tally.miss("excluded", (record.path for record in excluded))
    except KeyboardInterrupt:
        raise IngestInterrupted(tally.report()) from None
    return tally.report()


class _Session:
    """State of one call."""

    def __init__(
        self,
        store: VectorStore,
        tally: Tally,
        base_rate: float,
        calibrate: Callable[[FrameFeatures], FrameFeatures],
        failures: FailureLog,
    ) -> None:
        self._store = store
        self._tally = tally
        self._writer = BatchWriter(store, tally)
        self._base_rate = base_rate
        self._calibrate = calibrate
        self._failures = failures
        self._copies: list[Copy] = []
        self._in_work: dict[str, Extract] = {}

    def read(self, executor: Executor, steps: Iterable[PlanStep]) -> None:
        """Perform all steps except copies, which wait for their sources. Finished work is written."""
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
        """Give files with known content the features of the files with the same content.

        Returns:
            Files whose counterpart has changed in the meantime: they must be read themselves.
        """
        without_twin = []
        for start in range(0, len(self._copies), VIDEOS_A_COMMIT):
            pairs = []
            for step in self._copies[start : start + VIDEOS_A_COMMIT]:
                source = self._store.find(step.source_path)
                if source is not None and source.content_hash == step.hash:
                    pairs.append((step, source))
                else:
                    without_twin.append(Extract(step.file, step.hash, step.known))
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
                    entry = Entry(record, known, self._store.read_windows(source.id))
                    self._writer.append(entry, _kind_of(step), f"same content as {source.path}")
            self._writer.write()
        return without_twin

    def _paths_to_read(self, steps: Iterable[PlanStep]) -> Iterator[str]:
        """Settle what needs no reading, and yield what does, as the executor asks for more."""
        for step in steps:
            if isinstance(step, Extract):
                self._in_work[step.file.path] = step
                yield step.file.path
            elif isinstance(step, Copy):
                self._copies.append(step)
            elif isinstance(step, Keep):
                kind: OutcomeKind = "unchanged" if step.record.status == "ok" else "broken"
                outcome = FileOutcome(step.file.path, kind, step.record.cause)
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
        record = _broken_record(step.file, step.hash, cause)
        self._writer.append(Entry(record.as_stale(cause) if event.temporary else record), "broken", cause)

    def _add_described(self, step: Extract, event: Described) -> None:
        if _has_changed(step.file):
            cause = "it changed while it was being read; index it again"
            stale = _broken_record(step.file, "", cause).as_stale(cause)
            self._writer.append(Entry(stale), "broken", cause)
            return
        info = event.info
        self._tally.finish(event.path, info.duration)
        try:
            features = self._calibrate(event.features)
            windows = window_vectors(features)
        # As in the executor: a failure caused by one video must not affect the others.
        except Exception as error:  # noqa: BLE001
            self._add_unreadable(step, internal_error(event.path, error))
            return
        cut_off = describe_cut_off(info) if info.cut_off else ""
        damage = "; ".join(filter(None, (cut_off, event.damage)))
        record = VideoRecord(
            path=step.file.path,
            size=step.file.size,
            mtime_ns=step.file.mtime_ns,
            content_hash=step.hash,
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
            added_at=time.time(),
            damage=damage,
        )
        if damage:
            _logger.warning("%s: %s", step.file.path, damage)
        self._writer.append(Entry(record, features, windows), _kind_of(step), damage)


def _kind_of(step: Copy | Extract) -> OutcomeKind:
    return "changed" if step.known else "added"


def _broken_record(file: VideoFile, digest: str, cause: str) -> VideoRecord:
    return VideoRecord(
        path=file.path,
        size=file.size,
        mtime_ns=file.mtime_ns,
        content_hash=digest,
        status="broken",
        cause=cause,
        added_at=time.time(),
    )


def _has_changed(file: VideoFile) -> bool:
    """Whether size or modification time differ from the scan; a file that is gone by now was read in time."""
    try:
        now = os.stat(file.path)
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) != (file.size, file.mtime_ns)
