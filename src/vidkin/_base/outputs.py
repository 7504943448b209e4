"""Files that a caller asked for: written whole or not at all, and every failure is one MediaError with its cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vidkin._base.atomic import replace_file
from vidkin.errors import MediaError

__all__ = ["open_output"]


@contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file that replaces ``path`` when the block succeeds; see :func:`~vidkin._base.atomic.replace_file`.

    Raises:
        MediaError: The folder does not exist, ``path`` is something else than a file, or the system refuses to write,
            in the block too; nothing is left behind.
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
