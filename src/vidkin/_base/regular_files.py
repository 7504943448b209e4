"""Open files that others may replace at any moment."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

__all__ = ["open_regular_file"]


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open for reading, without a buffer.

    Unlike :func:`open` this never waits: a pipe has no reader or writer to wait for, and a device is not touched.

    Raises:
        OSError: The file cannot be opened, or it is not a regular file.
        ValueError: There is a null character in the name.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "this is not a regular file", os.fspath(path))
    return open(descriptor, "rb", buffering=0)
