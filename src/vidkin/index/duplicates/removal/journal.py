"""The log of file removals: one line of JSON before and after each step."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError, MediaError

__all__ = ["Journal", "RemovalStep"]

StepState = Literal["begun", "done", "undone"]
Link = Literal["", "hard", "symbolic"]


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """One file that was moved away.

    Attributes:
        source: Where it was.
        place: Where it is now; empty if the trash does not tell.
        link: What was put in its place.
        kept: The file that the link points to.
        state: ``begun`` before the step, ``done`` after it, ``undone`` when it was undone.
    """

    source: str
    place: str
    link: Link
    kept: str
    state: StepState = "begun"


class Journal:
    """Steps in a file; each is on disk before the next begins.

    Args:
        path: The file; created if missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, step: RemovalStep) -> RemovalStep:
        """Add one line.

        Raises:
            MediaError: The file cannot be written.
        """
        try:
            with self.path.open("a", encoding="ascii") as file:
                file.write(json.dumps(asdict(step)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise MediaError(self.path, f"the log cannot be written: {error.strerror or error}") from error
        return step

    def steps(self) -> list[RemovalStep]:
        """The latest state of each step, in the order in which they began.

        Raises:
            MediaError: The file cannot be read.
            InvalidArgumentError: It is not a log.
        """
        try:
            lines = self.path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError as error:
            raise MediaError(self.path, "there is no such log: nothing was done with this plan") from error
        except (OSError, ValueError) as error:
            raise MediaError(self.path, f"the log cannot be read: {error}") from error
        newest: dict[str, RemovalStep] = {}
        for number, line in enumerate(lines, start=1):
            try:
                step = RemovalStep(**parse_json(line))
                texts = (step.source, step.place, step.kept)
                if (
                    not all(isinstance(text, str) for text in texts)
                    or step.state not in get_args(StepState)
                    or step.link not in get_args(Link)
                ):
                    raise ValueError("it has other values")
            except (ValueError, TypeError) as error:
                if number == len(lines):
                    break  # The machine stopped while the last line was written; its step had not begun.
                raise InvalidArgumentError(
                    f"{self.path} must be a log of `vidkin apply`: line {number}: {error}"
                ) from error
            known = newest.get(step.source)
            # The trash tells where a file is only once it is there.
            newest[step.source] = replace(step, place=step.place or (known.place if known else ""))
        return list(newest.values())
