"""Open the location of an index by path or URL; local folders with their write lock and queue of waiting writers."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vidkin._base.files import read_regular_file, replace_file, write_text
from vidkin._base.locks import open_lock
from vidkin._base.registry import Registry, missing_scale
from vidkin._base.values import LONG_JSON_LIMITS, read_json
from vidkin.errors import CollectionError, CollectionLockedError, InvalidArgumentError
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.place import Location, Place

if TYPE_CHECKING:
    from filelock import BaseFileLock

_ADDRESS = re.compile(r"(\w{2,})://(.*)")

# A URL after conversion to pathlib.Path, which merges the two slashes.
_ADDRESS_AS_PATH = re.compile(r"(\w{2,}):/(?!/)(.*)")

PLACES: Registry[Callable[[str, str], Place]] = Registry(
    "kind of address", {}, usage="{prefix}://BUCKET/PREFIX", group="vidkin.places"
)
"""Functions that open a place, by URL scheme, called with the scheme and the rest of the URL without outer slashes."""


def open_place(location: Location) -> Place:
    """Open the place given by a path or URL; an open place is returned unchanged.

    Nothing is read or written yet.

    Raises:
        InvalidArgumentError: The URL has an unknown scheme or no bucket.
        MissingPartError: The package that opens URLs is not installed.
    """
    if not isinstance(location, str | os.PathLike):
        if not hasattr(location, "uri"):
            raise InvalidArgumentError(f"the location of an index must be a path or a URL, got {location!r}")
        return location
    name = os.fspath(location)
    if merged := _ADDRESS_AS_PATH.fullmatch(name):
        raise InvalidArgumentError(
            f"{name} must have two slashes, as in {merged[1]}://{merged[2]}; pass URLs as str, not as pathlib.Path"
        )
    address = _ADDRESS.fullmatch(name)
    if address is None:
        return LocalPlace(Path(name).expanduser().absolute())
    scheme, root = address[1].lower(), address[2].strip("/")
    opener = PLACES.find(scheme) if root else None
    if opener is None:
        accepted = " or ".join(["a folder", *PLACES.usages()])
        raise missing_scale(f"{name}: an index at a URL") or InvalidArgumentError(
            f"index must be {accepted}, got {name}"
        )
    return opener(scheme, root)


def folder_of(place: Place) -> Path:
    """Return the local folder of a place.

    Raises:
        CollectionError: The place is on object storage.
    """
    if place.folder is None:
        raise CollectionError(f"{place.uri} is not a local folder; copy the index to one first")
    return place.folder


_Item = TypeVar("_Item")

_Result = TypeVar("_Result")


# Maximum size of a file, because the index may be untrusted; the features of a whole day of video are smaller.
_MAX_BYTES = 1 << 30


class LocalPlace:
    """A :class:`~vidkin.index.storage.place.Place` in a local folder.

    Args:
        folder: Absolute path.
    """

    storage_options = None
    # The operating system releases the lock exactly when the process exits.
    lock_ends_writing = True

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self.uri = str(folder)

    def explain(self, text: str) -> str | None:
        return None

    def prepare(self) -> None:
        os.makedirs(self.uri, exist_ok=True)

    def address(self, name: str) -> str:
        return os.path.join(self.uri, name)

    def read(self, name: str) -> bytes | None:
        path = self.address(name)
        with reading(path, "restore the file, or remove what is in its place"):
            try:
                return read_regular_file(path, LONG_JSON_LIMITS.size if name.endswith(".json") else _MAX_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        path = self.address(name)
        if "/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        # Do not write through a symbolic link that an attacker may have created under a predictable name.
        with replace_file(path, sync=sync) as temporary:
            temporary.write_bytes(content)

    def version(self, name: str) -> Hashable | None:
        try:
            status = os.lstat(self.address(name))
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def names(self) -> set[str]:
        return set(os.listdir(self.uri))

    def sizes(self, folder: str = "") -> dict[str, int]:
        sizes = {}
        for parent, _, files in os.walk(self.address(folder)):
            for file in files:
                path = os.path.join(parent, file)
                with suppress(FileNotFoundError):  # a writer may just have replaced it
                    sizes[os.path.relpath(path, self.uri).replace(os.sep, "/")] = os.lstat(path).st_size
        return sizes

    def has_file(self, name: str) -> bool:
        return os.path.isfile(self.address(name))

    def has_folder(self, name: str = "") -> bool:
        return os.path.isdir(self.address(name))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(self.address(name))

    def delete_folder(self, name: str) -> None:
        shutil.rmtree(self.address(name))

    def delete_unfinished(self, folder: str) -> None:
        for path in Path(self.address(folder)).glob("*/.*.part.*"):
            path.unlink()

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        return [function(item) for item in items]

    def exclusive(self, wait: float = 0.0) -> AbstractContextManager[None]:
        return hold_file_lock(Path(self.uri), wait)

    def check_writer(self, *, ask: bool = False) -> None:
        pass

    def needs_fence(self) -> bool:
        return False

    def note_fence(self) -> None:
        pass


LOCK_FILE = "writer.lock"

HOLDER_FILE = "writer.json"

_PAUSE = 0.05


@contextmanager
def hold_file_lock(folder: Path, wait: float) -> Iterator[None]:
    """Hold the write lock of the index in a folder; see `Place.exclusive`.

    This is a file lock of the operating system, which is released as soon as the process exits for any reason. Waiting
    writers acquire it in order of arrival.
    """
    with writing(folder):
        # Only these parts are used before the lock is held; another writer may still be modifying the others.
        for part in (LOCK_FILE, QUEUE_FOLDER):
            refuse_links(folder, part)
        try:
            lock = open_lock(folder / LOCK_FILE)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise CollectionError(f"{folder / LOCK_FILE}: {error.strerror}") from error
            raise
        if not _acquire(lock, folder, wait):
            holder = "another process"
            # The note is written just after acquiring the lock, so it may be missing.
            with suppress(OSError, ValueError, KeyError, TypeError):
                note = read_json(folder / HOLDER_FILE)
                holder = f"process {note['pid']} on {note['host']}, since {note['since']}"
                if (note["pid"], note["host"]) == (os.getpid(), socket.gethostname()):
                    holder = f"this process, since {note['since']}"
            waited = f" still after {wait:g} s" if wait > 0 else ""
            raise CollectionLockedError(
                f"{folder} is being written to{waited} by {holder}; "
                "try again later, or wait for it (--wait SECONDS, or in Python wait=SECONDS)"
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
        # Delete the note before releasing the lock, so that this cannot delete the note of the next holder.
        with suppress(OSError):
            (folder / HOLDER_FILE).unlink(missing_ok=True)
        lock.release()


def refuse_links(folder: Path, part: str = "") -> None:
    """Check that no part of an index is a symbolic link, which could cause files elsewhere to be written or deleted.

    Args:
        folder: Folder of the index, which may itself be a link.
        part: Only check this file or folder in it; default: everything.

    Raises:
        CollectionError: A part is a symbolic link.
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
            f"{links[0]} is a symbolic link, which an index must not contain; replace it by its target, or remove it"
        )


