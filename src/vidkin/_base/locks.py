"""File locks that are safe in folders that other users can write to."""

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
    """Return a lock on a file, not acquired yet. The system releases it when the process exits for any reason.

    Links are refused, because earlier versions of filelock would truncate the file that a link points to.

    Raises:
        OSError: There is a symbolic or hard link at the path, or something other than a file.
    """
    from filelock import FileLock  # loads asyncio, which readers do not need

    with suppress(FileNotFoundError):
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            kind = "a symbolic link" if stat.S_ISLNK(state.st_mode) else "a link or not a file"
            raise OSError(errno.EINVAL, f"this is {kind} and cannot be a lock; remove it", os.fspath(path))
    return FileLock(path, thread_local=False)
