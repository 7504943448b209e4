"""Locks of the operating system on files that may lie in a stranger's folder."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock


def open_lock(path: Path) -> BaseFileLock:
    """The lock on a file, not yet acquired; it ends with its process, however that ends.

    Earlier versions of filelock empty the file, and one that a link leads to: a link is no lock of ours.

    Raises:
        OSError: There is a link at the path, symbolic or hard, or something else that is no file.
    """
    from filelock import FileLock  # loads asyncio, which readers do not need

    with suppress(FileNotFoundError):
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            kind = "a symbolic link" if stat.S_ISLNK(state.st_mode) else "a link or not a file"
            raise OSError(errno.EINVAL, f"this is {kind} and cannot be a lock; remove it", os.fspath(path))
    return FileLock(path, thread_local=False)
