"""Rows of the three tables of a Lance store, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from vidkin.index.exact_search import WindowMatrix
from vidkin.index.store import StoredFeatures, VideoRecord, WindowVectors

__all__ = [
    "feature_rows",
    "features_from_rows",
    "record_rows",
    "records_from_rows",
    "window_matrix",
    "window_rows",
]

# Frames of one row of features: large enough that a typical video is one row, small enough that a row of a
# two-hour film is about a megabyte and tables can be rewritten in little memory.
CHUNK_FRAMES = 256

_VIDEO_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        # Bytes, because a file name need not be text.
        pa.field("path", pa.binary(), nullable=False),
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("content_hash", pa.string()),
        ("status", pa.string()),
        ("cause", pa.string()),
        ("duration", pa.float64()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("frame_rate", pa.float64()),
        ("codec", pa.string()),
        ("bit_depth", pa.int32()),
        ("has_audio", pa.bool_()),
        ("frames", pa.int64()),
        ("sampling_rate", pa.float64()),
        ("windows", pa.int64()),
        ("added_at", pa.float64()),
    ]
)
# Unit vectors do not compress; trying costs more than reading them.
_PLAIN = {b"lance-encoding:compression": b"none"}
_FEATURE_SCHEMA = pa.schema(
    [
        ("video_id", pa.int64()),
        ("chunk", pa.int32()),
        ("frames", pa.int32()),
        ("regions", pa.int32()),
        ("dimension", pa.int32()),
        pa.field("values", pa.large_binary(), metadata=_PLAIN),
        ("timestamps", pa.binary()),
        ("information", pa.binary()),
        ("baseline", pa.binary()),
    ]
)
FEATURE_COLUMNS = ("frames", "regions", "dimension", "values", "timestamps", "information", "baseline")
WINDOW_COLUMNS = ("video_id", "window", "start", "end", "vector")


def record_rows(records: Iterable[VideoRecord]) -> pa.Table:
    """The rows of these records."""
    return pa.Table.from_pylist([_record_row(record) for record in records], schema=_VIDEO_SCHEMA)


def records_from_rows(rows: pa.Table) -> list[VideoRecord]:
    """The records in these rows."""
    names = _VIDEO_SCHEMA.names
    columns = [rows[name].to_pylist() for name in names]
    at = names.index("path")
    columns[at] = [os.fsdecode(path) for path in columns[at]]
    return [VideoRecord(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def feature_rows(videos: Sequence[tuple[int, StoredFeatures]]) -> pa.Table:
    """Rows of up to :data:`CHUNK_FRAMES` frames each; a video without frames has one row, of none."""
    rows: list[dict[str, Any]] = []
    for video_id, features in videos:
        for chunk, start in enumerate(range(0, max(len(features), 1), CHUNK_FRAMES)):
            part = slice(start, start + CHUNK_FRAMES)
            frames, regions, dimension = features.values[part].shape
            rows.append(
                {
                    "video_id": video_id,
                    "chunk": chunk,
                    "frames": frames,
                    "regions": regions,
                    "dimension": dimension,
                    "values": _bytes(features.values[part]),
                    "timestamps": _bytes(features.timestamps[part]),
                    "information": _bytes(features.information[part]),
                    "baseline": _bytes(features.baseline[part]),
                }
            )
    return pa.Table.from_pylist(rows, schema=_FEATURE_SCHEMA)


def features_from_rows(rows: pa.Table) -> StoredFeatures:
    """The features of one video from its rows in order."""
    frames = sum(rows["frames"].to_pylist())
    regions, dimension = rows["regions"][0].as_py(), rows["dimension"][0].as_py()
    return StoredFeatures(
        values=_tensor(rows["values"], (frames, regions, dimension), np.float16),
        timestamps=_tensor(rows["timestamps"], (frames,), np.float64),
        information=_tensor(rows["information"], (frames,), np.float32),
        baseline=_tensor(rows["baseline"], (frames,), np.float32),
    )


def window_rows(videos: Sequence[tuple[int, WindowVectors]]) -> pa.Table | None:
    """One row a window, or None if there is no window at all."""
    videos = [(video_id, windows) for video_id, windows in videos if len(windows)]
    if not videos:
        return None
    vectors = torch.cat([windows.vectors.to(torch.float16) for _, windows in videos]).numpy()
    columns = {
        "video_id": np.concatenate([np.full(len(windows), video_id) for video_id, windows in videos]),
        "window": np.concatenate([np.arange(len(windows), dtype=np.int32) for _, windows in videos]),
        "start": np.concatenate([windows.starts.numpy() for _, windows in videos]),
        "end": np.concatenate([windows.ends.numpy() for _, windows in videos]),
        "first_frame": np.concatenate([windows.first_frames.numpy() for _, windows in videos]),
        "last_frame": np.concatenate([windows.last_frames.numpy() for _, windows in videos]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    return pa.table(columns)


def windows_from_rows(rows: pa.Table) -> WindowVectors:
    """The windows of one video from its rows."""
    rows = rows.sort_by("window")
    return WindowVectors(
        vectors=torch.from_numpy(vector_column(rows)),
        starts=torch.from_numpy(_column(rows, "start")),
        ends=torch.from_numpy(_column(rows, "end")),
        first_frames=torch.from_numpy(_column(rows, "first_frame")),
        last_frames=torch.from_numpy(_column(rows, "last_frame")),
    )


def window_matrix(rows: pa.Table) -> WindowMatrix:
    """All rows (columns :data:`WINDOW_COLUMNS`) as tensors."""
    return WindowMatrix(
        vectors=torch.from_numpy(vector_column(rows)),
        video_ids=torch.from_numpy(_column(rows, "video_id")),
        windows=torch.from_numpy(_column(rows, "window").astype(np.int64)),
        starts=torch.from_numpy(_column(rows, "start")),
        ends=torch.from_numpy(_column(rows, "end")),
    )


def vector_column(rows: pa.Table) -> NDArray[np.float16]:
    """The column ``vector`` as a matrix [N, E] that can be written to."""
    column = rows["vector"].combine_chunks()
    dimension = column.type.list_size
    return np.array(column.flatten(), dtype=np.float16).reshape(-1, dimension)


def _record_row(record: VideoRecord) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(record, name) for name in _VIDEO_SCHEMA.names}
    row["path"] = os.fsencode(record.path)
    # A cause may quote a file name that is not text.
    row["cause"] = record.cause.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return row


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().numpy().tobytes()


def _tensor(column: pa.ChunkedArray, shape: tuple[int, ...], dtype: type[np.generic]) -> torch.Tensor:
    # Copied out of Arrow's memory: a tensor must be writable, and must not keep its neighbours alive.
    result = np.empty(shape, dtype)
    start = 0
    for value in column:
        part = np.frombuffer(value.as_buffer(), dtype)
        length = len(part) // int(np.prod(shape[1:], dtype=np.int64) or 1)
        result[start : start + length] = part.reshape((length, *shape[1:]))
        start += length
    return torch.from_numpy(result)


def _column(rows: pa.Table, name: str) -> NDArray[Any]:
    return np.array(rows[name].to_numpy())
