"""Work that outlives a request: progress that every page can watch, results, and a way to stop."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException

from vidkin._base.stopping import StoppedError, stopping_when
from vidkin._base.values import as_json
from vidkin.errors import CollectionError, MediaError, VidkinError
from vidkin.rendering.text import printable
from vidkin.web.job_files import JobFiles
from vidkin.web.job_state import JobKind, JobState
from vidkin.web.lanes import BusyError

_logger = logging.getLogger(__name__)
# Finished jobs that are remembered, and notes of one.
_MOST_KEPT, _MOST_NOTES = 50, 1000
# The rate is that of the last half a minute.
_PACE_EVERY, _PACE_REPORTS = 0.5, 60
# Jobs of a kind that takes turns, at work and waiting; and seconds between looks whether one is wanted while it waits.
_MAX_IN_TURN, _LOOK_EVERY = 64, 0.2


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


class Job:
    """One piece of work in a thread of its own. Its function gets this object and reports to it."""

    def __init__(
        self, number: int, kind: JobKind, title: str, video: int | None = None, shown: Callable[[str], str] = printable
    ) -> None:
        self.id, self.kind, self.title, self.video = number, kind, title, video
        self._shown = shown
        self._lock = threading.Lock()
        self._began, self._ended = time.monotonic(), 0.0
        self._state = JobState(number, kind, title, video)
        self._stop = threading.Event()
        self._is_ending = False
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
        self._change(done=done, total=total, detail=self._shown(detail), rate=round(rate, 2), seconds_left=left)
        if self._stop.is_set():
            raise JobStoppedError(self.title)

    def report_quietly(self, detail: str) -> None:
        """Say what is being done to the end that no stop ends."""
        self._is_ending = True
        self._change(detail=self._shown(detail), seconds_left=None)

    def note(self, line: str) -> None:
        """Add a line to the notes that the page shows, for example a broken file."""
        notes = self._state.notes
        self._change(notes=(*notes, self._shown(line)) if len(notes) < _MOST_NOTES else notes)

    def stop(self) -> None:
        """Ask the work to stop at its next report, or before the next frame that it reads."""
        self._stop.set()

    def _is_unwanted(self) -> bool:
        return self._stop.is_set() and not self._is_ending

    def state(self) -> JobState:
        """State of the job now."""
        with self._lock:
            return replace(self._state, seconds=round((self._ended or time.monotonic()) - self._began, 1))

    def run(self, work: Callable[[Job], object]) -> None:
        """Do the work; what it returns is the result.

        No error leaves: this is the bottom of the job's thread, where nobody could catch it, and whoever watches the
        job must learn that it ended. An error of vidkin or of the system, or a refusal, is reported; any other error is
        a bug, and its traceback is logged.
        """
        end: dict[str, Any] = {"state": "done"}
        try:
            with stopping_when(self._is_unwanted):
                end["result"] = as_json(work(self))
        except (JobStoppedError, StoppedError):
            end = {"state": "stopped"}
        except (VidkinError, OSError, HTTPException) as error:
            end = {"state": "failed", "error": self._shown(describe_failure(error))}
        except Exception as error:
            _logger.error("%s failed", self.title, exc_info=error)
            cause = self._shown(f"internal error: {type(error).__name__}: {error}")
            end = {"state": "failed", "error": cause}
        self._ended = time.monotonic()
        self._change(**end, seconds_left=None)

    def _change(self, **fields: Any) -> None:
        with self._lock:
            self._state = replace(self._state, version=self._state.version + 1, **fields)


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, is of a disk that has no room left."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        # Lance and FFmpeg state it in their text only.
        if isinstance(error, OSError | CollectionError) and "no space left" in str(error).lower():
            return True
        error = error.__cause__
    return False


def describe_failure(error: Exception) -> str:
    """What went wrong, as a sentence for people; of an error of the system it names the file and what to do."""
    name = error.path if isinstance(error, MediaError) else getattr(error, "filename", None)
    where = f"{os.fspath(name)}: " if isinstance(name, str | os.PathLike) else ""
    if is_disk_full(error):
        # The file itself, perhaps an unfinished one, is gone.
        return f"{os.path.dirname(where) or 'the server'}: no space is left on this disk; make room, then try again"
    if isinstance(error, HTTPException):
        return str(error.detail)
    if not isinstance(error, OSError) or isinstance(error, VidkinError):
        return str(error)
    cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"{where}{cause.lower()}; correct this, then try again"


class Jobs:
    """The jobs of a server; of most kinds one runs at a time.

    Args:
        files: Where they are kept, for the next server as well.
        shown: Makes a text one that can be shown.
    """

    def __init__(self, files: JobFiles | None = None, shown: Callable[[str], str] = printable) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._files, self._shown = files, shown
        if files is not None:
            files.settle()
        self._last = 0

    def start(
        self,
        kind: JobKind,
        title: str,
        work: Callable[[Job], object],
        *,
        video: int | None = None,
        turns: threading.Semaphore | None = None,
    ) -> Job:
        """Begin ``work(job)``.

        Args:
            kind: Kind of work.
            title: For people.
            work: What is done; it gets the job.
            video: Number of the video that it is about.
            turns: Jobs of this kind wait for each other by it, instead of being refused.

        Raises:
            JobRunningError: A job of this kind is running already.
            BusyError: Too many wait for their turn.
        """
        with self._lock:
            running = [job for job in self._jobs.values() if job.kind == kind and job.is_running]
            if running and turns is None:
                raise JobRunningError(running[0])
            if len(running) >= _MAX_IN_TURN:
                raise BusyError(f"too many jobs of the kind {kind!r} at a time; try again in a moment")
            # Of the clock, so that no number means another job after the server was started again.
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            job = Job(self._last, kind, title, video, self._shown)
            self._jobs[job.id] = job
            ended = [number for number, old in self._jobs.items() if not old.is_running]
            for number in ended[:-_MOST_KEPT]:
                del self._jobs[number]
        threading.Thread(target=self._run, args=[job, work, turns], name=f"vidkin {kind}", daemon=True).start()
        return job

    def _run(self, job: Job, work: Callable[[Job], object], turns: threading.Semaphore | None) -> None:
        if self._files is not None:
            self._files.begin(job.state())
        job.run(work if turns is None else partial(_when_free, turns, work))
        if self._files is not None:
            self._files.keep(job.state())

    def state(self, number: int) -> JobState | None:
        """The state of the job of this number; None if there is none, or it ended long ago."""
        job = self.get(number)
        if job is not None:
            return job.state()
        return None if self._files is None else self._files.read(number)

    def states(self) -> list[JobState]:
        """The states of all jobs, newest first: those of this server, and finished ones that are stored."""
        found = {} if self._files is None else {state.id: state for state in self._files.all()}
        found |= {job.id: job.state() for job in self.all()}
        return [found[number] for number in sorted(found, reverse=True)]

    def get(self, number: int) -> Job | None:
        """The job of this number; None if this server has none, or it ended long ago."""
        return self._jobs.get(number)

    def all(self) -> list[Job]:
        """The jobs of this server, newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.id)

    def stop(self) -> None:
        """Ask all jobs to stop, because the server ends."""
        for job in self.all():
            job.stop()


def _when_free(turns: threading.Semaphore, work: Callable[[Job], object], job: Job) -> object:
    """Do the work of a job when its turn comes."""
    while not turns.acquire(timeout=_LOOK_EVERY):
        job.report(0, 0, "waiting for its turn")
    try:
        job.report(0, 0, "comparing")
        return work(job)
    finally:
        turns.release()
