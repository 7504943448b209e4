"""The folder of a training, where only one training at a time may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from vidkin.errors import InvalidArgumentError

__all__ = ["LOCK_FILE", "hold_training_folder"]

LOCK_FILE = ".training.lock"

# Seconds to wait for the folder's lock: the experiments page takes it for an instant to check whether it is free.
_WAIT = 0.5


@contextmanager
def hold_training_folder(folder: Path) -> Iterator[None]:
    """Allow one training at a time in a folder; the system releases the lock when the process ends, however it ends.

    Raises:
        InvalidArgumentError: Another training uses the folder, or it cannot be written to.
    """
    lock = FileLock(folder / LOCK_FILE, thread_local=False)
    try:
        lock.acquire(timeout=_WAIT)
    except Timeout:
        raise InvalidArgumentError(
            f"{folder}: another training is writing here; wait until it has finished, or choose another output folder"
        ) from None
    except OSError as error:
        raise InvalidArgumentError(
            f"{folder}: {error.strerror or error}; choose an output folder that can be written"
        ) from error
    try:
        yield
    finally:
        lock.release()
