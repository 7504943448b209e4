"""The lock that lets one process at a time write to an index."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from vidkin.errors import CollectionLockedError
from vidkin.index.storage.files import writing

__all__ = ["writer_lock"]

LOCK_FILE = "writer.lock"
HOLDER_FILE = "writer.json"


@contextmanager
def writer_lock(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the right to write to the index in ``folder``.

    The operating system's lock on a file: it is released the moment its process ends, for whatever reason.

    Args:
        folder: Of the index.
        wait: Seconds to wait for another writer; 0 fails at once.

    Raises:
        CollectionLockedError: Another process (or another part of this one) still holds it; says which.
        CollectionError: The system refuses to write there.
    """
    from filelock import FileLock, Timeout  # loads asyncio, which readers do not need

    lock = FileLock(folder / LOCK_FILE, thread_local=False)
    with writing(folder):
        try:
            lock.acquire(timeout=max(wait, 0.0))
        except Timeout:
            waited = f" still after {wait:g} s" if wait > 0 else ""
            raise CollectionLockedError(
                f"{folder} is being written to{waited} by {_holder(folder)}; "
                "try again later, or wait for it (--wait SECONDS, in Python wait=SECONDS)"
            ) from None
    try:
        note = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        with writing(folder):
            (folder / HOLDER_FILE).write_text(json.dumps(note), encoding="utf-8")
        yield
    finally:
        # While the lock is still held, so that this cannot delete the next holder's note.
        with suppress(OSError):
            (folder / HOLDER_FILE).unlink(missing_ok=True)
        lock.release()


def _holder(folder: Path) -> str:
    """Description of the process that holds the lock; its note is written a moment later, so it may be missing."""
    try:
        note = json.loads((folder / HOLDER_FILE).read_text(encoding="utf-8"))
        return f"process {note['pid']} on {note['host']} since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
