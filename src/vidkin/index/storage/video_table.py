"""The video table of an index: a SQLite file with one row per video, read as a whole and changed in transactions.

SQLite is used with a rollback journal rather than a write-ahead log: readers access the file only briefly, and a
journal also works on network drives and read-only media. SQLite has no checksums, so each row has one, and so does the
table as a whole.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vidkin._base import disk
from vidkin._base.files import check_regular_file
from vidkin.errors import CollectionError
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.records import VideoRecord

VIDEOS_FILE = "videos.sqlite"

# The video table cannot be rebuilt from anything else in the index.
REMEDY_OF_VIDEOS = (
    f"restore it from a backup, or delete {VIDEOS_FILE}, windows-* and features there (not decisions.json) and run "
    "`vidkin index` to read all videos again"
)

# Columns with their Python types. Paths are bytes, because file names need not be valid Unicode.
_COLUMNS: dict[str, type] = {
    "id": int,
    "path": bytes,
    "size": int,
    "mtime_ns": int,
    "content_hash": str,
    "status": str,
    "cause": str,
    "duration": float,
    "width": int,
    "height": int,
    "frame_rate": float,
    "codec": str,
    "bit_depth": int,
    "has_audio": int,
    "frames": int,
    "sampling_rate": float,
    "windows": int,
    "added_at": float,
    "damage": str,
    "first_row": int,
    "row_checksum": int,
    "checksum": int,
}
_RECORD_COLUMNS = tuple(_COLUMNS)[:-3]
_SQL_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}
_SCHEMA = {
    # AUTOINCREMENT: ids are never reused, so that ids users have noted elsewhere stay valid.
    "videos": "CREATE TABLE videos (id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL UNIQUE, "
    + ", ".join(f"{name} {_SQL_TYPES[kind]} NOT NULL" for name, kind in list(_COLUMNS.items())[2:])
    + ")",
    # A single row with the WindowState, and the number of videos and the sum of their checksums.
    "state": "CREATE TABLE state (generation INTEGER NOT NULL, dimension INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "videos INTEGER NOT NULL, checksum INTEGER NOT NULL)",
}
_READ = f"SELECT {', '.join(_COLUMNS)} FROM videos"
_INSERT = f"INSERT OR REPLACE INTO videos VALUES ({', '.join('?' * len(_COLUMNS))})"

# Suffixes of the files that SQLite keeps next to the database; in an untrusted index, these may not be regular files.
_COMPANIONS = ("-journal", "-wal", "-shm")

# Seconds to wait for a commit by another process.
_TIMEOUT = 60.0
# Maximum size of a value in bytes; paths have at most 4 KiB.
_MAX_VALUE = 1 << 20
# System error numbers that correspond to SQLite errors.
_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_IOERR: errno.EIO,
}


@dataclass(frozen=True, slots=True)
class WindowState:
    """Which files contain the windows, and their size.

    Attributes:
        generation: Generation of the files, see :class:`~vidkin.index.storage.window_files.WindowFiles`.
        dimension: Dimension of the vectors; 0 if there are none yet.
        rows: Number of rows in use, including those of removed videos.
    """

    generation: int = 1
    dimension: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class StoredVideo:
    """A record and the position of its windows.

    Attributes:
        record: The record, with its id.
        first_row: Row of the first window.
        row_checksum: Checksum of the windows.
    """

    record: VideoRecord
    first_row: int = 0
    row_checksum: int = 0


class VideoTable:
    """The video table, opened on first use.

    Args:
        path: Path of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        # Closes the file of an index that is garbage-collected without `close`; Python 3.13 and later warn otherwise.
        self._closing: weakref.finalize[[], VideoTable] | None = None
        self._inode = 0

    def version(self) -> tuple[int, int] | None:
        """Return a value that changes with every commit by another connection; None if there is no file."""
        connection = self._open()
        if connection is None:
            return None
        with self._translate_errors():
            (version,) = connection.execute("PRAGMA data_version").fetchone()
        return self._inode, version

    def read(self) -> tuple[WindowState, list[StoredVideo]]:
        """Read the current state and all videos; empty if there is no file.

        Raises:
            CollectionDamagedError: The table is damaged.
        """
        connection = self._open()
        if connection is None:
            return WindowState(), []
        with self._translate_errors():
            connection.execute("BEGIN")
            try:
                states = connection.execute(
                    "SELECT generation, dimension, rows, videos, checksum FROM state"
                ).fetchall()
                rows = connection.execute(_READ).fetchall()
            finally:
                connection.execute("ROLLBACK")
            if len(states) != 1 or not all(isinstance(value, int) and 0 <= value < 1 << 62 for value in states[0]):
                raise ValueError("its state is corrupted")
            videos = [_video_of(row) for row in rows]
            if (len(rows), _sum_of(rows)) != states[0][3:]:
                raise ValueError("some of its rows are missing or corrupted")
        return WindowState(*states[0][:3]), videos

    def commit(self, removed: Iterable[int], changed: Sequence[StoredVideo], state: WindowState) -> None:
        """Remove videos, add or rewrite others, and set the state, in one transaction.

        Raises:
            CollectionError: The system refuses to write; nothing is changed.
        """
        connection = self._open(create=True)
        assert connection is not None
        with self._translate_errors(write=True):
            disk.before("commit", str(self.path))
            connection.execute("BEGIN IMMEDIATE")
            try:
                ids = [(video_id,) for video_id in removed]
                before = [
                    row
                    for key in [*ids, *((video.record.id,) for video in changed)]
                    for row in connection.execute("SELECT checksum FROM videos WHERE id = ?", key)
                ]
                rows = [_row_of(video) for video in changed]
                connection.executemany("DELETE FROM videos WHERE id = ?", ids)
                connection.executemany("DELETE FROM videos WHERE id = ?", [(row[0],) for row in rows])
                connection.executemany(_INSERT, rows)
                (count, total) = connection.execute("SELECT videos, checksum FROM state").fetchone()
                total = (total - sum(checksum for (checksum,) in before) + _sum_of(rows)) & 0xFFFFFFFF
                connection.execute("DELETE FROM state")
                connection.execute(
                    "INSERT INTO state VALUES (?, ?, ?, ?, ?)",
                    (*astuple(state), count - len(before) + len(rows), total),
                )
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def check_present(self) -> None:
        """Check that the file has not been deleted since it was opened.

        Raises:
            CollectionError: The file no longer exists.
        """
        if self.version() is None:
            raise CollectionError(
                f"{self.path.parent} was deleted while it was being written to; run the same command again to create "
                "a new index"
            )

    def first_free_id(self) -> int:
        """Return the smallest id greater than all ids ever used."""
        connection = self._open()
        if connection is None:
            return 1
        with self._translate_errors():
            used = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'videos'").fetchone()
        return 1 if used is None else int(used[0]) + 1

    def check(self) -> None:
        """Check the integrity of the whole file.

        Raises:
            CollectionDamagedError: The file is damaged.
        """
        connection = self._open()
        if connection is not None:
            with self._translate_errors():
                (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                if found != "ok":
                    raise ValueError(found.replace("\n", " "))

    def close(self) -> None:
        """Close the file; it is reopened on the next use."""
        if self._closing is not None:
            self._closing()
        self._connection = self._closing = None

    def _open(self, *, create: bool = False) -> sqlite3.Connection | None:
        """Return a connection to the file that is currently at the path; None if there is none."""
        with self._translate_errors(write=create):
            try:
                status = os.lstat(self.path)
            except FileNotFoundError:
                self.close()
                if not create:
                    return None
                self.path.parent.mkdir(parents=True, exist_ok=True)
                disk.before("commit", str(self.path))
            else:
                if self._connection is not None and status.st_ino == self._inode:
                    return self._connection
                check_regular_file(self.path)
                self.close()
            for ending in _COMPANIONS:
                with suppress(FileNotFoundError):  # SQLite opens these files by name, and would block on a pipe
                    check_regular_file(f"{self.path}{ending}")
            name = f"file:{quote(os.fsencode(self.path))}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(
                name, uri=True, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            try:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
                for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
                    connection.execute(f"PRAGMA {pragma}")
                if not self._prepare(connection, create):
                    connection.close()
                    return None
            except BaseException:
                connection.close()
                raise
            self._connection, self._inode = connection, os.stat(self.path).st_ino
            self._closing = weakref.finalize(self, connection.close)
            return connection

    def _prepare(self, connection: sqlite3.Connection, create: bool) -> bool:
        """Check the schema, or create it in a new file; return False if there is none, because its creation was
        interrupted."""
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        found = {name: sql for name, sql in rows if name != "sqlite_sequence"}
        if not found:
            if not create:
                return False
            connection.execute("BEGIN IMMEDIATE")
            for sql in _SCHEMA.values():
                connection.execute(sql)
            connection.execute("INSERT INTO state VALUES (?, ?, ?, 0, 0)", astuple(WindowState()))
            connection.execute("COMMIT")
            disk.sync_folder(self.path.parent)
        elif found != _SCHEMA:
            raise ValueError("its schema is wrong")
        return True

    @contextmanager
    def _translate_errors(self, *, write: bool = False) -> Iterator[None]:
        """Convert errors of SQLite to errors that name the file, the cause and the remedy."""
        with (writing if write else reading)(self.path, REMEDY_OF_VIDEOS):
            try:
                yield
            except sqlite3.Error as error:
                number = _ERRNO.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
                if number is None:
                    raise ValueError(str(error)) from error
                raise OSError(number, str(error)) from error


def _row_of(video: StoredVideo) -> tuple[Any, ...]:
    """Convert a video to a row with a checksum."""
    record = video.record
    values = {name: getattr(record, name) for name in _RECORD_COLUMNS}
    values["path"] = os.fsencode(record.path)
    # A cause may contain a file name that is not valid Unicode.
    values["cause"] = record.cause.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    row = tuple(kind(value) for kind, value in zip(_COLUMNS.values(), values.values(), strict=False))
    row = (*row, video.first_row, video.row_checksum)
    return (*row, _checksum(row))


def _video_of(row: tuple[Any, ...]) -> StoredVideo:
    """Convert a row to a video.

    Raises:
        ValueError: The row is corrupted.
    """
    if tuple(map(type, row)) != tuple(_COLUMNS.values()) or _checksum(row[:-1]) != row[-1]:
        raise ValueError("a row is corrupted")
    values = dict(zip(_COLUMNS, row, strict=True))
    values["path"], values["has_audio"] = os.fsdecode(values["path"]), bool(values["has_audio"])
    record = VideoRecord(**{name: values[name] for name in _RECORD_COLUMNS})
    return StoredVideo(record, values["first_row"], values["row_checksum"])


def _checksum(row: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(row).encode())


def _sum_of(rows: Iterable[tuple[Any, ...]]) -> int:
    total: int = sum(row[-1] for row in rows)
    return total & 0xFFFFFFFF
