"""Find and rebuild missing parts: windows are rebuilt from features; videos without features become stale."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.records import VideoRecord, window_vectors

_logger = logging.getLogger(__name__)

# Minimum size in bytes of a frame (one value, time, information, baseline), and of a file header.
_MIN_BYTES_PER_FRAME = 2 + 8 + 4 + 4
_MIN_HEADER = 8

_VIDEOS_PER_COMMIT = 256


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A missing part of one video.

    Attributes:
        video_id: Id of the video.
        part: "features"; "windows", which can be rebuilt from the features; or "both" for a stale video, which has
            neither until its file is read again.
        cause: One-line description of the cause.
    """

    video_id: int
    part: Literal["features", "windows", "both"]
    cause: str


def find_missing_parts(
    records: Iterable[VideoRecord], files: Mapping[int, int], windows: Mapping[int, int]
) -> list[MissingPart]:
    """Find missing parts by their sizes, without reading the features.

    Args:
        records: Records of all videos.
        files: Size in bytes of each feature file, keyed by video id.
        windows: Number of windows in the table, keyed by video id.
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
        elif size < _MIN_HEADER + record.frames * _MIN_BYTES_PER_FRAME:
            missing.append(MissingPart(record.id, "features", f"its features are truncated to {size} bytes"))
        elif count != record.windows:
            cause = f"it has {count} of its {record.windows} windows"
            missing.append(MissingPart(record.id, "windows", cause))
    return missing


def rebuild_parts(
    missing: Sequence[MissingPart],
    records: Mapping[int, VideoRecord],
    features: FeatureFiles,
    replace_windows: Callable[[Mapping[int, NDArray[np.floating]]], None],
) -> list[VideoRecord]:
    """Rebuild windows, and remove the feature files of videos whose features are lost.

    Args:
        missing: The missing parts.
        records: Records of all videos, keyed by id.
        features: The feature files.
        replace_windows: Function that replaces all windows of videos, given by id.

    Returns:
        Stale records that the caller must save.
    """
    lost = {part.video_id: part.cause for part in missing if part.part == "features"}
    without_windows = [part.video_id for part in missing if part.part == "windows"]
    count = 0
    for start in range(0, len(without_windows), _VIDEOS_PER_COMMIT):
        rebuilt: dict[int, NDArray[np.floating]] = {}
        for video_id in without_windows[start : start + _VIDEOS_PER_COMMIT]:
            try:
                rebuilt[video_id] = window_vectors(features.read(video_id))
            except CollectionDamagedError:
                lost[video_id] = "its features are damaged"
        replace_windows(rebuilt)
        count += len(rebuilt)
    if count:
        _logger.warning("missing windows of %d videos were rebuilt from their features", count)
    if lost:
        _logger.warning(
            "features of %d videos are missing or damaged; run `vidkin index` on their files to rebuild them",
            len(lost),
        )
        features.remove(lost)
    return [
        records[video_id].as_stale(f"{cause} in the index; index the file again")
        for video_id, cause in sorted(lost.items())
    ]
