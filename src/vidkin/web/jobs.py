"""Jobs: work that outlives a request, with progress that every page can watch, and a way to stop it."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from vidkin._base.files import replace_file
from vidkin._base.locks import open_lock
from vidkin._base.stopping import StoppedError, stopping_when
from vidkin._base.values import JSON_LIMITS, as_json, read_json
from vidkin.errors import CollectionError, MediaError, VidkinError
from vidkin.index import VideoRecord
from vidkin.rendering.text import json_text, printable
from vidkin.web.lanes import BusyError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_logger = logging.getLogger(__name__)
# Maximum number of finished jobs in memory, and of notes per job.
_MAX_KEPT, _MAX_NOTES = 50, 1000
# The rate covers the last half minute: 60 samples, one every half second.
_PACE_EVERY, _PACE_REPORTS = 0.5, 60
# Maximum number of jobs, running and waiting, of a kind that takes turns; and seconds between checks for a stop while
# waiting.
_MAX_IN_TURN, _POLL_SECONDS = 64, 0.2
MAX_STORED = 50
"""Maximum number of jobs on disk; beyond it the oldest are deleted."""
# Maximum bytes of a job on disk; a larger result is only available from this server.
_MAX_SIZE = 16_000_000
_INTERRUPTED = "the server ended before this job did; start it again: finished work is kept"

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


class JobStoppedError(Exception):
    """Raised by :meth:`Job.report` inside a job that was stopped."""


class JobRunningError(Exception):
    """A job of the same kind is running.

    Attributes:
        job: The running job.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(f'"{printable(job.title)}" is still running; wait until it ends, or stop it')
        self.job = job


class Job:
    """A piece of work in its own thread, whose function receives this object and reports to it."""

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
        # Times and steps to compute the rate from; steps of an earlier run do not count.
        self._pace: deque[tuple[float, int]] = deque(maxlen=_PACE_REPORTS)

    @property
    def is_running(self) -> bool:
        """Whether the job is still running."""
        return self._state.state == "running"

    def report(self, done: int, total: int, detail: str = "") -> None:
        """Report progress; to be called often.

        Raises:
            JobStoppedError: The job was asked to stop.
        """
        now = time.monotonic()
        if self._pace and (done < self._pace[-1][1] or not self._state.total):
            self._pace.clear()  # a new kind of steps, or steps of an earlier run
        if not self._pace or now - self._pace[-1][0] >= _PACE_EVERY:
            self._pace.append((now, done))
        began, first = self._pace[0]
        rate = (done - first) / (now - began) if now > began else 0.0
        left = round((total - done) / rate, 1) if rate > 0 and total else None
        self._change(done=done, total=total, detail=self._shown(detail), rate=round(rate, 2), seconds_left=left)
        if self._stop.is_set():
            raise JobStoppedError(self.title)

    def report_quietly(self, detail: str) -> None:
        """Report final work that cannot be stopped."""
        self._is_ending = True
        self._change(detail=self._shown(detail), seconds_left=None)

    def note(self, line: str) -> None:
        """Add a line to the notes shown on the page, for example a broken file."""
        notes = self._state.notes
        self._change(notes=(*notes, self._shown(line)) if len(notes) < _MAX_NOTES else notes)

    def stop(self) -> None:
        """Ask the work to stop at its next report or before the next frame it reads."""
        self._stop.set()

    def _is_unwanted(self) -> bool:
        return self._stop.is_set() and not self._is_ending

    def state(self) -> JobState:
        """The current state of the job."""
        with self._lock:
            return replace(self._state, seconds=round((self._ended or time.monotonic()) - self._began, 1))

    def run(self, work: Callable[[Job], object]) -> None:
        """Do the work, and store its return value as the result.

        Every exception is caught: at the bottom of a thread no caller would see it, and clients must learn that the job
        ended. Errors of vidkin or the system are reported; any other exception is a bug, and its traceback is logged.
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
    """Whether an error or one of its causes reports a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        # Lance and FFmpeg report it only in their message.
        if isinstance(error, OSError | CollectionError) and "no space left" in str(error).lower():
            return True
        error = error.__cause__
    return False


