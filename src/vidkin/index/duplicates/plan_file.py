"""Where the file of a plan may be: not where one is that files are still to be brought back with."""

from __future__ import annotations

import os

from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.plans import PathLike
from vidkin.index.duplicates.removal_log import Journal


def check_plan_file(path: PathLike) -> None:
    """Raise an error if files that a plan of this name removed could not be brought back with another one there.

    Raises:
        InvalidArgumentError: The log beside it has steps that are not undone, or cannot be read.
    """
    name = os.fspath(path)
    journal = Journal(f"{name}.log")
    if journal.path.is_file() and any(step.state != "undone" for step in journal.steps()):
        raise InvalidArgumentError(
            f"{name}: files are away that the plan of this name removed, and it brings them back with "
            "`vidkin apply --undo`; choose another name for the new plan"
        )
