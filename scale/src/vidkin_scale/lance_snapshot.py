"""A copy of an index's tables in one file, which searches and video lists read without loading Lance.

Loading Lance and PyArrow takes longer than most searches, and more memory than most indexes. So the last step of an
update writes the rows of both tables into one file, with the state of the files of the tables at that moment. Readers
use the copy if the files are still the same, and otherwise the tables, so nothing depends on the copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import parse_json
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.index.storage.contract import WindowMatrix
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord

SNAPSHOT_FILE = "tables.snapshot"

_CHECKSUM = struct.Struct("!I")

# Part of the identity of the tables, so that a copy with another layout is not read.
_LAYOUT = "2"

_WINDOW_TYPES = {
    "vectors": np.float16,
    "video_ids": np.int64,
    "windows": np.int64,
}


@dataclass(frozen=True)
class SnapshotWindows:
    """All windows of an index, in the order of the table.

    Attributes:
        vectors: [N, E] float16.
        video_ids, windows: [N] int64, as in :class:`~vidkin.index.storage.contract.WindowMatrix`.
    """

    vectors: NDArray[np.float16]
    video_ids: NDArray[np.int64]
    windows: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, kind in _WINDOW_TYPES.items():
            column = getattr(self, name)
            shape = column.shape if name != "vectors" else column.shape[:-1]
            if column.dtype != kind or shape != (len(self.vectors),):
                raise InvalidArgumentError(
                    f"{name} must be of {len(self.vectors)} windows and {np.dtype(kind)}, got {list(column.shape)} "
                    f"{column.dtype}"
                )

    @cached_property
    def matrix(self) -> WindowMatrix:
        """The window vectors as one float32 matrix, created on first use."""
        return WindowMatrix(self.vectors.astype(np.float32), self.video_ids, self.windows)

    def of_videos(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        """Return the window vectors [W, E] of each of these videos."""
        rows = np.flatnonzero(np.isin(self.video_ids, video_ids))
        rows = rows[np.lexsort((self.windows[rows], self.video_ids[rows]))]
        owners = self.video_ids[rows]
        firsts, ends = (np.searchsorted(owners, video_ids, side) for side in ("left", "right"))
        return [self.vectors[rows[first:end]] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Contents of the tables at the time of writing.

    Attributes:
        state: Identifies the files of the tables, from :func:`state_of_tables`.
        records: Records of all videos.
        windows: All windows; None if there are too many to search without Lance.
    """

    state: str
    records: Sequence[VideoRecord]
    windows: SnapshotWindows | None


def state_of_tables(place: Place, tables: Iterable[str]) -> str | None:
    """Identify the current files of tables by a string that changes with every commit.

    None on object storage, where this would take as long as opening the tables.
    """
    if place.folder is None:
        return None
    found = []
    for table in tables:
        root = place.address(table)
        for folder, _, files in os.walk(root):
            name = table + folder[len(root) :]
            for file in files:
                try:
                    status = os.lstat(f"{folder}{os.sep}{file}")
                except FileNotFoundError:  # just removed by a writer
                    continue
                found.append((f"{name}{os.sep}{file}", status.st_size, status.st_mtime_ns))
    return hashlib.blake2b(repr((_LAYOUT, sorted(found))).encode(), digest_size=16).hexdigest()


def read_snapshot(place: Place, tables: Iterable[str]) -> Snapshot | None:
    """Read the copy of the tables; None if there is none, if they have changed since, or if it is damaged."""
    state = state_of_tables(place, tables)
    if state is None:
        return None
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = place.read(SNAPSHOT_FILE)
        if content is None or _CHECKSUM.unpack_from(content)[0] != zlib.crc32(content[_CHECKSUM.size :]):
            return None
        arrays = load(content[_CHECKSUM.size :])
        if arrays["state"].tobytes().decode() != state:
            return None
        names, *rows = parse_json(arrays["records"].tobytes())
        at = names.index("path")
        for row in rows:
            # Restore names from bytes, as in the tables, because another process can have a different file name
            # encoding.
            row[at] = os.fsdecode(row[at].encode("utf-8", "surrogateescape"))
        records = [VideoRecord(**dict(zip(names, row, strict=True))) for row in rows]
        windows = SnapshotWindows(**{name: arrays[name] for name in _WINDOW_TYPES}) if "vectors" in arrays else None
        return Snapshot(state, records, windows)
    except (
        *(OSError, CollectionError, struct.error, SafetensorError),
        *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    ):
        return None


def write_snapshot(place: Place, snapshot: Snapshot) -> None:
    """Write the snapshot. Failures are ignored, since the tables remain authoritative."""
    from safetensors.numpy import save

    names = [field.name for field in fields(VideoRecord)]
    rows = [[getattr(record, name) for name in names] for record in snapshot.records]
    at = names.index("path")
    for row in rows:
        row[at] = os.fsencode(row[at]).decode("utf-8", "surrogateescape")
    records = json.dumps([names, *rows], separators=(",", ":"))
    arrays: dict[str, NDArray[Any]] = {"state": _bytes(snapshot.state), "records": _bytes(records)}
    if snapshot.windows is not None:
        arrays |= {name: np.ascontiguousarray(getattr(snapshot.windows, name)) for name in _WINDOW_TYPES}
    content = save(arrays)
    try:
        place.write(SNAPSHOT_FILE, _CHECKSUM.pack(zlib.crc32(content)) + content, sync=False)
    except (OSError, CollectionError):
        return  # the tables have all data


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)
