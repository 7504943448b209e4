"""The state of a job: its kind, progress and result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

JobStatus = Literal["running", "done", "failed", "stopped"]
JobKind = Literal[
    "clips",
    "copies",
    "coverage",
    "duplicates",
    "index",
    "map",
    "match",
    "neighbors",
    "recurring",
    "removal",
    "remove",
    "review",
    "search",
    "shots",
]


@dataclass(frozen=True, slots=True)
class JobState:
    """State of a job.

    Attributes:
        id: Number of the job; numbers grow, even across restarts of the server.
        kind: Kind of work, which determines the type of `result`.
        title: Title for users.
        video: Number of the video that the job is about; None if there is not exactly one.
        state: ``running``, ``done``, ``failed`` or ``stopped``.
        done, total: Steps; total is 0 until it is known.
        detail: Description of the current work.
        notes: Lines to keep, for example unreadable files with their causes.
        result: Result of a finished job, as plain values.
        error: Error of a failed job; otherwise empty.
        seconds: Wall-clock time so far.
        rate: Recent steps per second; 0 until it is known.
        seconds_left: Estimated seconds to the end; None until it is known.
        version: Counter that grows with every change.
    """

    id: int
    kind: JobKind
    title: str
    video: int | None
    state: JobStatus = "running"
    done: int = 0
    total: int = 0
    detail: str = ""
    notes: tuple[str, ...] = ()
    result: Any = None
    error: str = ""
    seconds: float = 0.0
    rate: float = 0.0
    seconds_left: float | None = None
    version: int = 0
