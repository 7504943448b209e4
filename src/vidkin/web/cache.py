"""Files that are made once and kept on disk: thumbnails and converted pieces of videos."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from vidkin._base.files import read_regular_file, replace_file
from vidkin._base.temporary import TemporaryFolder
from vidkin._base.values import LONG_JSON_LIMITS
from vidkin.errors import CollectionNotFoundError

_logger = logging.getLogger(__name__)
# After so many bytes written the folder is measured again, as a share of what it may hold.
_MEASURE_AFTER = 0.05
# Bytes of a file; a larger one is not ours, and is made again.
_LARGEST = LONG_JSON_LIMITS.size
_Parsed = TypeVar("_Parsed")


class DiskCache:
    """Files by key in one folder; each is made once, however many ask for it at a time.

    A folder that cannot be written is replaced by a temporary one, which :meth:`close` deletes.

    Args:
        folder: The folder; made on first use.
        most: Bytes; beyond them the least recently used files are deleted.
        read_only: Use what is in the folder, and keep what is made in a temporary one.
    """

    def __init__(self, folder: Path, *, most: int, read_only: bool = False) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._users: Counter[str] = Counter()
        self._written = most  # measured after the first file
        self._temporary: TemporaryFolder | None = None
        self._beneath = folder if read_only else None
        self._damaged: set[str] = set()
        try:
            if read_only:
                raise PermissionError("the index is only shown")
            if folder.is_symlink():
                raise NotADirectoryError(f"{folder} is a symbolic link")
            folder.mkdir(parents=True, exist_ok=True)
            if other := next((path for path in folder.iterdir() if path.is_symlink() or not path.is_dir()), None):
                raise NotADirectoryError(f"{other} is not a folder")
            with tempfile.TemporaryFile(dir=folder):
                self._folder = folder
        except OSError as error:
            _logger.info("%s: thumbnails are kept for this run only (%s)", folder, error)
            self._temporary = TemporaryFolder()
            self._folder = self._temporary.path

    def get(self, key: str, ending: str, make: Callable[[Path], None]) -> Path:
        """The file of a key.

        Args:
            key: Names all that the content depends on.
            ending: Ending of the file's name, including the dot.
            make: Writes it, if it is not there; its errors go to the caller, and nothing is kept.
        """
        path = self._path(key, ending)
        with self._one_at_a_time(path.name):
            kept = self.find(key, ending)
            if kept is None:
                self._make(path, make)
        return kept or path

    def read(self, key: str, ending: str, make: Callable[[Path], None]) -> bytes:
        """The content of the file of a key; see :meth:`get`."""
        return read_regular_file(self.get(key, ending, make), _LARGEST)

    def parse(self, key: str, ending: str, make: Callable[[Path], None], parse: Callable[[bytes], _Parsed]) -> _Parsed:
        """What the file of a key says, see :meth:`get`. One that ``parse`` refuses with a ValueError, TypeError or
        LookupError was damaged from outside and is made again."""
        try:
            return parse(self.read(key, ending, make))
        except (ValueError, TypeError, LookupError):
            self.discard(key, ending)
            return parse(self.read(key, ending, make))

    def put(self, key: str, ending: str, content: bytes) -> None:
        """Keep something under a key, instead of what was there."""
        path = self._path(key, ending)
        with self._one_at_a_time(path.name):
            self._make(path, lambda partial: _write(partial, content))

    def find(self, key: str, ending: str) -> Path | None:
        """The file of a key, which counts as used; None if it is not there."""
        path = self._path(key, ending)
        return path if _touch(path) else self._kept_beneath(path)

    def has(self, key: str, ending: str) -> bool:
        """Whether the file of a key is there."""
        path = self._path(key, ending)
        return _is_kept(path) or self._kept_beneath(path) is not None

    def _kept_beneath(self, path: Path) -> Path | None:
        """The file in the folder that is not written to, under the name that it has in the other one."""
        if self._beneath is None:
            return None
        path = self._beneath / path.relative_to(self._folder)
        return path if path.name not in self._damaged and _is_kept(path) else None

    def discard(self, key: str, ending: str) -> None:
        """Forget the file of a key, which was damaged from outside."""
        path = self._path(key, ending)
        self._damaged.add(path.name)
        path.unlink(missing_ok=True)

    def _make(self, path: Path, make: Callable[[Path], None]) -> None:
        self._make_folder(path.parent)
        with replace_file(path, sync=False) as partial:
            make(partial)
        self._account(path.stat().st_size)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder of the cache, and the cache itself if somebody removed it; not the index around it."""
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise CollectionNotFoundError(f"{self._folder.parent} is not there any more; bring it back") from error
        folder.mkdir(exist_ok=True)

    def _path(self, key: str, ending: str) -> Path:
        name = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return self._folder / name[:2] / f"{name}{ending}"

    def close(self) -> None:
        """Delete the folder if it is a temporary one."""
        if self._temporary is not None:
            self._temporary.close()

    @contextmanager
    def _one_at_a_time(self, name: str) -> Iterator[None]:
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
            self._users[name] += 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                self._users[name] -= 1
                if not self._users[name]:
                    del self._users[name], self._locks[name]

    def _account(self, size: int) -> None:
        """Now and then delete what was used least recently, down to nine tenths of what the folder may hold."""
        with self._lock:
            self._written += size
            if self._written < self._most * _MEASURE_AFTER:
                return
            self._written = 0
            files = []
            for path in self._folder.glob("??/*"):
                with suppress(OSError):  # deleted by another server
                    state = path.stat()
                    files.append((state.st_mtime_ns, state.st_size, path))
            total = sum(size for _, size, _ in files)
            if total <= self._most:
                return
            for _, size, path in sorted(files):
                with suppress(OSError):
                    path.unlink()
                total -= size
                if total <= 0.9 * self._most:
                    return


def _touch(path: Path) -> bool:
    """Note that a file was used; False if it is not there, or cannot be ours."""
    try:
        if path.is_dir() and not path.is_symlink():  # in the way of the file
            path.rename(path.with_name(f"{path.name}.{secrets.token_hex(4)}"))
        if not _is_kept(path):
            return False
        os.utime(path)
    except OSError:
        return False
    return True


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _is_kept(path: Path) -> bool:
    """Whether a file is there as this cache writes one: the folder may be a stranger's."""
    try:
        state = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size <= _LARGEST
