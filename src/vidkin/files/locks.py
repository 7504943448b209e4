"""Locks that prevent two removals from acting on the same files: one lock per user, and one per file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from vidkin._base.locks import open_lock
from vidkin.errors import CollectionLockedError

_logger = logging.getLogger(__name__)


@contextmanager
def hold_removals() -> Iterator[None]:
    """Ensure that no other process of this user moves or restores copies, for any index and plan.

    The lock is an operating system lock on a file in the user's state folder, and is released when the process exits.
    If that folder is not writable, as for a service without a home folder, this lock is not available; files are still
    locked one by one, and existing files are never replaced.

    Raises:
        CollectionLockedError: Another process holds the lock.
    """
    from filelock import Timeout  # loads asyncio, which readers do not need
    from platformdirs import user_state_path

    path = user_state_path("vidkin", appauthor=False) / "removal.lock"
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(open_lock(path).acquire(timeout=0))
        except Timeout as error:
            raise CollectionLockedError(
                "another `vidkin apply` or web page of yours is moving or restoring files; wait for it to finish, then "
                "try again"
            ) from error
        except (OSError, NotImplementedError) as error:  # OSError if a network drive does not support locks
            _logger.warning("%s: cannot be locked, so other removals may run at the same time: %s", path, error)
        yield


@contextmanager
def hold_files(paths: Iterable[str]) -> Iterator[str]:
    """Lock files against other processes that move copies; yield the cause if a file is already locked, otherwise "".

    Without this, simultaneous plans of two users could each move the file that the other plan keeps. These are
    advisory operating system locks on the files themselves, which other programs ignore; they are released when the
    process exits. Windows has no such locks.
    """
    cause, inodes = "", set[tuple[int, int]]()
    with ExitStack() as held:
        for path in filter(None, paths):
            # Reading the file later reports why it cannot be opened; some file systems, and Windows, have no such
            # locks.
            with suppress(OSError, ImportError):
                import fcntl

                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                held.callback(os.close, descriptor)
                status = os.fstat(descriptor)
                if (status.st_dev, status.st_ino) in inodes:
                    continue
                inodes.add((status.st_dev, status.st_ino))
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    cause = f"another process moves or keeps {path}; try again later"
                    break
        yield cause
