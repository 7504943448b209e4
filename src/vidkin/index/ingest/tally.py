"""Count the outcomes of finished files, and report progress."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

from vidkin.index.ingest.files.scan import Scan
from vidkin.index.ingest.report import FileOutcome, IngestReport, OnProgress, OutcomeKind, Progress

__all__ = ["Tally"]


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

    def remove(self, paths: Iterable[str]) -> None:
        """Count files that were removed from the index, whatever became of them before."""
        removed = list(paths)
        for path in removed:
            self._outcomes.pop(path, None)
        self._total += len(removed)
        for path in removed:
            self.settle(FileOutcome(path, "removed"))

    def miss(self, kind: Literal["missing", "excluded"], paths: Iterable[str]) -> None:
        """Note files of the index that were not in the scan and stay in the index."""
        self._missed += [FileOutcome(path, kind) for path in sorted(paths)]

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
            seconds=time.monotonic() - self._started,
            seconds_of_video=self._seconds_of_video,
        )

    def _tell(self, path: str, outcome: FileOutcome | None) -> None:
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    len(self._outcomes),
                    self._total,
                    path,
                    outcome,
                    self._frames,
                    self._seconds_of_video,
                    self._bytes,
                )
            )