def _acquire(lock: BaseFileLock, folder: Path, wait: float) -> bool:
    """Acquire the lock after writers that have been waiting longer; return False on timeout."""
    from filelock import Timeout

    try:
        if wait <= 0:
            if has_waiting_writer(folder):
                return False
            lock.acquire(timeout=0)
            return True
        deadline = time.monotonic() + wait
        with wait_in_queue(folder) as is_next:
            while not is_next():
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_PAUSE)
            lock.acquire(timeout=max(deadline - time.monotonic(), 0.0), poll_interval=_PAUSE)
            return True
    except Timeout:
        return False


QUEUE_FOLDER = "writer.queue"

# File names consist of the time of arrival and a random part. Other files in the folder must not be deleted.
_NAME = re.compile(r"\d{20}-[0-9a-f]{8}")

_ATTEMPTS = 5


@contextmanager
def wait_in_queue(folder: Path) -> Iterator[Callable[[], bool]]:
    """Wait in the queue; yield a function that returns whether this writer is the next.

    Every waiting writer has a file named by its time of arrival, and holds a lock on a hidden file next to it, so that
    a process that exits for any reason does not delay later ones. Two files are needed because an open file cannot be
    renamed or removed on Windows.

    Args:
        folder: Folder of the index.

    Raises:
        OSError: The system refuses to write to the folder.
    """
    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    queue = folder / QUEUE_FOLDER
    lock = open_lock(queue / f".{name}")
    for attempt in range(_ATTEMPTS):
        queue.mkdir(exist_ok=True)
        try:
            lock.acquire(timeout=0)
            break
        except FileNotFoundError:
            # Another writer that left the queue has just removed the folder.
            if attempt == _ATTEMPTS - 1:
                raise
    try:
        # Create this file only while holding the lock, so that no other process considers it abandoned.
        (queue / name).touch()
        yield lambda: next(_waiting(queue), name) >= name
    finally:
        (queue / name).unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # other writers may be using them
            (queue / f".{name}").unlink(missing_ok=True)
            queue.rmdir()


def has_waiting_writer(folder: Path) -> bool:
    """Whether any writer is waiting."""
    return next(_waiting(folder / QUEUE_FOLDER), None) is not None


def _waiting(queue: Path) -> Iterator[str]:
    """Yield the file names of waiting writers in order, and remove those of processes that have exited."""
    from filelock import Timeout

    try:
        names = sorted(name for name in os.listdir(queue) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return
    for name in names:
        lock = open_lock(queue / f".{name}")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield name
            continue
        except FileNotFoundError:
            continue
        (queue / name).unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):
            (queue / f".{name}").unlink(missing_ok=True)
