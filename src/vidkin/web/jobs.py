"""Work that outlives a request: progress that every page can watch, results, and a way to stop."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from vidkin._base.values import as_json
from vidkin.errors import VidkinError
from vidkin.rendering.text import printable

_logger = logging.getLogger(__name__)
JobStatus = Literal["running", "done", "failed", "stopped"]
# Finished jobs that are remembered, and notes of one.
_MOST_KEPT, _MOST_NOTES = 50, 1000
# The rate is that of the last half a minute.
_PACE_EVERY, _PACE_REPORTS = 0.5, 60


class JobStoppedError(Exception):
    """Raised inside a job that somebody stopped, by :meth:`Job.report`."""


class JobRunningError(Exception):
    """A job of the same kind is at work.

    Attributes:
        job: The running job.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(f'"{printable(job.title)}" is still running; wait until it ends, or stop it')
        self.job = job


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job has come.

    Attributes:
        id: Number of the job.
        kind: Kind of work, for example ``index``.
        title: For people.
        video: Number of the video that it is about; None if it is about none, or about many.
        state: ``running``, ``done``, ``failed`` or ``stopped``.
        done, total: Steps; total is 0 as long as it is not known.
        detail: Description of the current work.
        notes: Lines to keep, for example files that cannot be read, with causes.
        result: Result of a finished job, as plain values.
        error: Error of a failed job.
        seconds: Wall-clock time so far.
        rate: Steps per second of late; 0 as long as that is not known.
        seconds_left: Estimate of the time to the end; None as long as that is not known.
        version: Grows with every change.
    """

    id: int
    kind: str
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


class Job:
    """One piece of work in a thread of its own. Its function gets this object and reports to it."""

    def __init__(self, number: int, kind: str, title: str, video: int | None = None) -> None:
        self.id, self.kind, self.title, self.video = number, kind, title, video
        self._lock = threading.Lock()
        self._began, self._ended = time.monotonic(), 0.0
        self._state = JobState(number, kind, title, video)
        self._stop = threading.Event()
        # Moments and steps from which the rate is told: steps that an earlier run did cost this one nothing.
        self._pace: deque[tuple[float, int]] = deque(maxlen=_PACE_REPORTS)

    @property
    def is_running(self) -> bool:
        """Whether the job has not ended yet."""
        return self._state.state == "running"

    def report(self, done: int, total: int, detail: str = "") -> None:
        """Say how far the work is; call it often.

        Raises:
            JobStoppedError: Somebody wants the work to stop.
        """
        now = time.monotonic()
        if self._pace and (done < self._pace[-1][1] or not self._state.total):
            self._pace.clear()  # another kind of step, or the steps of earlier runs
        if not self._pace or now - self._pace[-1][0] >= _PACE_EVERY:
            self._pace.append((now, done))
        began, first = self._pace[0]
        rate = (done - first) / (now - began) if now > began else 0.0
        left = round((total - done) / rate, 1) if rate > 0 and total else None
        self._change(done=done, total=total, detail=printable(detail), rate=round(rate, 2), seconds_left=left)
        if self._stop.is_set():
            raise JobStoppedError(self.title)

    def report_quietly(self, detail: str) -> None:
        """Say what is being done that no stop ends."""
        self._change(detail=printable(detail), seconds_left=None)

    def note(self, line: str) -> None:
        """Add a line to the notes that the page shows, for example a broken file."""
        notes = self._state.notes
        self._change(notes=(*notes, printable(line)) if len(notes) < _MOST_NOTES else notes)

    def stop(self) -> None:
        """Ask the work to stop at its next report."""
        self._stop.set()

    def state(self) -> JobState:
        """State of the job now."""
        with self._lock:
            return replace(self._state, seconds=round((self._ended or time.monotonic()) - self._began, 1))

    def run(self, work: Callable[[Job], object]) -> None:
        """Do the work; what it returns is the result.

        No error leaves: this is the bottom of the job's thread, where nobody could catch it, and whoever watches the
        job must learn that it ended. An error of vidkin is reported unchanged; any other error is a bug, and its
        traceback is logged.
        """
        end: dict[str, Any] = {"state": "done"}
        try:
            end["result"] = as_json(work(self))
        except JobStoppedError:
            end = {"state": "stopped"}
        except VidkinError as error:
            end = {"state": "failed", "error": printable(str(error))}
        except Exception as error:
            _logger.error("%s failed", self.title, exc_info=error)
            cause = printable(f"internal error: {type(error).__name__}: {error}")
            end = {"state": "failed", "error": cause}
        self._ended = time.monotonic()
        self._change(**end, seconds_left=None)

    def _change(self, **fields: Any) -> None:
        with self._lock:
            self._state = replace(self._state, version=self._state.version + 1, **fields)


class Jobs:
    """The jobs of a server; of each kind one runs at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._numbers = itertools.count(1)

    def start(self, kind: str, title: str, work: Callable[[Job], object], *, video: int | None = None) -> Job:
        """Begin ``work(job)``.

        Raises:
            JobRunningError: A job of this kind is running already.
        """
        with self._lock:
            for job in self._jobs.values():
                if job.kind == kind and job.is_running:
                    raise JobRunningError(job)
            job = Job(next(self._numbers), kind, title, video)
            self._jobs[job.id] = job
            ended = [number for number, old in self._jobs.items() if not old.is_running]
            for number in ended[:-_MOST_KEPT]:
                del self._jobs[number]
        threading.Thread(target=job.run, args=[work], name=f"vidkin {kind}", daemon=True).start()
        return job

    def get(self, number: int) -> Job | None:
        """The job of this number; None if there is none, or it ended long ago."""
        return self._jobs.get(number)

    def all(self) -> list[Job]:
        """The jobs, newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.id)

    def stop(self) -> None:
        """Ask all jobs to stop, because the server ends."""
        for job in self.all():
            job.stop()
