"""What became of each file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["FileOutcome", "IngestInterrupted", "IngestReport", "OnProgress", "OutcomeKind", "Progress"]

OutcomeKind = Literal["added", "changed", "unchanged", "moved", "broken", "removed"]


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file.

    Attributes:
        path: Absolute.
        kind: "added"; "changed" (indexed anew since its content changed); "unchanged"; "moved" (recognised by its
            content at a new path); "broken"; "removed".
        cause: Why it is broken; where a moved file was; whose features a copy shares; how much of an added file is
            missing at its end; else "".
    """

    path: str
    kind: OutcomeKind
    cause: str = ""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of all files of one call.

    Attributes:
        added: New and changed files that are in the index now.
        unchanged: Files that were in the index already.
        moved: Files found at a new path; nothing was decoded.
        broken: Files that cannot be read, with causes; also those known to be broken from an earlier time.
        removed: Files that are gone and were taken out of the index.
        seconds: That it took.
        seconds_of_video: Duration of the videos that were decoded.
    """

    added: tuple[FileOutcome, ...] = ()
    unchanged: tuple[FileOutcome, ...] = ()
    moved: tuple[FileOutcome, ...] = ()
    broken: tuple[FileOutcome, ...] = ()
    removed: tuple[FileOutcome, ...] = ()
    seconds: float = 0.0
    seconds_of_video: float = 0.0

    @property
    def total(self) -> int:
        """Number of files looked at or taken out."""
        return sum(map(len, (self.added, self.unchanged, self.moved, self.broken, self.removed)))

    @property
    def usable(self) -> int:
        """Number of files looked at that are in the index now and can be found."""
        return len(self.added) + len(self.unchanged) + len(self.moved)

    def __str__(self) -> str:
        names = ("added", "unchanged", "moved", "broken", "removed")
        return ", ".join(f"{len(getattr(self, name))} {name}" for name in names)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come.

    Attributes:
        done: Files whose outcome is settled and safely written.
        total: Files found.
        path: The file that this is about.
        outcome: Its outcome, or None while it is being read.
        frames: Frames described so far in all files.
        seconds_of_video: Video covered so far.
        bytes: Size of all files settled so far.
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
    """Ctrl-C during :meth:`Index.add`: what was complete is in the index, the next run goes on from there.

    Attributes:
        report: What was done until then.
    """

    def __init__(self, report: IngestReport) -> None:
        super().__init__(f"interrupted: {report}")
        self.report = report
