"""The state of a job: what it does, how far it has come, and its result."""

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
    """How far a job has come.

    Attributes:
        id: Number of the job; a later one has a larger number, also after the server was started again.
        kind: Kind of work; it tells what `result` is.
        title: For people.
        video: Number of the video that it is about; None if it is about none, or about many.
        state: ``running``, ``done``, ``failed`` or ``stopped``.
        done, total: Steps; total is 0 as long as it is not known.
        detail: Description of the current work.
        notes: Lines to keep, for example files that cannot be read, with causes.
        result: Result of a finished job, as plain values.
        error: Error of a failed job; empty for others.
        seconds: Wall-clock time so far.
        rate: Steps per second of late; 0 as long as that is not known.
        seconds_left: Estimate of the time to the end; None as long as that is not known.
        version: Grows with every change.
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
