"""Bringing a collection up to date with the files on disk."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import torch

from vidkin.index.ingest.executor import Advanced, Described, Executor, Unreadable
from vidkin.index.ingest.plan import Copy, Extract, Keep, Move, Plan, Step
from vidkin.index.ingest.report import (
    FileOutcome,
    IngestInterrupted,
    IngestReport,
    OnProgress,
    OutcomeKind,
    Progress,
)
from vidkin.index.ingest.scan import FoundFile, Scan, is_gone
from vidkin.index.ingest.worker import FeatureChunk, cut_off_note
from vidkin.index.storage.contract import (
    READ_AGAIN,
    BaselineFunction,
    Entry,
    StoredFeatures,
    VectorStore,
    VideoRecord,
)
from vidkin.index.windows import sampling_rate, window_vectors

__all__ = ["ingest", "no_baseline"]

_logger = logging.getLogger(__name__)

# What is complete is written at the latest after so long, so many videos, or so many bytes.
_SECONDS_A_COMMIT = 0.5
_VIDEOS_A_COMMIT = 32
_BYTES_A_COMMIT = 64 << 20


def no_baseline(values: torch.Tensor) -> torch.Tensor:
    """Background similarity of frames [T, R, D] where there is no background: zeros [T]."""
    return torch.zeros(len(values))


def ingest(
    store: VectorStore,
    found: Scan,
    executor: Executor,
    *,
    base_rate: float = 1.0,
    baseline: BaselineFunction = no_baseline,
    prune: bool = False,
    retry_broken: bool = False,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Read what is new or changed, recognise what moved, record what is broken.

    Every video is written as soon as it is complete (at most half a second later), so that an interruption
    loses the videos in work and nothing else; the next call goes on from there. The caller holds the
    writer's lock and has called :meth:`VectorStore.recover`.

    Args:
        store: Where to.
        found: The files, from :func:`vidkin.index.ingest.scan.scan`.
        executor: Makes the features.
        base_rate: Frames per second of ordinary videos, as the executor samples them; for the record.
        baseline: Background similarity [T] of values [T, R, D].
        prune: Take records out whose files are gone from the folders that were scanned.
        retry_broken: Read broken files again although they did not change.
        on_progress: Called for every file settled, and now and then in between.

    Raises:
        IngestInterrupted: On Ctrl-C, with the report so far.
        Exception: What the executor or the store raise; everything complete is written before.
    """
    session = _Session(store, found, base_rate, baseline, on_progress)
    try:
        session.settle_problems()
        session.read(executor, Plan(store.videos(), retry_broken=retry_broken).steps(found.files))
        if without_twin := session.copy():
            session.read(executor, without_twin)
        if prune:
            session.prune()
    except KeyboardInterrupt:
        raise IngestInterrupted(session.report()) from None
    return session.report()


