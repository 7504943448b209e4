"""The lock of the operating system that lets one process at a time write to an index in a folder."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin._base.atomic import write_text
from vidkin._base.plain_values import parse_json
from vidkin.errors import CollectionError, CollectionLockedError
from vidkin.index.storage.files import writing
from vidkin.index.storage.places.writer_queue import QUEUE_FOLDER, has_waiting_writer, stand_in_queue

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["HOLDER_FILE", "LOCK_FILE", "hold_file_lock", "refuse_links"]

LOCK_FILE = "writer.lock"
HOLDER_FILE = "writer.json"
_PAUSE = 0.05


@contextmanager
def hold_file_lock(folder: Path, wait: float) -> Iterator[None]:
    """Hold the right to write to the index in a folder; see `Place.exclusive`.

    The operating system's lock on a file: it is released the moment its process ends, for whatever reason. Writers
    that wait get it in the order in which they came.
    """
    from filelock import FileLock  # loads asyncio, which readers do not need

    lock = FileLock(folder / LOCK_FILE, thread_local=False)
    with writing(folder):
        # The other parts may still be changed by another writer; these are used before it is waited for.
        for part in (LOCK_FILE, QUEUE_FOLDER):
            refuse_links(folder, part)
        if not _acquire(lock, folder, wait):
            holder = "another process"
            # The note is written just after the lock is taken, so it may be missing.
            with suppress(OSError, ValueError, KeyError, TypeError):
                note = parse_json((folder / HOLDER_FILE).read_text(encoding="utf-8"))
                holder = f"process {note['pid']} on {note['host']} since {note['since']}"
            waited = f" still after {wait:g} s" if wait > 0 else ""
            raise CollectionLockedError(
                f"{folder} is being written to{waited} by {holder}; "
                "try again later, or wait for it (--wait SECONDS, in Python wait=SECONDS)"
            )
    try:
        with writing(folder):
            refuse_links(folder)
            note = {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": datetime.now().astimezone().isoformat(timespec="seconds"),
            }
            write_text(folder / HOLDER_FILE, json.dumps(note))
        yield
    finally:
        # While the lock is still held, so that this cannot delete the next holder's note.
        with suppress(OSError):
            (folder / HOLDER_FILE).unlink(missing_ok=True)
        lock.release()


def refuse_links(folder: Path, part: str = "") -> None:
    """Check that no part of an index is a symbolic link, through which files elsewhere would be written or deleted.

    Args:
        folder: The index, which may itself be reached by a link.
        part: Only this file or folder in it.

    Raises:
        CollectionError: A part is one.
        OSError: The folder cannot be read.
    """
    links = [path for path in [folder / part] if part and path.is_symlink()]
    waiting = [folder / part] if not links and (folder / part).is_dir() else []
    while waiting and not links:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    links.append(Path(entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    if links:
        raise CollectionError(
            f"{links[0]} is a symbolic link; an index must not contain any: replace it by what it points to, or "
            "remove it"
        )


def _acquire(lock: BaseFileLock, folder: Path, wait: float) -> bool:
    """Acquire the lock after those who have waited longer; False if that takes too long."""
    from filelock import Timeout

    try:
        if wait <= 0:
            if has_waiting_writer(folder):
                return False
            lock.acquire(timeout=0)
            return True
        deadline = time.monotonic() + wait
        with stand_in_queue(folder) as is_next:
            while not is_next():
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_PAUSE)
            lock.acquire(timeout=max(deadline - time.monotonic(), 0.0), poll_interval=_PAUSE)
            return True
    except Timeout:
        return False
