"""An index of many videos that exist in the index only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vidkin.index import Entry, Index, VideoRecord, window_vectors
from vidkin.similarity import FrameFeatures


def fill(path: Path, count: int, *, root: Path | None = None) -> None:
    """Make an index with ``count`` records, ``/videos/NN/video NNNNN.mp4``, of one frame each.

    With ``root`` the files are there instead of in ``/videos``, empty ones, and every twentieth has a copy: the next.
    """
    if root is not None:
        for number in range(count):
            file = _path(number, root)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    with Index.open(path, extractor="classical", create=True) as index:
        for start in range(0, count, 1000):
            index.store.append_many([_entry(number, root) for number in range(start, min(start + 1000, count))])


def _path(number: int, root: Path) -> Path:
    return root / f"{number % 100:02d}" / f"video {number:05d}.mp4"


def _entry(number: int, root: Path | None) -> Entry:
    content = number - 1 if root is not None and number % 20 == 1 else number
    values = np.random.default_rng(content).standard_normal((1, 1, 1, 128), dtype=np.float32)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    features = FrameFeatures(values, np.zeros(1), np.ones(1, np.float32))
    record = VideoRecord(
        path=str(_path(number, root or Path("/videos"))),
        size=1_000_000 + 7919 * number % 5_000_000,
        mtime_ns=number + 1,
        content_hash=f"{content:032x}",
        duration=float(number % 600 + 1),
        width=1920,
        height=1080,
        frame_rate=25.0,
        codec="h264",
        frames=1,
        sampling_rate=1.0,
        windows=1,
        added_at=float(number),
    )
    return Entry(record, features, window_vectors(features))
