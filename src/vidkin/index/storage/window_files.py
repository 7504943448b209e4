"""The windows of an index in two append-only files: their vectors, and their spans in the videos.

Video records refer to rows. A row is on disk before a record refers to it, and is not rewritten afterward, so readers
can read the rows of the records they have, whatever is written in the meantime. Rows that no record refers to are
dropped when the windows are copied to the files of a new generation.

Shapes: N rows, E dimensions of a vector.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base import disk
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.records import WindowVectors

# Start and end of a window in seconds, and its first and last frame.
_SPAN = np.dtype([("start", "<f8"), ("end", "<f8"), ("first", "<i8"), ("last", "<i8")])
_VECTOR = np.dtype("<f2")
# Number of bytes copied at a time.
_CHUNK = 1 << 22

_NEW = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class WindowRun(NamedTuple):
    """The rows of one video: first row, number of rows, id of the video, and checksum."""

    first: int
    length: int
    video: int
    checksum: int


class WindowFiles:
    """The window files of one generation.

    Args:
        folder: Folder of the store.
        generation: Number of the generation, which is part of the file names.
    """

    def __init__(self, folder: Path, generation: int) -> None:
        self.folder = folder
        self.generation = generation
        self.vector_path = folder / f"windows-{generation}.vectors"
        self.span_path = folder / f"windows-{generation}.spans"

    def rows(self, dimension: int) -> int:
        """Number of complete rows on disk."""
        sizes = [
            _size(self.vector_path) // (dimension * _VECTOR.itemsize or 1),
            _size(self.span_path) // _SPAN.itemsize,
        ]
        return min(sizes)

    def write(self, first: int, videos: Sequence[WindowVectors]) -> list[int]:
        """Write the windows of videos, starting at row ``first``, to which no record may refer; then sync to disk.

        Returns:
            The checksum of each video's windows, for :meth:`read`.
        """
        if not videos:
            return []
        vectors = [np.ascontiguousarray(windows.vectors, _VECTOR) for windows in videos]
        spans = [_spans_of(windows) for windows in videos]
        with writing(self.vector_path):
            for path, parts in ((self.vector_path, vectors), (self.span_path, spans)):
                _write_at(path, first * parts[0][:1].nbytes, b"".join(part.tobytes() for part in parts))
            disk.sync_folder(self.folder)
        return [_checksum(*parts) for parts in zip(vectors, spans, strict=True)]

    def vectors(self, dimension: int, rows: int) -> NDArray[np.float16]:
        """Memory-map the first ``rows`` vectors [N, E].

        Raises:
            CollectionDamagedError: The file is missing or too short.
        """
        return self._map(self.vector_path, _VECTOR, rows, dimension)

    def spans(self, rows: int) -> NDArray[np.void]:
        """Memory-map the spans [N] of the first ``rows`` windows.

        Raises:
            CollectionDamagedError: The file is missing or too short.
        """
        return self._map(self.span_path, _SPAN, rows)

    def read(self, vectors: NDArray[np.float16], spans: NDArray[np.void], run: WindowRun) -> WindowVectors:
        """Read the windows of one video from mapped files.

        Raises:
            CollectionDamagedError: The windows are missing or corrupted.
        """
        with reading(self.vector_path):
            rows = slice(run.first, run.first + run.length)
            if run.first < 0 or rows.stop > min(len(vectors), len(spans)):
                raise ValueError("it is shorter than expected")
            own, where = np.array(vectors[rows]), np.array(spans[rows])
            if _checksum(own, where) != run.checksum:
                raise ValueError("the stored values are corrupted")
        return WindowVectors(
            own,
            where["start"].astype(np.float64),
            where["end"].astype(np.float64),
            where["first"].astype(np.int64),
            where["last"].astype(np.int64),
        )

    def copy_rows(self, runs: Sequence[WindowRun], dimension: int, target: WindowFiles) -> None:
        """Copy runs of rows to the files of another generation, consecutively from the start."""
        with writing(target.vector_path):
            for source, copy, size in (
                (self.vector_path, target.vector_path, dimension * _VECTOR.itemsize),
                (self.span_path, target.span_path, _SPAN.itemsize),
            ):
                disk.before("write", str(copy))
                with open(source, "rb") as old, open(copy, "wb") as new:
                    for run in runs:
                        _copy(old, run.first * size, run.length * size, new)
                disk.sync_file(copy)
            disk.sync_folder(self.folder)

    def delete(self) -> None:
        """Delete the files of this generation."""
        with writing(self.folder):
            for path in (self.vector_path, self.span_path):
                with suppress(FileNotFoundError):
                    disk.unlink(path)

    def _map(self, path: Path, dtype: np.dtype[Any], rows: int, *dimension: int) -> NDArray[Any]:
        shape = (rows, *dimension)
        with reading(path):
            if 0 in shape:
                return np.zeros(shape, dtype)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise ValueError("it is not a regular file")
            if os.path.getsize(path) < np.prod(shape, dtype=object) * dtype.itemsize:
                raise ValueError("it is shorter than expected")
            return np.memmap(path, dtype, "r", shape=shape)


def _spans_of(windows: WindowVectors) -> NDArray[np.void]:
    spans = np.empty(len(windows), _SPAN)
    spans["start"], spans["end"] = windows.starts, windows.ends
    spans["first"], spans["last"] = windows.first_frames, windows.last_frames
    return spans


def _checksum(vectors: NDArray[np.float16], spans: NDArray[np.void]) -> int:
    return zlib.crc32(spans.tobytes(), zlib.crc32(vectors.tobytes()))


def _write_at(path: Path, position: int, content: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o666)
    try:
        os.lseek(descriptor, position, os.SEEK_SET)
        disk.write(descriptor, content, str(path))
    finally:
        os.close(descriptor)
    disk.sync_file(path)


def _copy(old: BinaryIO, position: int, count: int, new: BinaryIO) -> None:
    old.seek(position)
    while count > 0:
        part = old.read(min(count, _CHUNK))
        if not part:
            raise ValueError("it is shorter than expected")
        new.write(part)
        count -= len(part)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
