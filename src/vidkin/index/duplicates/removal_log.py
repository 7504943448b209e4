"""The log of a plan that is carried out: a line of JSON before and after each step, written by one process at a time.

It stands next to the plan, under the plan's name with ``.log`` after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from vidkin._base import disk
from vidkin._base.arguments import check_constructor
from vidkin._base.files import check_file_name, read_regular_file
from vidkin._base.locks import open_lock
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError, MediaError

StepState = Literal["begun", "done", "undoing", "undone"]

Link = Literal["", "hard", "symbolic"]

# A log of some million steps; what is longer is none.
_MOST_BYTES = 1 << 30
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """One file that was moved away.

    Attributes:
        source: Where it was.
        place: Where it goes, or is; for the system's trash its name there. Empty where the system does not report it
            (Windows, macOS).
        link: What was put in its place.
        kept: The file that the link points to.
        state: ``begun`` before the step, ``done`` after it, ``undoing`` before it is undone, ``undone`` when it was.
        size: Bytes.
        content: Hash of all bytes.
        kept_content: The same of the file that the link points to.
        video: The video that it belongs to; empty for a video itself.
        device, inode: Identify the file itself, whatever its name: those of its old path until the step is done, then
            those of its new one.
    """

    source: str
    place: str
    link: Link
    kept: str
    state: StepState
    size: int
    content: str
    kept_content: str
    video: str
    device: int
    inode: int


@check_constructor
class Journal:
    """Steps in a file; each is on disk before the next begins.

    Args:
        path: The file; created if missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._is_mended = False

    @classmethod
    def of_plan(cls, plan: str | os.PathLike[str]) -> Journal:
        """The log of the plan in a file: one for each plan, through whatever link it is reached."""
        return cls(f"{os.path.realpath(plan)}.log")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only process that carries out or undoes the plan of this log.

        The lock is one of the operating system, on a hidden file beside the log; it ends with the process.

        Raises:
            MediaError: Another process has it, or the system refuses.
        """
        from filelock import Timeout  # loads asyncio, which readers do not need

        path = self.path.with_name(f".{self.path.name}.lock")
        try:
            lock = open_lock(path)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise MediaError(
                self.path, "another `vidkin apply` is writing to this log; wait until it has ended"
            ) from error
        except OSError as error:
            raise MediaError(self.path, f"the log cannot be written: {error.strerror or error}") from error
        try:
            yield
        finally:
            lock.release()

    def write(self, step: RemovalStep) -> RemovalStep:
        """Add one line.

        Raises:
            MediaError: The file cannot be written, or is a symbolic link.
        """
        path = os.fspath(self.path)
        try:
            is_new = not os.path.lexists(path)
            if not is_new and not self._is_mended:
                self._cut_unfinished_line()
            descriptor = os.open(path, _APPEND, 0o666)
            try:
                disk.write(descriptor, (json.dumps(asdict(step)) + "\n").encode("ascii"), path)
            finally:
                os.close(descriptor)
            disk.sync_file(path)
            if is_new:
                disk.sync_folder(self.path.parent)
        except OSError as error:
            self._is_mended = False
            raise MediaError(self.path, f"the log cannot be written: {error.strerror or error}") from error
        self._is_mended = True
        return step

    def count_steps_to_undo(self) -> int:
        """How many files are away by this log: moved, or left halfway by a crash; 0 if there is no log.

        Raises:
            MediaError: The file cannot be read.
            InvalidArgumentError: It is not a log.
        """
        if not os.path.lexists(self.path):
            return 0
        return sum(step.state != "undone" for step in self.steps())

    def steps(self) -> list[RemovalStep]:
        """The latest state of each step, in the order in which they began.

        Raises:
            MediaError: The file cannot be read.
            InvalidArgumentError: It is not a log.
        """
        try:
            content = read_regular_file(self.path, _MOST_BYTES, follow_links=True)
            lines = content.decode("ascii").split("\n")
        except FileNotFoundError as error:
            raise MediaError(self.path, "there is no such log: nothing was done with this plan") from error
        except (OSError, ValueError) as error:
            raise MediaError(
                self.path, f"the log cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from error
        # What follows the last line end is a line that the machine stopped at; its step had not begun.
        if not _is_step(lines[-1]):
            lines.pop()
        newest: dict[str, RemovalStep] = {}
        for number, line in enumerate(lines, start=1):
            try:
                step = _step(line)
            except (ValueError, TypeError) as error:
                raise InvalidArgumentError(
                    f"{self.path} must be a log of `vidkin apply`: line {number}: {error}"
                ) from error
            known = newest.get(step.source)
            if known is not None and not step.place and step.state != "begun":
                step = replace(step, place=known.place)
            newest[step.source] = step
        return list(newest.values())

    def _cut_unfinished_line(self) -> None:
        """Cut off the line that the machine stopped at, so that the next one stands alone.

        Raises:
            OSError: The file cannot be written.
        """
        flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(self.path, flags), "r+b") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                disk.before("write", os.fspath(self.path))
                if _is_step(content[whole:].decode("ascii", "replace")):
                    file.write(b"\n")
                else:
                    file.truncate(whole)


def _is_step(line: str) -> bool:
    try:
        _step(line)
    except (ValueError, TypeError):
        return False
    return True


def _step(line: str) -> RemovalStep:
    """Read a line; ValueError or TypeError if it is not one."""
    table = parse_json(line)
    step = RemovalStep(**table)
    texts = (step.source, step.place, step.kept, step.content, step.kept_content, step.video)
    if (
        not all(isinstance(text, str) for text in texts)
        or step.state not in get_args(StepState)
        or step.link not in get_args(Link)
        or any(type(number) is not int or number < 0 for number in (step.size, step.device, step.inode))
        or not step.content
    ):
        raise ValueError("it has other values")
    check_file_name("source", step.source)
    check_file_name("kept", step.kept)
    for name, path in (("place", step.place), ("video", step.video)):
        if path:
            check_file_name(name, path)
    return step
