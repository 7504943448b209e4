"""Files and folders named by a caller: files are written whole or not at all, and errors name the cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from vidkin._base.atomic import replace_file
from vidkin.errors import InvalidArgumentError, MediaError

__all__ = ["create_folder", "create_output_folder", "open_output"]

PathLike = str | os.PathLike[str]


@contextmanager
def open_output(path: PathLike) -> Iterator[Path]:
    """Yield a temporary file that replaces ``path`` when the block succeeds, as
    :func:`~vidkin._base.atomic.replace_file` does.

    Raises:
        MediaError: The folder does not exist, ``path`` is not a file, or writing fails, inside the block as well;
            nothing is left behind.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise MediaError(target, f"cannot be written: the folder {target.parent} does not exist")
    if os.path.exists(target) and not os.path.isfile(target):
        kind = "a folder" if os.path.isdir(target) else "a device or a pipe"
        raise MediaError(target, f"cannot be written: it is {kind}, not a file")
    try:
        with replace_file(target) as temporary:
            yield temporary
    except OSError as error:
        raise MediaError(target, f"cannot be written: {error.strerror or error}") from error


def create_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist; returns its path.

    Raises:
        MediaError: It cannot be created.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(folder, f"the folder cannot be created: {error.strerror or error}") from error
    return folder


def create_output_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist, and check before long work that it can be written to.

    Raises:
        InvalidArgumentError: It cannot be created or written to.
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
