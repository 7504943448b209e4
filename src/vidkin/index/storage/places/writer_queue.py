"""The order in which writers that wait for an index get it: first come, first served."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["QUEUE_FOLDER", "has_waiting_writer", "stand_in_queue"]

QUEUE_FOLDER = "writer.queue"
# Time of arrival and a random part. Other files in the folder are not ours to delete.
_NAME = re.compile(r"\d{20}-[0-9a-f]{8}")
_ATTEMPTS = 5


@contextmanager
def stand_in_queue(folder: Path) -> Iterator[Callable[[], bool]]:
    """Wait in line; yields a function that says whether no earlier writer is waiting any more.

    Every waiting writer has a file named after its time of arrival and holds the system's lock on it, so a process
    that ends, for whatever reason, does not hold up those behind it.

    Args:
        folder: Folder of the index.

    Raises:
        OSError: The system refuses to write there.
    """
    from filelock import FileLock  # loads asyncio, which readers do not need

    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    queue = folder / QUEUE_FOLDER
    lock = FileLock(queue / f".{name}", thread_local=False)
    for attempt in range(_ATTEMPTS):
        queue.mkdir(exist_ok=True)
        try:
            lock.acquire(timeout=0)
            break
        except FileNotFoundError:
            # The last one to leave has just removed the folder.
            if attempt == _ATTEMPTS - 1:
                raise
    try:
        # It gets its name once it is locked, so that nobody takes it for an abandoned one.
        os.rename(queue / f".{name}", queue / name)
        yield lambda: next(_waiting(queue), name) >= name
    finally:
        (queue / name).unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # others are waiting
            queue.rmdir()


def has_waiting_writer(folder: Path) -> bool:
    """Whether a writer is waiting."""
    return next(_waiting(folder / QUEUE_FOLDER), None) is not None


def _waiting(queue: Path) -> Iterator[str]:
    """Names of waiting writers, in order; files of processes that have ended are removed."""
    from filelock import FileLock, Timeout

    try:
        names = sorted(name for name in os.listdir(queue) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return
    for name in names:
        lock = FileLock(queue / name, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield name
            continue
        except FileNotFoundError:
            continue
        (queue / name).unlink(missing_ok=True)
        lock.release()
