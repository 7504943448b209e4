"""Finished jobs on disk, so that their results can be read after the server has ended; a bounded number of them."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vidkin._base.files import replace_file
from vidkin._base.values import JSON_LIMITS, read_json
from vidkin.rendering.text import json_text
from vidkin.web.job_state import JobState

_logger = logging.getLogger(__name__)
_STATES = TypeAdapter(JobState)
MAX_STORED = 50
"""Jobs that are kept; of more the oldest are deleted."""
# Bytes of one; a result of more is for the pages of this server only.
_MAX_SIZE = 16_000_000


class JobFiles:
    """The finished jobs of an index, of all servers that worked on it, one file each.

    The folder may be a stranger's: a file that is not a job as this writes it is ignored.

    Args:
        folder: Where they are; made when the first job ends. None keeps none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read: dict[int, JobState | None] = {}

    def keep(self, state: JobState) -> None:
        """Write a finished job, and delete the oldest ones beyond the limit; a folder that refuses is no error."""
        if self._folder is None:
            return
        content = json_text(state).encode("ascii")
        if len(content) > _MAX_SIZE:
            _logger.info("job %d is too large to be kept", state.id)
            return
        try:
            if self._folder.is_symlink():
                raise NotADirectoryError(f"{self._folder} is a symbolic link")
            self._folder.mkdir(exist_ok=True)  # not the index around it, which may have been moved away
            with replace_file(self._folder / f"{state.id}.json", sync=False) as partial:
                partial.write_bytes(content)
            for number in self._numbers()[:-MAX_STORED]:
                (self._folder / f"{number}.json").unlink(missing_ok=True)
                self._read.pop(number, None)
        except OSError as error:
            _logger.info("%s: finished jobs are not kept (%s)", self._folder, error)

    def read(self, number: int) -> JobState | None:
        """The job of a number; None if there is none."""
        if self._folder is None:
            return None
        if number not in self._read:
            try:
                table = read_json(self._folder / f"{number}.json", JSON_LIMITS)
                state = _STATES.validate_python(table)
            except FileNotFoundError:
                return None
            except (OSError, ValueError, ValidationError):
                state = None
            # One that calls itself something else, or still runs, was not written here.
            self._read[number] = state if state and state.id == number and state.state != "running" else None
        return self._read[number]

    def all(self) -> list[JobState]:
        """The jobs that are kept, newest first."""
        try:
            numbers = self._numbers()[-MAX_STORED:]
        except OSError:
            return []
        return [state for number in reversed(numbers) if (state := self.read(number)) is not None]

    def _numbers(self) -> list[int]:
        if self._folder is None or not self._folder.is_dir() or self._folder.is_symlink():
            return []
        stems = (path.stem for path in self._folder.glob("*.json"))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and len(stem) < 16)
