"""Locks that keep two removals from acting on the same files: one for each user, and one on each file."""

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
    """Be the only process of this user that moves copies or restores them, of whatever index and plan.

    The lock is one of the operating system, on a file in the user's folder for state; it ends with the process. Where
    that folder cannot be written to, as for a service without a home, there is no lock: files are still held one by
    one, and no name is ever replaced.

    Raises:
        CollectionLockedError: Another process has it.
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
                "another `vidkin apply` or page of yours is moving or restoring files; wait until it has ended, then "
                "do this again"
            ) from error
        except (OSError, NotImplementedError) as error:  # the latter where a network drive has no locks
            _logger.warning("%s: cannot be locked, so other removals may run at the same time: %s", path, error)
        yield


@contextmanager
def hold_files(paths: Iterable[str]) -> Iterator[str]:
    """Keep other processes that move copies away from files; yields the cause if one is taken, or "".

    Plans of two users at once could otherwise each move the file that the other one keeps. The locks are those of the
    operating system on the files themselves, which other programs do not see; they end with the process. Windows has
    none.
    """
    cause, inodes = "", set[tuple[int, int]]()
    with ExitStack() as held:
        for path in filter(None, paths):
            # Reading the file reports why it cannot be opened; some file systems have no locks, and Windows none.
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
