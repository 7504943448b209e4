"""The folder that a training or a comparison writes to."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from vidkin.errors import InvalidArgumentError

__all__ = ["output_folder"]


def output_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made if it is missing, and checked to be writable before the work and not after it.

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
            f"{folder}: {error.strerror or error}; choose an output folder that can be written"
        ) from error