@dataclass
class _Session:
    """State of one call."""

    store: VectorStore
    found: Scan
    base_rate: float
    baseline: BaselineFunction
    on_progress: OnProgress | None
    outcomes: list[FileOutcome] = field(default_factory=list)
    pending: list[tuple[Entry, OutcomeKind, str]] = field(default_factory=list)
    updates: list[tuple[VideoRecord, FileOutcome]] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    in_work: dict[str, Extract] = field(default_factory=dict)
    covered: dict[str, float] = field(default_factory=dict)
    pending_bytes: int = 0
    pending_since: float = 0.0
    frames: int = 0
    seconds_of_video: float = 0.0
    bytes: int = 0

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.sizes = {file.path: file.size for file in self.found.files}
        self.total = len(self.found.files) + len(self.found.problems)

    def settle_problems(self) -> None:
        """Report what the scan could not look at."""
        for path, cause in self.found.problems:
            self._settle(FileOutcome(path, "broken", cause))

    def read(self, executor: Executor, steps: Iterable[Step]) -> None:
        """Take all steps but copies, which come when their sources are there. What is complete is written."""
        try:
            for event in executor.run(self._paths_to_read(steps)):
                if isinstance(event, Advanced):
                    self.frames += event.frames
                    self._cover(event.path, event.seconds)
                    self._tell(event.path, None)
                elif isinstance(event, Described):
                    self._described(event)
                elif isinstance(event, Unreadable):
                    step = self.in_work.pop(event.path)
                    self._add(self._broken(step.file, step.hash, event.cause), "broken", event.cause)
                self._write_if_due()
        finally:
            self.write()

    def write(self) -> None:
        """Commit what is complete, then say so."""
        updates, self.updates = self.updates, []
        self.store.update([record for record, _ in updates])
        for _, outcome in updates:
            self._settle(outcome)
        pending, self.pending, self.pending_bytes = self.pending, [], 0
        self.store.append_many([entry for entry, _, _ in pending])
        for entry, kind, cause in pending:
            self._settle(FileOutcome(entry.record.path, kind, cause))

    def copy(self) -> list[Extract]:
        """Give files with known content the features of their twins.

        Returns:
            Files whose twin has other content by now: they must be read themselves.
        """
        without_twin = []
        for start in range(0, len(self.copies), _VIDEOS_A_COMMIT):
            pairs = []
            for step in self.copies[start : start + _VIDEOS_A_COMMIT]:
                source = self.store.find(step.source_path)
                if source is not None and source.content_hash == step.hash:
                    pairs.append((step, source))
                else:
                    without_twin.append(Extract(step.file, step.hash, step.known))
            readable = [source.id for _, source in pairs if source.status == "ok"]
            features = dict(zip(readable, self.store.read_many(readable), strict=True))
            for step, source in pairs:
                self._add_copy(step, source, features.get(source.id))
            self.write()
        return without_twin

    def prune(self) -> None:
        """Take out what is gone below the folders scanned and of the files named."""
        folders = tuple(os.path.join(folder, "") for folder in self.found.folders)
        named = {path for path, _ in self.found.problems}
        gone = [
            record
            for record in self.store.videos()
            if (record.path.startswith(folders) or record.path in named) and is_gone(record.path)
        ]
        self.store.remove([record.id for record in gone])
        removed = {record.path for record in gone}
        self.outcomes = [outcome for outcome in self.outcomes if outcome.path not in removed]
        self.total += len(gone)
        for record in gone:
            self._settle(FileOutcome(record.path, "removed"))

    def report(self) -> IngestReport:
        """What is settled so far."""

        def of(*kinds: OutcomeKind) -> tuple[FileOutcome, ...]:
            chosen = [outcome for outcome in self.outcomes if outcome.kind in kinds]
            return tuple(sorted(chosen, key=lambda outcome: outcome.path))

        return IngestReport(
            added=of("added", "changed"),
            unchanged=of("unchanged"),
            moved=of("moved"),
            broken=of("broken"),
            removed=of("removed"),
            seconds=time.monotonic() - self.started,
            seconds_of_video=self.seconds_of_video,
        )

    def _paths_to_read(self, steps: Iterable[Step]) -> Iterator[str]:
        """Settle what needs no reading, and hand on what does, as the executor asks for more."""
        for step in steps:
            if isinstance(step, Extract):
                self.in_work[step.file.path] = step
                yield step.file.path
            elif isinstance(step, Copy):
                self.copies.append(step)
            elif isinstance(step, Keep):
                self._keep(step)
            elif isinstance(step, Move):
                self.updates.append(
                    (step.record, FileOutcome(step.file.path, "moved", f"was {step.old_path}"))
                )
                self._write_if_due()
            else:
                self._settle(FileOutcome(step.file.path, "broken", step.cause))

    def _keep(self, step: Keep) -> None:
        if step.record.status == "broken":
            outcome = FileOutcome(step.file.path, "broken", step.record.cause)
        else:
            outcome = FileOutcome(step.file.path, "unchanged")
        if step.touched:
            self.updates.append((step.record, outcome))
            self._write_if_due()
        else:
            self._settle(outcome)

    def _add_copy(self, step: Copy, source: VideoRecord, features: StoredFeatures | None) -> None:
        file = step.file
        record = replace(
            source, id=-1, path=file.path, size=file.size, mtime_ns=file.mtime_ns, added_at=time.time()
        )
        if features is None:
            self.pending.append((Entry(record), "broken", source.cause))
        else:
            entry = Entry(record, features, self.store.read_windows(source.id))
            kind: OutcomeKind = "changed" if step.known else "added"
            self.pending.append((entry, kind, f"same content as {source.path}"))

    def _described(self, event: Described) -> None:
        step = self.in_work.pop(event.path)
        if len(event.features.timestamps) == 0:
            cause = "not a single frame could be decoded"
            self._add(self._broken(step.file, step.hash, cause), "broken", cause)
            return
        if _changed_since(step.file):
            cause = "it changed while it was being read; index it again"
            again = replace(self._broken(step.file, "", cause).record, mtime_ns=READ_AGAIN)
            self._add(Entry(again), "broken", cause)
            return
        info = event.info
        # The rest of it, from its last sample to its end.
        self.seconds_of_video += info.duration - self.covered.pop(event.path, 0.0)
        features = self._stored(event.features)
        windows = window_vectors(features)
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
            sampling_rate=sampling_rate(info.duration, self.base_rate),
            windows=len(windows),
            added_at=time.time(),
        )
        cause = cut_off_note(info) if info.cut_off else ""
        if cause:
            _logger.warning("%s: %s", step.file.path, cause)
        self._add(Entry(record, features, windows), "changed" if step.known else "added", cause)

    def _stored(self, features: FeatureChunk) -> StoredFeatures:
        values = torch.from_numpy(features.values)
        return StoredFeatures(
            values=values,
            timestamps=torch.from_numpy(features.timestamps),
            information=torch.from_numpy(features.information),
            baseline=self.baseline(values).float(),
        )

    def _broken(self, file: FoundFile, digest: str, cause: str) -> Entry:
        return Entry(
            VideoRecord(
                path=file.path,
                size=file.size,
                mtime_ns=file.mtime_ns,
                content_hash=digest,
                status="broken",
                cause=cause,
                added_at=time.time(),
            )
        )

    def _add(self, entry: Entry, kind: OutcomeKind, cause: str) -> None:
        self.pending.append((entry, kind, cause))
        if entry.features is not None:
            self.pending_bytes += entry.features.values.nbytes
        self._write_if_due()

    def _write_if_due(self) -> None:
        waiting = len(self.pending) + len(self.updates)
        if waiting == 0:
            self.pending_since = time.monotonic()
        elif (
            len(self.pending) >= _VIDEOS_A_COMMIT
            or len(self.updates) >= 32 * _VIDEOS_A_COMMIT
            or self.pending_bytes >= _BYTES_A_COMMIT
            or time.monotonic() - self.pending_since >= _SECONDS_A_COMMIT
        ):
            self.write()
            self.pending_since = time.monotonic()

    def _cover(self, path: str, seconds: float) -> None:
        self.covered[path] = self.covered.get(path, 0.0) + seconds
        self.seconds_of_video += seconds

    def _settle(self, outcome: FileOutcome) -> None:
        self.outcomes.append(outcome)
        self.bytes += self.sizes.get(outcome.path, 0)
        self._tell(outcome.path, outcome)

    def _tell(self, path: str, outcome: FileOutcome | None) -> None:
        if self.on_progress is not None:
            done = len(self.outcomes)
            self.on_progress(
                Progress(done, self.total, path, outcome, self.frames, self.seconds_of_video, self.bytes)
            )


def _changed_since(file: FoundFile) -> bool:
    """Size or time of change are others than when it was found; a file that is gone by now was read in time."""
    try:
        now = os.stat(file.path)
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) != (file.size, file.mtime_ns)
