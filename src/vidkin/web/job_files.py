"""Store a limited number of jobs on disk, so that they can be read after a restart of the server.

A job is written when it begins and when it ends. Its server locks it in between, so that the next server can
distinguish a job of another running server from a job whose server ended first.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from vidkin._base.files import replace_file
from vidkin._base.locks import open_lock
from vidkin._base.values import JSON_LIMITS, read_json
from vidkin.rendering.text import json_text
from vidkin.web.job_state import JobState

if TYPE_CHECKING:
    from filelock import BaseFileLock

_logger = logging.getLogger(__name__)
_STATES = TypeAdapter(JobState)
MAX_STORED = 50
"""Maximum number of stored jobs; beyond it the oldest are deleted."""
# Maximum bytes of a stored job; a larger result is only available from this server.
_MAX_SIZE = 16_000_000
_INTERRUPTED = "the server ended before this job did; start it again: finished work is kept"


class JobFiles:
    """Jobs of all servers of an index, one file each.

    The folder may be untrusted: files that are not valid jobs are ignored.

    Args:
        folder: Folder of the jobs, created when the first job begins; None stores nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read: dict[int, JobState | None] = {}
        self._locks: dict[int, BaseFileLock] = {}

    def begin(self, state: JobState) -> None:
        """Write a new job and lock it until :meth:`keep`; a folder that is not writable is not an error."""
        if self._folder is None or not self._write(state):
            return
        try:
            lock = open_lock(self._lock_path(state.id))
            lock.acquire(timeout=0)
            self._locks[state.id] = lock
        except (OSError, NotImplementedError) as error:  # filelock's Timeout is an OSError, too
            _logger.info("%s: job %d is not locked (%s)", self._folder, state.id, error)

    def keep(self, state: JobState) -> None:
        """Write a finished job and delete the oldest ones beyond the limit; a folder that is not writable is not an
        error."""
        self._write(state)
        lock = self._locks.pop(state.id, None)
        if lock is not None:
            self._unlock(state.id, lock)

    def settle(self) -> None:
        """Mark jobs whose server ended first as failed; to be called when a server starts."""
        for number in self._numbers(".lock"):
            try:
                lock = open_lock(self._lock_path(number))
                lock.acquire(timeout=0)
            except (OSError, NotImplementedError):  # another server is running it
                continue
            try:
                state = self._load(number)
            except FileNotFoundError:
                state = None
            if state is not None and state.state == "running":
                ended = replace(state, state="failed", error=_INTERRUPTED, seconds_left=None, version=state.version + 1)
                self._write(ended)
            self._unlock(number, lock)

    def _lock_path(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{number}.lock"

    def _unlock(self, number: int, lock: BaseFileLock) -> None:
        try:
            lock.release()
            self._lock_path(number).unlink(missing_ok=True)
        except OSError as error:
            _logger.info("%s: the lock of job %d stays (%s)", self._folder, number, error)

    def _write(self, state: JobState) -> bool:
        """Write a job; return whether that was possible."""
        if self._folder is None:
            return False
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

    def read(self, number: int) -> JobState | None:
        """The finished job with a number; None if there is none."""
        if self._folder is None:
            return None
        if number not in self._read:
            try:
                state = self._load(number)
            except FileNotFoundError:
                return None
            if state is not None and state.state == "running":  # another server may be running it
                return None
            self._read[number] = state
        return self._read[number]

    def _load(self, number: int) -> JobState | None:
        """The job in a file; None if the file is not this job.

        Raises:
            FileNotFoundError: The file does not exist.
        """
        assert self._folder is not None
        try:
            state = _STATES.validate_python(read_json(self._folder / f"{number}.json", JSON_LIMITS))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, ValidationError):
            return None
        return state if state.id == number else None

    def all(self) -> list[JobState]:
        """All stored finished jobs, newest first."""
        try:
            numbers = self._numbers()[-MAX_STORED:]
        except OSError:
            return []
        return [state for number in reversed(numbers) if (state := self.read(number)) is not None]

    def _numbers(self, ending: str = ".json") -> list[int]:
        if self._folder is None or not self._folder.is_dir() or self._folder.is_symlink():
            return []
        stems = (path.stem for path in self._folder.glob(f"*{ending}"))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and len(stem) < 16)
