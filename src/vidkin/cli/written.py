"""Files that commands write: what is refused before any work, so that nothing of the user's is lost."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import printable

__all__ = ["check_written"]


def check_written(path: Path, *, inputs: Iterable[Path | None]) -> None:
    """Make sure that a file can be written here and is none of those that are read.

    Args:
        path: To be written; may exist as a file.
        inputs: Files that the command reads; those that are None or not there are passed over.

    Raises:
        InvalidArgumentError: It is one of the inputs, a folder or a device, or its folder is missing.
    """
    name = printable(os.fspath(path))
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"there is no folder {printable(os.fspath(folder))}; make it first")
    if not path.exists():
        return
    if not path.is_file():
        what = "a folder" if path.is_dir() else "a device or a pipe"
        raise InvalidArgumentError(f"{name} cannot be written: it is {what}; name a file")
    if any(item is not None and item.exists() and item.samefile(path) for item in inputs):
        raise InvalidArgumentError(f"{name} is one of the files to be read; name another one to be written")
