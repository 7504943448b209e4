"""Open files that other programs may replace at any moment."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

__all__ = ["open_regular_file"]


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading, unbuffered.

    Unlike :func:`open` this never blocks: it does not wait for the other end of a pipe, and does not touch devices.

    Raises:
        OSError: The file cannot be opened, or it is not a regular file.
        ValueError: The name contains a null character.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "this is not a regular file", os.fspath(path))
    return open(descriptor, "rb", buffering=0)
