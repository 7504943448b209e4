"""Making good what is missing of an index on disk: windows from the features, features from the files once more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.contract import READ_AGAIN, VideoRecord, WindowVectors
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.rows import window_rows
from vidkin.index.storage.table import LanceTable
from vidkin.index.windows import window_vectors

__all__ = ["MissingPart", "heal", "missing_parts"]

_logger = logging.getLogger(__name__)

# Of a frame at least one value, its time, its information and its baseline; and of a file its header.
_LEAST_BYTES_A_FRAME = 2 + 8 + 4 + 4
_LEAST_HEADER = 8
_VIDEOS_A_COMMIT = 256


@dataclass(frozen=True, slots=True)
class MissingPart:
    """What an index lacks of one video.

    Attributes:
        video_id: Whose.
        part: Its "features"; only its "windows", which can be made from them; "nothing" any more, but its file is
            to be read again.
        cause: One line.
    """

    video_id: int
    part: Literal["features", "windows", "nothing"]
    cause: str


def missing_parts(
    records: Iterable[VideoRecord], files: Mapping[int, int], windows: Mapping[int, int]
) -> list[MissingPart]:
    """What is missing, as far as that can be told without reading the features.

    Args:
        records: Of all videos.
        files: Bytes of the file of features of each video that has one.
        windows: Number of windows in the table, of each video that has any.
    """
    found = []
    for record in records:
        if record.status == "broken":
            if record.to_be_read_again:
                found.append(MissingPart(record.id, "nothing", record.cause))
            continue
        size, count = files.get(record.id), windows.get(record.id, 0)
        if size is None:
            found.append(MissingPart(record.id, "features", "its features are missing"))
        elif size < _LEAST_HEADER + record.frames * _LEAST_BYTES_A_FRAME:
            found.append(MissingPart(record.id, "features", f"its features are cut off at {size} bytes"))
        elif count != record.windows:
            found.append(
                MissingPart(record.id, "windows", f"{count} of its {record.windows} windows are there")
            )
    return found


def heal(
    damage: Sequence[MissingPart],
    records: Mapping[int, VideoRecord],
    features: FeatureFiles,
    windows: LanceTable,
) -> list[VideoRecord]:
    """Write windows anew; take away what is left of videos whose features are lost.

    Returns:
        The records that are to be rewritten.
    """
    lost = {part.video_id: part.cause for part in damage if part.part == "features"}
    without_windows = [part.video_id for part in damage if part.part == "windows"]
    changed: list[VideoRecord] = []
    for start in range(0, len(without_windows), _VIDEOS_A_COMMIT):
        made: list[tuple[int, WindowVectors]] = []
        for video_id in without_windows[start : start + _VIDEOS_A_COMMIT]:
            try:
                made.append((video_id, window_vectors(features.read(video_id))))
            except CollectionDamagedError:
                lost[video_id] = "its features are damaged"
        windows.delete("video_id", [video_id for video_id, _ in made])
        rows = window_rows(made)
        if rows is not None:
            windows.append(rows)
        changed += [replace(records[video_id], windows=len(vectors)) for video_id, vectors in made]
    if changed:
        _logger.warning("windows of %d videos were missing; made anew from their features", len(changed))
    if lost:
        _logger.warning(
            "features of %d videos were missing or damaged; their files are read again where they are among those "
            "to be indexed",
            len(lost),
        )
        windows.delete("video_id", lost)
        features.remove(lost)
    return changed + [_lost(records[video_id], cause) for video_id, cause in sorted(lost.items())]


def _lost(record: VideoRecord, cause: str) -> VideoRecord:
    """Broken, and changed as soon as anybody looks at the file."""
    return replace(
        record,
        status="broken",
        cause=f"{cause} in the index; index the file again",
        mtime_ns=READ_AGAIN,
        frames=0,
        windows=0,
    )
