"""Outcome of each file, and progress of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vidkin._base.plain_values import Result

__all__ = [
    "FileOutcome",
    "IngestInterrupted",
    "IngestReport",
    "OnProgress",
    "OutcomeKind",
    "Progress",
]

OutcomeKind = Literal[
    "added", "changed", "unchanged", "moved", "broken", "removed", "missing", "excluded", "skipped"
]


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
    """

    path: str
    kind: OutcomeKind
    cause: str = ""


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
