"""The folder that a training or a comparison writes to."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from vidkin.errors import InvalidArgumentError

__all__ = ["output_folder"]


def output_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made where it is missing, and known to take files: after the work is late to learn that it does not.

    Raises:
        InvalidArgumentError: It cannot be made or written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InvalidArgumentError(
            f"the output {folder} is no folder that can be written: {error.strerror or error}"
        ) from error
