"""A disk cache of generated files: thumbnails and converted pieces of videos."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from vidkin._base.files import read_regular_file, replace_file
from vidkin._base.temporary import TemporaryFolder
from vidkin._base.values import LONG_JSON_LIMITS, read_json
from vidkin.errors import CollectionNotFoundError
from vidkin.rendering.text import json_text

_logger = logging.getLogger(__name__)
# The folder is measured again after writing this share of its maximum size.
_MEASURE_SHARE = 0.05
# Maximum bytes of a parsed file; the cache writes no larger one, so such a file is replaced.
_MAX_PARSED_BYTES = LONG_JSON_LIMITS.size
_Parsed = TypeVar("_Parsed")


class DiskCache:
    """Files by key in one folder; simultaneous requests for a key make its file only once.

    If the folder is not writable, a temporary one is used and deleted by :meth:`close`.

    Args:
        folder: The folder, created on first use.
        most: Maximum size in bytes; beyond it the least recently used files are deleted.
        read_only: Read the folder, but write new files to a temporary one.
    """

    def __init__(self, folder: Path, *, most: int, read_only: bool = False) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # of keys that are being made
        self._written = most  # measured after the first file
        self._temporary: TemporaryFolder | None = None
        self._beneath = folder if read_only else None
        self._damaged: set[str] = set()
        try:
            if read_only:
                raise PermissionError("the index is read-only")
            if folder.is_symlink():
                raise NotADirectoryError(f"{folder} is a symbolic link")
            folder.mkdir(parents=True, exist_ok=True)
            if other := next((path for path in folder.iterdir() if path.is_symlink() or not path.is_dir()), None):
                raise NotADirectoryError(f"{other} is not a folder")
            with tempfile.TemporaryFile(dir=folder):
                self._folder = folder
        except OSError as error:
            _logger.info("%s: thumbnails are cached for this run only (%s)", folder, error)
            self._temporary = TemporaryFolder()
            self._folder = self._temporary.path

    def get(self, key: str, ending: str, make: Callable[[Path], object]) -> Path:
        """Return the file of a key, making it if it does not exist.

        Args:
            key: Everything that the content depends on.
            ending: Ending of the file's name, including the dot.
            make: Writes the file; its errors are passed on, and nothing is kept.
        """
        path = self._path(key, ending)
        with self._lock_of(path.name):
            kept = self.find(key, ending)
            if kept is None:
                self._make(path, make)
        return kept or path

    def read(self, key: str, ending: str, make: Callable[[Path], object]) -> bytes:
        """Return the content of the file of a key; see :meth:`get`."""
        return read_regular_file(self.get(key, ending, make), _MAX_PARSED_BYTES)

    def compute(self, key: str, make: Callable[[], object], parse: Callable[[Any], _Parsed]) -> _Parsed:
        """Return the value of a key, made if it does not exist; see :meth:`load`."""
        known = self.load(key, parse)
        if known is not None:
            return known
        path = self.get(key, ".json", lambda partial: partial.write_bytes(json_text(make()).encode("ascii")))
        return parse(read_json(path, LONG_JSON_LIMITS))

    def load(self, key: str, parse: Callable[[Any], _Parsed]) -> _Parsed | None:
        """Return the value of a key; None if it does not exist.

        Args:
            key: Everything that the value depends on.
            parse: Converts the stored JSON; if it raises ValueError, TypeError or LookupError, the file is damaged and
                deleted.
        """
        path = self.find(key, ".json")
        if path is None:
            return None
        try:
            return parse(read_json(path, LONG_JSON_LIMITS))
        except (OSError, ValueError, TypeError, LookupError):
            self.discard(key, ".json")
            return None

    def store(self, key: str, value: object) -> None:
        """Store a value under a key as JSON, replacing any previous one."""
        path = self._path(key, ".json")
        with self._lock_of(path.name):
            self._make(path, lambda partial: partial.write_bytes(json_text(value).encode("ascii")))

    def find(self, key: str, ending: str) -> Path | None:
        """Return the file of a key and mark it as used; None if it does not exist."""
        path = self._path(key, ending)
        return path if _touch(path) else self._original_file(path)

    def has(self, key: str, ending: str) -> bool:
        """Whether the file of a key exists."""
        path = self._path(key, ending)
        return _is_cached(path) or self._original_file(path) is not None

    def _original_file(self, path: Path) -> Path | None:
        """The file of the same name in the read-only folder, if there is one."""
        if self._beneath is None:
            return None
        path = self._beneath / path.relative_to(self._folder)
        return path if path.name not in self._damaged and _is_cached(path) else None

    def discard(self, key: str, ending: str) -> None:
        """Delete the damaged file of a key."""
        path = self._path(key, ending)
        self._damaged.add(path.name)
        path.unlink(missing_ok=True)

    def _make(self, path: Path, make: Callable[[Path], object]) -> None:
        self._make_folder(path.parent)
        with replace_file(path, sync=False) as partial:
            make(partial)
        self._account(path.stat().st_size)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder of the cache, and the cache itself if it was removed, but never the index around it."""
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise CollectionNotFoundError(f"{self._folder.parent} no longer exists; restore it") from error
        folder.mkdir(exist_ok=True)

    def _path(self, key: str, ending: str) -> Path:
        name = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return self._folder / name[:2] / f"{name}{ending}"

    def close(self) -> None:
        """Delete the folder if it is a temporary one."""
        if self._temporary is not None:
            self._temporary.close()

    def _lock_of(self, name: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(name, threading.Lock())

    def _account(self, size: int) -> None:
        """From time to time delete the least recently used files, down to nine tenths of the maximum size."""
        with self._lock:
            self._written += size
            if self._written < self._most * _MEASURE_SHARE:
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
    """Mark a file as used; False if it does not exist or was not written by this cache."""
    try:
        if path.is_dir() and not path.is_symlink():  # a folder blocks the file name
            path.rename(path.with_name(f"{path.name}.{secrets.token_hex(4)}"))
        if not _is_cached(path):
            return False
        os.utime(path)
    except OSError:
        return False
    return True


def _is_cached(path: Path) -> bool:
    """Whether the cache can have written this file; the folder may be untrusted."""
    try:
        state = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size <= _MAX_PARSED_BYTES
