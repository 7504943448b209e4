"""Convert records and windows to rows of the two tables of a Lance store, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin.index.storage.contract import WindowMatrix
from vidkin.index.storage.records import VideoRecord
from vidkin_scale.lance_snapshot import SnapshotWindows

if TYPE_CHECKING:
    import pyarrow as pa


# Columns and their types in Arrow. The path is bytes, because a file name need not be valid text.
_VIDEO_TYPES = {
    "id": "int64",
    "path": "binary",
    "size": "int64",
    "mtime_ns": "int64",
    "content_hash": "string",
    "status": "string",
    "cause": "string",
    "duration": "float64",
    "width": "int32",
    "height": "int32",
    "frame_rate": "float64",
    "codec": "string",
    "bit_depth": "int32",
    "has_audio": "bool_",
    "frames": "int64",
    "sampling_rate": "float64",
    "windows": "int64",
    "added_at": "float64",
    "damage": "string",
}

_NEVER_EMPTY = ("id", "path")

VIDEO_COLUMNS = tuple(_VIDEO_TYPES)


def video_schema() -> pa.Schema:
    """Return the schema of the table of videos."""
    import pyarrow as pa

    return pa.schema(
        pa.field(name, getattr(pa, kind)(), nullable=name not in _NEVER_EMPTY) for name, kind in _VIDEO_TYPES.items()
    )


WINDOW_COLUMNS = ("video_id", "window", "vector")


def record_rows(records: Iterable[VideoRecord]) -> pa.Table:
    """Convert records to rows."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for record in records:
        rows.append({name: getattr(record, name) for name in VIDEO_COLUMNS})
        rows[-1]["path"] = os.fsencode(record.path)
        # An error message may quote a file name that is not valid text.
        rows[-1]["cause"] = record.cause.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return pa.Table.from_pylist(rows, schema=video_schema())


def records_from_rows(rows: pa.Table) -> list[VideoRecord]:
    """Convert rows to records."""
    names = rows.column_names
    columns = [rows[name].to_pylist() for name in names]
    at = names.index("path")
    columns[at] = [os.fsdecode(path) for path in columns[at]]
    records = []
    for row in zip(*columns, strict=True):
        fields = dict(zip(names, row, strict=True))
        records.append(VideoRecord(**fields))
    return records


def window_rows(videos: Sequence[tuple[int, NDArray[np.floating]]]) -> pa.Table | None:
    """Convert windows to rows, one per window; None if there are no windows."""
    videos = [(video_id, windows) for video_id, windows in videos if len(windows)]
    if not videos:
        return None
    import pyarrow as pa

    vectors = np.concatenate([windows for _, windows in videos], dtype=np.float16)
    columns = {
        "video_id": np.concatenate([np.full(len(windows), video_id) for video_id, windows in videos]),
        "window": np.concatenate([np.arange(len(windows), dtype=np.int32) for _, windows in videos]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    return pa.table(columns)


def window_matrix(rows: pa.Table) -> WindowMatrix:
    """Convert rows (columns :data:`WINDOW_COLUMNS`) to arrays."""
    windows = _column(rows, "window").astype(np.int64)
    return WindowMatrix(vector_column(rows).astype(np.float32), _column(rows, "video_id"), windows)


def all_windows(rows: pa.Table) -> SnapshotWindows:
    """Convert rows (columns :data:`WINDOW_COLUMNS`) to arrays, as a snapshot keeps them."""
    return SnapshotWindows(
        vectors=vector_column(rows),
        video_ids=_column(rows, "video_id"),
        windows=_column(rows, "window").astype(np.int64),
    )


def vector_column(rows: pa.Table) -> NDArray[np.float16]:
    """Convert the column ``vector`` to a writable matrix [N, E]."""
    column = rows["vector"].combine_chunks()
    dimension = column.type.list_size
    return np.array(column.flatten(), dtype=np.float16).reshape(-1, dimension)


def _column(rows: pa.Table, name: str) -> NDArray[Any]:
    return np.array(rows[name].to_numpy())
