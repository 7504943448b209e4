"""The log of a plan: one line of JSON before and after each step.

It is stored next to the plan, under the plan's name followed by ``.log``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from vidkin._base import disk
from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike, check_file_name, read_regular_file
from vidkin._base.plain import read_fields
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError, MediaError

StepState = Literal["begun", "done", "undoing", "undone"]

Link = Literal["", "hard", "symbolic"]

# Enough for millions of steps; larger files are rejected.
_MAX_BYTES = 1 << 30
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """A step that moves one file away.

    Attributes:
        source: Original path.
        place: New path. Empty if the system's trash does not report it (Windows, macOS).
        link: Kind of link that replaces the file.
        kept: The file that the link points to.
        state: ``begun`` before the step, ``done`` after it, ``undoing`` before it is undone, ``undone`` after that.
        size: Size in bytes.
        content: Hash of all bytes.
        kept_content: Hash of all bytes of the file that the link points to.
        video: The video that the file belongs to; empty for a video itself.
        inode: Inode of the file: at its old path until the step is done, then at its new path.
        in_trash: Whether the file was sent to the system's trash.
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
    inode: int
    in_trash: bool


@check_constructor
class Journal:
    """Log of steps in a file; each step is on disk before the next one begins.

    Args:
        path: The log file; created if missing.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self._is_repaired = False

    @classmethod
    def of_plan(cls, plan: PathLike) -> Journal:
        """Return the log of a plan file; a plan has only one log, even if it is reached through links."""
        return cls(f"{os.path.realpath(plan)}.log")

    def write(self, step: RemovalStep) -> RemovalStep:
        """Append a line.

        Raises:
            MediaError: The log cannot be written, or is a symbolic link.
        """
        path = os.fspath(self.path)
        try:
            is_new = not os.path.lexists(path)
            with open(os.open(path, _FLAGS, 0o666), "r+b") as file:
                if not self._is_repaired:
                    # Drop an incomplete line left by a crash; its step had not begun.
                    content = file.read()
                    whole = content.rfind(b"\n") + 1
                    if whole < len(content):
                        disk.before("write", path)
                        file.truncate(whole)
                disk.write(file.fileno(), (json.dumps(asdict(step)) + "\n").encode("ascii"), path)
            disk.sync_file(path)
            if is_new:
                disk.sync_folder(self.path.parent)
        except OSError as error:
            self._is_repaired = False
            raise MediaError(self.path, f"the log cannot be written: {error.strerror or error}") from error
        self._is_repaired = True
        return step

    def steps(self) -> list[RemovalStep]:
        """Return the latest state of each step, in the order in which the steps began.

        Raises:
            MediaError: The log cannot be read.
            InvalidArgumentError: The file is not a log.
        """
        try:
            lines = read_regular_file(self.path, _MAX_BYTES, follow_links=True).decode("ascii").split("\n")
        except FileNotFoundError as error:
            raise MediaError(self.path, "there is no such log: nothing was done with this plan") from error
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", None) or error
            raise MediaError(self.path, f"the log cannot be read: {cause}") from error
        newest: dict[str, RemovalStep] = {}
        # Text after the last newline is an incomplete line left by a crash.
        for number, line in enumerate(lines[:-1], start=1):
            try:
                step = _read_step(line)
            except ValueError as error:
                raise InvalidArgumentError(
                    f"{self.path} must be a log of `vidkin apply`: line {number}: {error}"
                ) from error
            newest[step.source] = step
        return list(newest.values())


def _read_step(line: str) -> RemovalStep:
    """Parse a line; raise ValueError if it is not a step."""
    step = read_fields(RemovalStep, parse_json(line))
    for name in ("source", "kept", "place", "video"):
        if getattr(step, name) or name in ("source", "kept"):
            check_file_name(name, getattr(step, name))
    if not step.content or step.size < 0:
        raise ValueError("content must not be empty and size not negative")
    return step