def describe_failure(error: Exception) -> str:
    """Describe an error in a sentence for users; for a system error it names the file and a remedy."""
    name = error.path if isinstance(error, MediaError) else getattr(error, "filename", None)
    where = f"{os.fspath(name)}: " if isinstance(name, str | os.PathLike) else ""
    if is_disk_full(error):
        # Name the folder: the file itself, perhaps a partial one, is gone.
        return (
            f"{os.path.dirname(where) or 'the server'}: no space is left on this disk; free some space, then try again"
        )
    if isinstance(error, HTTPException):
        return str(error.detail)
    if not isinstance(error, OSError) or isinstance(error, VidkinError):
        return str(error)
    cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"{where}{cause.lower()}; correct this, then try again"


_STATES = TypeAdapter(JobState)


@dataclass(frozen=True, slots=True)
class FailedVideo:
    """A video that could not be processed.

    Attributes:
        path: Path of the video.
        cause: Why it could not be processed.
    """

    path: str
    cause: str


def process_each(
    job: Job, records: Sequence[VideoRecord], process: Callable[[VideoRecord, Callable[..., None]], None]
) -> list[FailedVideo]:
    """Process videos one after another, and return those that failed.

    Args:
        job: The job that does it.
        records: The videos.
        process: Processes a video; it receives a function to call for each frame, so that the job can stop in between.
    """
    failed = []
    for done, record in enumerate(records):

        def report(*_: object, done: int = done, path: str = record.path) -> None:
            job.report(done, len(records), printable(os.path.basename(path)))

        try:
            report()
            process(record, report)
        except VidkinError as error:
            failed.append(FailedVideo(printable(record.path), printable(str(error))))
            job.note(f"{record.path}: {error}")
    return failed


