"""The outcome of each file, counted, and the progress of a call."""

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
        path: Absolute.
        kind: "added"; "changed" (indexed again since its content changed); "unchanged"; "moved" (recognized by its
            content at a new path); "broken"; "removed"; "missing" (in the index, but the file is gone); "excluded" (in
            the index, but left out of its folder now); "skipped".
        cause: Why it is broken or skipped; where a moved file was; whose features a copy shares; what part of an added
            file could not be read; else "".
        known: Whether it is broken as an earlier call found it, and has not changed since.
    """

    path: str
    kind: OutcomeKind
    cause: str = ""
    known: bool = False


@dataclass(frozen=True, slots=True)
class IngestReport(Result):
    """Outcomes of all files of one call.

    Attributes:
        added: New and changed files that are in the index now.
        unchanged: Files that were in the index already.
        moved: Files recognized at a new path; nothing was decoded.
        broken: Files that cannot be read, with causes; also those known to be broken from an earlier call.
        removed: Files that are gone, or excluded now, and were removed from the index.
        missing: Files of the index that are gone from the folders and are still in the index.
        excluded: Files of the index that are excluded now and are still in the index.
        skipped: Files and folders that were left out, with reasons.
        prune_refused: Why files that are gone were not removed from the index although this was asked for, and what to
            do; else "".
        seconds: Wall-clock time.
        seconds_of_video: Duration of the videos that were decoded.
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
        """Number of checked files that are in the index now and can be searched."""
        return len(self.added) + len(self.unchanged) + len(self.moved)

    def __str__(self) -> str:
        names = ["added", "unchanged", "moved", "broken", "removed", *(["missing"] if self.missing else [])]
        return ", ".join(f"{len(getattr(self, name))} {name}" for name in names)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a call.

    Attributes:
        done: Number of files whose outcome is written.
        total: Number of files to check.
        path: The file that this is about.
        outcome: Outcome of the file, or None while it is being read.
        frames: Number of frames with features so far, over all files.
        seconds_of_video: Video covered so far.
        bytes: Size of all finished files.
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
    """Ctrl-C during :meth:`Index.add`: finished videos are in the index, and the next call resumes from there.

    Attributes:
        report: Report of the work done so far.
    """

    def __init__(self, report: IngestReport) -> None:
        super().__init__(f"interrupted: {report}")
        self.report = report


class Tally:
    """The outcomes of one call so far.

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
        """Count a file whose outcome is safely written."""
        self._outcomes[outcome.path] = outcome
        self._bytes += self._sizes.get(outcome.path, 0)
        self._tell(outcome.path, outcome)

    def advance(self, path: str, frames: int, seconds: float) -> None:
        """Count frames with features, and the seconds of video that they cover."""
        self._frames += frames
        self._covered[path] = self._covered.get(path, 0.0) + seconds
        self._seconds_of_video += seconds
        self._tell(path, None)

    def finish(self, path: str, duration: float) -> None:
        """Count the rest of a video of that duration, from its last frame to its end."""
        self._seconds_of_video += duration - self._covered.pop(path, 0.0)

    def remove(self, paths: Iterable[str], folders: Iterable[str] = ()) -> None:
        """Count files that were removed from the index, whatever became of them before.

        Args:
            paths: The files.
            folders: Folders that are gone with them, and no longer a problem.
        """
        removed = list(paths)
        for path in (*removed, *folders):
            self._outcomes.pop(path, None)
        self._total += len(removed)
        for path in removed:
            self.settle(FileOutcome(path, "removed"))

    def miss(self, kind: Literal["missing", "excluded"], paths: Iterable[str]) -> None:
        """Note files of the index that were not in the scan and stay in the index."""
        self._missed += [FileOutcome(path, kind) for path in sorted(paths)]

    def refuse(self, reason: str) -> None:
        """Note why nothing was removed from the index; empty if nothing speaks against it."""
        self._refusal = reason

    def report(self) -> IngestReport:
        """Report of the files finished so far."""

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

    def _tell(self, path: str, outcome: FileOutcome | None) -> None:
        if self._on_progress is not None:
            counts = self._frames, self._seconds_of_video, self._bytes
            self._on_progress(Progress(len(self._outcomes), self._total, path, outcome, *counts))
