"""Missing parts of an index: rebuild windows from features; videos without features become stale."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.memory import WindowMatrix
from vidkin.index.storage.records import VideoRecord, WindowVectors, window_vectors
from vidkin.index.storage.table import LanceTable

__all__ = [
    "LATER_VIDEO_COLUMNS",
    "VIDEO_COLUMNS",
    "VIDEO_SCHEMA",
    "VIDEO_WINDOW_COLUMNS",
    "WINDOW_COLUMNS",
    "find_missing_parts",
    "rebuild_parts",
    "record_rows",
    "records_from_rows",
    "window_matrix",
    "window_rows",
    "windows_from_rows",
]

_logger = logging.getLogger(__name__)

# Of a frame at least one value, its time, its information and its baseline; and of a file its header.
_LEAST_BYTES_A_FRAME = 2 + 8 + 4 + 4

_LEAST_HEADER = 8

_VIDEOS_A_COMMIT = 256


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A missing part of one video.

    Attributes:
        video_id: Id of the video.
        part: Its "features"; only its "windows", which can be rebuilt from them; or "both" of a stale video, which is
            known to have none until its file is read again.
        cause: One line.
    """

    video_id: int
    part: Literal["features", "windows", "both"]
    cause: str


def find_missing_parts(
    records: Iterable[VideoRecord], files: Mapping[int, int], windows: Mapping[int, int]
) -> list[MissingPart]:
    """Find missing parts, as far as sizes tell without reading the features.

    Args:
        records: Records of all videos.
        files: Size in bytes of the feature file of each video that has one.
        windows: Number of windows in the table for each video that has any.
    """
    missing = []
    for record in records:
        size, count = files.get(record.id), windows.get(record.id, 0)
        if record.needs_reindex:
            missing.append(MissingPart(record.id, "both", record.cause))
        elif record.status == "broken":
            continue
        elif size is None:
            missing.append(MissingPart(record.id, "features", "its features are missing"))
        elif size < _LEAST_HEADER + record.frames * _LEAST_BYTES_A_FRAME:
            missing.append(MissingPart(record.id, "features", f"its features are cut off at {size} bytes"))
        elif count != record.windows:
            cause = f"it has {count} of its {record.windows} windows"
            missing.append(MissingPart(record.id, "windows", cause))
    return missing


def rebuild_parts(
    missing: Sequence[MissingPart],
    records: Mapping[int, VideoRecord],
    features: FeatureFiles,
    windows: LanceTable,
) -> list[VideoRecord]:
    """Rebuild windows, and remove the remains of videos whose features are lost.

    Returns:
        The records to rewrite.
    """
    lost = {part.video_id: part.cause for part in missing if part.part == "features"}
    without_windows = [part.video_id for part in missing if part.part == "windows"]
    changed: list[VideoRecord] = []
    for start in range(0, len(without_windows), _VIDEOS_A_COMMIT):
        rebuilt: list[tuple[int, WindowVectors]] = []
        for video_id in without_windows[start : start + _VIDEOS_A_COMMIT]:
            try:
                rebuilt.append((video_id, window_vectors(features.read(video_id))))
            except CollectionDamagedError:
                lost[video_id] = "its features are damaged"
        windows.delete("video_id", [video_id for video_id, _ in rebuilt])
        rows = window_rows(rebuilt)
        if rows is not None:
            windows.append(rows)
        changed += [replace(records[video_id], windows=len(vectors)) for video_id, vectors in rebuilt]
    if changed:
        _logger.warning("windows of %d videos were missing; rebuilt from their features", len(changed))
    if lost:
        _logger.warning(
            "features of %d videos are missing or damaged; run `vidkin index` with their files to rebuild them",
            len(lost),
        )
        windows.delete("video_id", lost)
        features.remove(lost)
    return changed + [
        records[video_id].as_stale(f"{cause} in the index; index the file again")
        for video_id, cause in sorted(lost.items())
    ]


# Rows of the two tables of a Lance store: written from records and windows, and read back.


VIDEO_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        # Bytes, because a file name need not be valid text.
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
        ("damage", pa.string()),
    ]
)

# A stale record is written as a broken one with an impossible modification time, as version 0.1 did, so that old and
# new versions can read each other's indexes.
_STALE_MTIME = -1

VIDEO_COLUMNS = tuple(VIDEO_SCHEMA.names)

LATER_VIDEO_COLUMNS = frozenset({"damage"})

"""Columns that tables of version 0.1 lack."""

WINDOW_COLUMNS = ("video_id", "window", "start", "end", "vector")

VIDEO_WINDOW_COLUMNS = (*WINDOW_COLUMNS, "first_frame", "last_frame")


def record_rows(records: Iterable[VideoRecord]) -> pa.Table:
    """The rows of these records."""
    rows: list[dict[str, Any]] = []
    for record in records:
        rows.append({name: getattr(record, name) for name in VIDEO_SCHEMA.names})
        if record.status == "stale":
            rows[-1] |= {"status": "broken", "mtime_ns": _STALE_MTIME}
        rows[-1]["path"] = os.fsencode(record.path)
        # A cause may quote a file name that is not valid text.
        rows[-1]["cause"] = record.cause.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return pa.Table.from_pylist(rows, schema=VIDEO_SCHEMA)


def records_from_rows(rows: pa.Table) -> list[VideoRecord]:
    """The records in these rows."""
    names = rows.column_names
    columns = [rows[name].to_pylist() for name in names]
    at = names.index("path")
    columns[at] = [os.fsdecode(path) for path in columns[at]]
    records = []
    for row in zip(*columns, strict=True):
        fields = dict(zip(names, row, strict=True))
        if fields["status"] == "broken" and fields["mtime_ns"] == _STALE_MTIME:
            fields |= {"status": "stale", "mtime_ns": 0}
        records.append(VideoRecord(**{**fields, "damage": fields.get("damage") or ""}))
    return records


def window_rows(videos: Sequence[tuple[int, WindowVectors]]) -> pa.Table | None:
    """One row per window, or None if there are no windows."""
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
    """The column ``vector`` as a writable matrix [N, E]."""
    column = rows["vector"].combine_chunks()
    dimension = column.type.list_size
    return np.array(column.flatten(), dtype=np.float16).reshape(-1, dimension)


def _column(rows: pa.Table, name: str) -> NDArray[Any]:
    return np.array(rows[name].to_numpy())
