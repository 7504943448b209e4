"""The vectors of the windows of an index, in an append-only file.

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
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base import disk
from vidkin.index.storage.files import reading, writing

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

    def rows(self, dimension: int) -> int:
        """Number of complete rows on disk."""
        try:
            size = self.vector_path.lstat().st_size
        except FileNotFoundError:
            return 0
        return size // (dimension * _VECTOR.itemsize or 1)

    def write(self, first: int, videos: Sequence[NDArray[np.floating]]) -> list[int]:
        """Write the vectors [W, E] of videos, starting at row ``first``, to which no record may refer; then sync to
        disk.

        Returns:
            The checksum of each video's windows, for :meth:`read`.
        """
        if not videos:
            return []
        parts = [np.ascontiguousarray(vectors, _VECTOR).tobytes() for vectors in videos]
        with writing(self.vector_path):
            _write_at(self.vector_path, first * videos[0].shape[1] * _VECTOR.itemsize, b"".join(parts))
            disk.sync_folder(self.folder)
        return [zlib.crc32(part) for part in parts]

    def vectors(self, dimension: int, rows: int) -> NDArray[np.float16]:
        """Memory-map the first ``rows`` vectors [N, E].

        Raises:
            CollectionDamagedError: The file is missing or too short.
        """
        shape = (rows, dimension)
        with reading(self.vector_path):
            if 0 in shape:
                return np.zeros(shape, _VECTOR)
            if not stat.S_ISREG(os.lstat(self.vector_path).st_mode):
                raise ValueError("it is not a file")
            if os.path.getsize(self.vector_path) < rows * dimension * _VECTOR.itemsize:
                raise ValueError("it is shorter than its list says")
            return np.memmap(self.vector_path, _VECTOR, "r", shape=shape)

    def read(self, vectors: NDArray[np.float16], run: WindowRun) -> NDArray[np.float16]:
        """Read the windows of one video from the mapped file.

        Raises:
            CollectionDamagedError: The windows are missing or corrupted.
        """
        with reading(self.vector_path):
            rows = slice(run.first, run.first + run.length)
            if run.first < 0 or rows.stop > len(vectors):
                raise ValueError("it is shorter than expected")
            own = np.array(vectors[rows])
            if zlib.crc32(own.tobytes()) != run.checksum:
                raise ValueError("the stored values are corrupted")
        return own

    def copy_rows(self, runs: Sequence[WindowRun], dimension: int, target: WindowFiles) -> None:
        """Copy runs of rows to the file of another generation, consecutively from the start."""
        size, copy = dimension * _VECTOR.itemsize, target.vector_path
        with writing(copy):
            disk.before("write", str(copy))
            with open(self.vector_path, "rb") as old, open(copy, "wb") as new:
                for run in runs:
                    _copy(old, run.first * size, run.length * size, new)
            disk.sync_file(copy)
            disk.sync_folder(self.folder)

    def delete(self) -> None:
        """Delete the file of this generation."""
        with writing(self.folder), suppress(FileNotFoundError):
            disk.unlink(self.vector_path)


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
