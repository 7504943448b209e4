"""Per-file outcomes, the report of an update, and its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from vidkin._base.values import Result
from vidkin.index.ingest.scan import Scan

OutcomeKind = Literal["added", "changed", "unchanged", "moved", "broken", "removed", "missing", "excluded", "skipped"]


@dataclass(frozen=True, slots=True)
class FileOutcome(Result):
    """Outcome of one file.

    Attributes:
        path: Absolute path of the file.
        kind: "added"; "changed" (indexed again because its content changed); "unchanged"; "moved" (recognized by its
            content at a new path); "broken"; "removed"; "missing" (in the index, but the file is gone); "excluded" (in
            the index, but now excluded by the rules); "skipped".
        cause: Why the file is broken or was skipped, the old path of a moved file, the file whose features a copy
            shares, or the damage found in an added file; otherwise empty.
        known: Whether an earlier call already found the file broken and it has not changed since.
    """

    path: str
    kind: OutcomeKind
    cause: str = ""
    known: bool = False


@dataclass(frozen=True, slots=True)
class IngestReport(Result):
    """Outcomes of all files in one update.

    Attributes:
        added: New and changed files that are now in the index.
        unchanged: Files that were already in the index.
        moved: Files recognized at a new path without decoding them.
        broken: Files that cannot be read, with causes, including files already found broken by an earlier call.
        removed: Missing or excluded files that were removed from the index.
        missing: Missing files that are still in the index.
        excluded: Excluded files that are still in the index.
        skipped: Files and folders that were skipped, with reasons.
        prune_refused: Why missing files were not removed from the index as requested, with advice; otherwise empty.
        seconds: Wall-clock time in seconds.
        seconds_of_video: Total duration of the decoded videos in seconds.
    """

    added: tuple[FileOutcome, ...] = ()
    unchanged: tuple[FileOutcome, ...] = ()
    moved: tuple[FileOutcome, ...] = ()
    broken: tuple[FileOutcome, ...] = ()
    removed: tuple[FileOutcome, ...] = ()
    missing: tuple[FileOutcome, ...] = ()
    excluded: tuple[FileOutcome, ...] = ()
    skipped: tuple[FileOutcome, ...] = ()
    prune_refused: str = ""
    seconds: float = 0.0
    seconds_of_video: float = 0.0

    @property
    def total(self) -> int:
        """Number of files checked or removed."""
        return sum(map(len, (self.added, self.unchanged, self.moved, self.broken, self.removed)))

    @property
    def usable(self) -> int:
        """Number of checked files that can now be searched."""
        return len(self.added) + len(self.unchanged) + len(self.moved)

    def __str__(self) -> str:
        names = ["added", "unchanged", "moved", "broken", "removed", *(["missing"] if self.missing else [])]
        return ", ".join(f"{len(getattr(self, name))} {name}" for name in names)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an update.

    Attributes:
        done: Number of files whose outcome has been saved.
        total: Number of files to check.
        path: The current file.
        outcome: Outcome of the file; None while it is being read.
        frames: Number of frames with extracted features so far, over all files.
        seconds_of_video: Duration of video covered so far, in seconds.
        bytes: Total size of finished files.
    """

    done: int
    total: int
    path: str
    outcome: FileOutcome | None
    frames: int
    seconds_of_video: float
    bytes: int


OnProgress = Callable[[Progress], object]


class IngestInterrupted(KeyboardInterrupt):
    """Raised on Ctrl-C during :meth:`Index.add`; finished videos are saved, and the next call resumes.

    Attributes:
        report: Report of the work done so far.
    """

    def __init__(self, report: IngestReport) -> None:
        super().__init__(f"interrupted: {report}")
        self.report = report


class Tally:
    """Collects the outcomes of one update and reports progress.

    Args:
        scan: The files to process.
        on_progress: Callback for each finished file and at intervals in between.
    """

    def __init__(self, scan: Scan, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._outcomes: dict[str, FileOutcome] = {}
        self._missed: list[FileOutcome] = []
        self._refusal = ""
        self._skipped = scan.skipped
        self._sizes = {file.path: file.size for file in scan.files}
        self._total = len(scan.files) + len(scan.problems)
        self._covered: dict[str, float] = {}
        self._frames = 0
        self._bytes = 0
        self._seconds_of_video = 0.0
        self._started = time.monotonic()

    def settle(self, outcome: FileOutcome) -> None:
        """Count a file whose outcome has been saved."""
        self._outcomes[outcome.path] = outcome
        self._bytes += self._sizes.get(outcome.path, 0)
        self._report_progress(outcome.path, outcome)

    def advance(self, path: str, frames: int, seconds: float) -> None:
        """Count frames with extracted features and the seconds of video they cover."""
        self._frames += frames
        self._covered[path] = self._covered.get(path, 0.0) + seconds
        self._seconds_of_video += seconds
        self._report_progress(path, None)

    def finish(self, path: str, duration: float) -> None:
        """Count the remainder of a video, from its last frame to its end."""
        self._seconds_of_video += duration - self._covered.pop(path, 0.0)

    def remove(self, paths: Iterable[str], folders: Iterable[str] = ()) -> None:
        """Count files removed from the index, replacing their earlier outcomes.

        Args:
            paths: The files.
            folders: Removed folders, which no longer count as problems.
        """
        removed = list(paths)
        for path in (*removed, *folders):
            self._outcomes.pop(path, None)
        self._total += len(removed)
        for path in removed:
            self.settle(FileOutcome(path, "removed"))

    def miss(self, kind: Literal["missing", "excluded"], paths: Iterable[str]) -> None:
        """Record files that were not in the scan but remain in the index."""
        self._missed += [FileOutcome(path, kind) for path in sorted(paths)]

    def refuse(self, reason: str) -> None:
        """Record why missing files were not removed; empty if removal was allowed."""
        self._refusal = reason

    def report(self) -> IngestReport:
        """Return the report of the files finished so far."""

        def of(*kinds: OutcomeKind) -> tuple[FileOutcome, ...]:
            chosen = [outcome for outcome in self._outcomes.values() if outcome.kind in kinds]
            return tuple(sorted(chosen, key=lambda outcome: outcome.path))

        return IngestReport(
            added=of("added", "changed"),
            unchanged=of("unchanged"),
            moved=of("moved"),
            broken=of("broken"),
            removed=of("removed"),
            missing=tuple(outcome for outcome in self._missed if outcome.kind == "missing"),
            excluded=tuple(outcome for outcome in self._missed if outcome.kind == "excluded"),
            skipped=tuple(FileOutcome(path, "skipped", reason) for path, reason in self._skipped),
            prune_refused=self._refusal,
            seconds=time.monotonic() - self._started,
            seconds_of_video=self._seconds_of_video,
        )

    def _report_progress(self, path: str, outcome: FileOutcome | None) -> None:
        if self._on_progress is not None:
            counts = self._frames, self._seconds_of_video, self._bytes
            self._on_progress(Progress(len(self._outcomes), self._total, path, outcome, *counts))
