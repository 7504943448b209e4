"""Which pairs are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin.index import (
    Comparisons,
    Entry,
    MemoryStore,
    NearestWindows,
    VideoRecord,
    window_vectors,
)
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.storage.records import unit_vectors
from vidkin.match import open_scorer
from vidkin.similarity import FrameFeatures

SCORER = open_scorer("copies")


class Counted(MemoryStore):
    """A store that counts nearest-neighbor searches."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        self.asked += 1
        return super().nearest(vectors, limit)


def make_scenes(generator: np.random.Generator, name: str) -> Entry:
    """Six seconds with six different scenes."""
    values = unit_vectors(generator.normal(size=(6, 1, 64))).astype(np.float16)
    features = FrameFeatures.of_whole(values, np.arange(6.0))
    windows = window_vectors(features)
    facts = {"duration": 6.0, "frames": 6, "windows": len(windows)}
    return Entry(VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name, **facts), features, windows)


def test_only_added_videos_are_looked_up() -> None:
    generator = np.random.default_rng(0)
    store = Counted()
    old = [make_scenes(generator, f"old {number}") for number in range(20)]
    store.append_many(old)
    known = Comparisons()
    PairSearch(store, SCORER, known).run(store.videos())
    assert store.asked == 20
    # One of the ten new videos is a copy of an indexed one.
    new = [make_scenes(generator, f"new {number}") for number in range(9)]
    copied = replace(old[7].record, path="/copy.mp4", content_hash="copy", id=-1)
    store.append_many([*new, Entry(copied, old[7].features, old[7].windows)])
    before = {pair[:2] for pair in known.pairs()}
    PairSearch(store, SCORER, known).run(store.videos())
    assert store.asked == 30
    found = known.get("old 7", "copy")
    assert found is not None
    assert found.score >= 0.7
    assert found.covered == (1.0, 1.0)
    assert all(
        "new" in first + second or "copy" in first + second
        for first, second, _ in known.pairs()
        if (first, second) not in before
    )