class JobFiles:
    """Jobs of all servers of an index, one file each, for the servers after this one.

    A job is written when it begins and when it ends. Its server locks it in between, so that the next server can
    distinguish a job of another running server from a job whose server ended first. The folder may be untrusted: files
    that are not valid jobs are ignored; one that is not writable is not an error.

    Args:
        folder: Folder of the jobs, created when the first job begins.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[int, JobState] = {}
        self._locks: dict[int, BaseFileLock] = {}

    def begin(self, state: JobState) -> None:
        """Write a new job and lock it until :meth:`keep`."""
        if self._write(state) and (lock := self._lock(state.id)) is not None:
            self._locks[state.id] = lock

    def keep(self, state: JobState) -> None:
        """Write a finished job and delete the oldest ones beyond the limit."""
        self._write(state)
        lock = self._locks.pop(state.id, None)
        if lock is not None:
            self._unlock(state.id, lock)

    def settle(self) -> None:
        """Mark jobs whose server ended first as failed; to be called when a server starts."""
        for number in self._numbers(".lock"):
            lock = self._lock(number)
            if lock is None:  # another server is running it
                continue
            state = self._load(number)
            if state is not None and state.state == "running":
                ended = replace(state, state="failed", error=_INTERRUPTED, seconds_left=None, version=state.version + 1)
                self._write(ended)
            self._unlock(number, lock)

    def read(self, number: int) -> JobState | None:
        """The finished job with a number; None if there is none."""
        if number not in self._read:
            state = self._load(number)
            if state is None or state.state == "running":  # another server may be running it
                return None
            self._read[number] = state
        return self._read[number]

    def all(self) -> list[JobState]:
        """All stored finished jobs, newest first."""
        return [state for number in self._numbers()[-MAX_STORED:][::-1] if (state := self.read(number)) is not None]

    def _load(self, number: int) -> JobState | None:
        """The job in a file; None if the file is not this job, or there is none."""
        try:
            state = _STATES.validate_python(read_json(self._folder / f"{number}.json", JSON_LIMITS))
        except (OSError, ValueError):
            return None
        return state if state.id == number else None

    def _write(self, state: JobState) -> bool:
        """Write a job; return whether that was possible."""
        content = json_text(state).encode("ascii")
        if len(content) > _MAX_SIZE:
            _logger.info("job %d is too large to be kept", state.id)
            return False
        try:
            if self._folder.is_symlink():
                raise NotADirectoryError(f"{self._folder} is a symbolic link")
            self._folder.mkdir(exist_ok=True)  # never the index around it, which may have been moved away
            with replace_file(self._folder / f"{state.id}.json", sync=False) as partial:
                partial.write_bytes(content)
            for number in self._numbers()[:-MAX_STORED]:
                (self._folder / f"{number}.json").unlink(missing_ok=True)
                self._read.pop(number, None)
        except OSError as error:
            _logger.info("%s: jobs are not kept (%s)", self._folder, error)
            return False
        return True

    def _lock(self, number: int) -> BaseFileLock | None:
        """The lock of a job, held from now on; None if another server holds it, or the folder cannot have locks."""
        try:
            lock = open_lock(self._folder / f"{number}.lock")
            lock.acquire(timeout=0)
        except (OSError, NotImplementedError) as error:  # filelock's Timeout is an OSError, too
            _logger.info("%s: job %d is not locked (%s)", self._folder, number, error)
            return None
        return lock

    def _unlock(self, number: int, lock: BaseFileLock) -> None:
        try:
            lock.release()
            (self._folder / f"{number}.lock").unlink(missing_ok=True)
        except OSError as error:
            _logger.info("%s: the lock of job %d stays (%s)", self._folder, number, error)

    def _numbers(self, ending: str = ".json") -> list[int]:
        """The numbers of the files with an ending, in order."""
        if self._folder.is_symlink():
            return []
        try:
            stems = [path.stem for path in self._folder.glob(f"*{ending}")]
        except OSError:
            return []
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and len(stem) < 16)


class Jobs:
    """The jobs of a server; for most kinds one runs at a time.

    Args:
        files: Jobs on disk; None keeps them in memory only.
        shown: Function that makes text printable.
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
        """Start ``work(job)`` as a job.

        Args:
            kind: Kind of work.
            title: Title for users.
            work: Function that does the work; it receives the job.
            video: Number of the video that the job is about.
            turns: Semaphore on which jobs of this kind wait for each other instead of being refused.

        Raises:
            JobRunningError: A job of this kind is already running.
            BusyError: Too many jobs are waiting for their turn.
        """
        with self._lock:
            running = [job for job in self._jobs.values() if job.kind == kind and job.is_running]
            if running and turns is None:
                raise JobRunningError(running[0])
            if len(running) >= _MAX_IN_TURN:
                raise BusyError(f"too many jobs of the kind {kind!r} at once; try again in a moment")
            # Numbers come from the clock, so that a restarted server does not reuse them.
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            job = Job(self._last, kind, title, video, self._shown)
            self._jobs[job.id] = job
            ended = [number for number, old in self._jobs.items() if not old.is_running]
            for number in ended[:-_MAX_KEPT]:
                del self._jobs[number]
        threading.Thread(target=self._run, args=[job, work, turns], name=f"vidkin {kind}", daemon=True).start()
        return job

    def _run(self, job: Job, work: Callable[[Job], object], turns: threading.Semaphore | None) -> None:
        if self._files is not None:
            self._files.begin(job.state())
        job.run(work if turns is None else partial(_run_in_turn, turns, work))
        if self._files is not None:
            self._files.keep(job.state())

    def state(self, number: int) -> JobState | None:
        """The state of the job with this number; None if there is none or it was deleted."""
        job = self.get(number)
        if job is not None:
            return job.state()
        return None if self._files is None else self._files.read(number)

    def states(self) -> list[JobState]:
        """The states of all jobs, newest first: jobs of this server, and stored finished ones."""
        found = {} if self._files is None else {state.id: state for state in self._files.all()}
        found |= {job.id: job.state() for job in self.all()}
        return [found[number] for number in sorted(found, reverse=True)]

    def get(self, number: int) -> Job | None:
        """The job with this number; None if this server has none or has dropped it."""
        return self._jobs.get(number)

    def all(self) -> list[Job]:
        """The jobs of this server, newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.id)

    def stop(self) -> None:
        """Ask all jobs to stop, because the server is shutting down."""
        for job in self.all():
            job.stop()


def _run_in_turn(turns: threading.Semaphore, work: Callable[[Job], object], job: Job) -> object:
    """Do the work of a job when it is its turn."""
    while not turns.acquire(timeout=_POLL_SECONDS):
        job.report(0, 0, "waiting for its turn")
    try:
        job.report(0, 0, "comparing")
        return work(job)
    finally:
        turns.release()
