"""Files that are made once and kept on disk: thumbnails and converted pieces of videos."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vidkin._base.files import replace_file

_logger = logging.getLogger(__name__)
# After so many bytes written the folder is measured again, as a share of what it may hold.
_MEASURE_AFTER = 0.05


class DiskCache:
    """Files by key in one folder; each is made once, however many ask for it at a time.

    A folder that cannot be written is replaced by a temporary one, which :meth:`close` deletes.

    Args:
        folder: The folder; made on first use.
        most: Bytes; beyond them the least recently used files are deleted.
    """

    def __init__(self, folder: Path, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._users: Counter[str] = Counter()
        self._written = most  # measured after the first file
        self._temporary: str | None = None
        try:
            if folder.is_symlink():
                raise NotADirectoryError(f"{folder} is a symbolic link")
            folder.mkdir(parents=True, exist_ok=True)
            if link := next((path for path in folder.iterdir() if path.is_symlink()), None):
                raise NotADirectoryError(f"{link} is a symbolic link")
            with tempfile.TemporaryFile(dir=folder):
                self._folder = folder
        except OSError as error:
            _logger.info("%s: thumbnails are kept for this run only (%s)", folder, error)
            self._temporary = tempfile.mkdtemp(prefix="vidkin-")
            self._folder = Path(self._temporary)

    def get(self, key: str, ending: str, make: Callable[[Path], None]) -> Path:
        """The file of a key.

        Args:
            key: Names all that the content depends on.
            ending: Ending of the file's name, including the dot.
            make: Writes it, if it is not there; its errors go to the caller, and nothing is kept.
        """
        path = self._path(key, ending)
        with self._one_at_a_time(path.name):
            if not _touch(path):
                path.parent.mkdir(exist_ok=True)
                with replace_file(path, sync=False) as partial:
                    make(partial)
                self._account(path.stat().st_size)
        return path

    def put(self, key: str, ending: str, content: bytes) -> None:
        """Keep something under a key, instead of what was there."""
        path = self._path(key, ending)
        with self._one_at_a_time(path.name):
            path.parent.mkdir(exist_ok=True)
            with replace_file(path, sync=False) as partial:
                partial.write_bytes(content)
            self._account(len(content))

    def find(self, key: str, ending: str) -> Path | None:
        """The file of a key, which counts as used; None if it is not there."""
        path = self._path(key, ending)
        return path if _touch(path) else None

    def has(self, key: str, ending: str) -> bool:
        """Whether the file of a key is there."""
        return self._path(key, ending).exists()

    def _path(self, key: str, ending: str) -> Path:
        name = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return self._folder / name[:2] / f"{name}{ending}"

    def close(self) -> None:
        """Delete the folder if it is a temporary one."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

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
    """Note that a file was used; False if it is not there."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True
