"""Temporary folders of processes that may be killed; later processes remove abandoned ones."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from vidkin._base.locks import open_lock

_PREFIX, _LOCK, _CONTENT = "vidkin-run-", "lock", "files"


class TemporaryFolder:
    """A new folder that only this account can read, with a lock that is released when the process exits for any reason.

    Attributes:
        path: The folder.

    Raises:
        OSError: The system refuses to create it.
    """

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = open_lock(self._root / _LOCK)
        self.path = self._root / _CONTENT
        try:
            self._lock.acquire(timeout=0)
            self.path.mkdir()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Delete the folder and its contents."""
        self._lock.release()
        shutil.rmtree(self._root, ignore_errors=True)


def remove_abandoned_folders() -> None:
    """Delete folders of processes of this account that exited without deleting them."""
    own = os.geteuid() if hasattr(os, "geteuid") else None
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, TimeoutError):  # removed in the meantime, or still in use
            state = path.lstat()
            # A folder without a lock file has only just been created.
            if not stat.S_ISDIR(state.st_mode) or own not in (None, state.st_uid) or not (path / _LOCK).is_file():
                continue
            lock = open_lock(path / _LOCK)
            lock.acquire(timeout=0)
            lock.release()
            shutil.rmtree(path, ignore_errors=True)
