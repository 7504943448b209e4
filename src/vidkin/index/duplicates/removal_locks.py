"""Locks that keep two removals from acting on the same files: one for each user, and one on each file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from vidkin._base.locks import open_lock
from vidkin.errors import CollectionLockedError

_logger = logging.getLogger(__name__)


@contextmanager
def hold_removals() -> Iterator[None]:
    """Be the only process of this user that moves copies or brings them back, of whatever index and plan.

    The lock is one of the operating system, on a file in the user's folder for state; it ends with the process. Where
    that folder cannot be written to, as for a service without a home, there is no lock: files are still held one by
    one, and no name is ever replaced.

    Raises:
        CollectionLockedError: Another process has it.
    """
    from filelock import Timeout  # loads asyncio, which readers do not need
    from platformdirs import user_state_path

    path = user_state_path("vidkin", appauthor=False) / "removal.lock"
    lock = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open_lock(path)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise CollectionLockedError(
            "another `vidkin apply` or page of yours is moving files or bringing them back; wait until it has ended, "
            "then do this again"
        ) from error
    except (OSError, NotImplementedError) as error:  # the latter where a network drive has no locks
        _logger.warning("%s: cannot be locked, so other removals may run at the same time: %s", path, error)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def hold_files(paths: Iterable[str]) -> Iterator[str]:
    """Keep other processes that move copies away from files; yields the path of one that is taken, empty if none is.

    Two plans at once, from a page and a command, could otherwise each move the file that the other one keeps. The locks
    are those of the operating system on the files themselves, which other programs do not see; they end with the
    process. Where it has none, as on Windows, nothing is held.
    """
    try:
        import fcntl
    except ImportError:
        yield ""
        return
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    held: dict[tuple[int, int], int] = {}
    taken = ""
    try:
        for path in filter(None, paths):
            try:
                descriptor = os.open(path, flags)
            except OSError:
                continue  # whoever reads it says what is wrong
            status = os.fstat(descriptor)
            name = status.st_dev, status.st_ino
            if name in held:
                os.close(descriptor)
                continue
            held[name] = descriptor
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                taken = path
                break
            except OSError:
                continue  # some file systems have no locks
        yield taken
    finally:
        for descriptor in held.values():
            os.close(descriptor)
