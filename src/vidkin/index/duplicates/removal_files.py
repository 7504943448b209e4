"""The files that a plan moves, and what happened to each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vidkin._base.values import Result
from vidkin.index.duplicates.plans import DuplicatePlan, FileState
from vidkin.index.duplicates.plans_signature import PlanKey

NOT_PLANNED = "its index did not plan this: the entry is unsigned or was changed; make the plan again, or --any-file"
"""Cause for which an unsigned entry is left alone."""


@dataclass(frozen=True, slots=True)
class FileAction(Result):
    """What happened to one file.

    Attributes:
        path: The file.
        outcome: ``removed``, ``restored``, ``skipped``; ``planned`` in a dry run.
        place: Where it is now; empty if the trash does not tell.
        cause: Why it was skipped.
        size: Bytes.
        video: The video that it belongs to; empty for a video itself.
    """

    path: str
    outcome: Literal["removed", "restored", "skipped", "planned"]
    place: str = ""
    cause: str = ""
    size: int = 0
    video: str = ""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file that a plan moves.

    Attributes:
        file: The file.
        keep: The file that replaces it, or its video.
        video: The video that it belongs to; None for a video.
    """

    file: FileState
    keep: FileState
    video: FileState | None = None

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.file.path

    def is_signed(self, key: PlanKey) -> bool:
        """Whether the index with this key planned it."""
        if self.video is None:
            return key.has_signed(self.keep, self.file)
        return key.has_signed(self.keep, self.video, self.file)


def planned_files(plan: DuplicatePlan) -> Iterator[PlannedFile]:
    """Every file that a plan moves, each video before what belongs to it."""
    for group in plan.groups:
        for file in group.remove:
            yield PlannedFile(file, group.keep)
            for companion in file.companions:
                yield PlannedFile(companion, group.keep, file)


def cause_of(error: OSError) -> str:
    """Why a file was not moved, in words."""
    return f"it cannot be moved: {error.strerror or error}"
