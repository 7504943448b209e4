"""Which pairs are read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import NotIndexedError
from vidkin.index import (
    CommonFrames,
    Comparisons,
    Entry,
    MemoryStore,
    NearestWindows,
    PairResult,
    VideoRecord,
    window_vectors,
)
from vidkin.index.duplicates.comparisons import content_of
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.storage.records import unit_vectors
from vidkin.match import open_scorer
from vidkin.similarity import FrameFeatures

RECORDS = [
    VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name * 32, duration=20.0, frames=20, id=place)
    for place, name in enumerate("ab")
]
SCORER = open_scorer("copies")


class Watched:
    """Readings that note what is asked for, and have nothing to give."""

    def __init__(self, *, stored_finely: bool) -> None:
        self.stored_finely = stored_finely
        self.read: list[str] = []

    def is_stored_as_finely(self, record: VideoRecord) -> bool:
        return self.stored_finely

    def finest(self, record: VideoRecord) -> Any:
        self.read.append(record.path)
        raise NotIndexedError(record.path)


@pytest.mark.parametrize(
    ("result", "stored_finely", "is_read"),
    [
        (PairResult(0.72, covered=(1.0, 1.0)), False, True),
        (PairResult(0.72, covered=(1.0, 1.0)), True, False),
        (PairResult(0.1, covered=(1.0, 1.0)), False, False),  # unrelated
        (PairResult(0.72, True, (1.0, 1.0)), False, False),  # was read already
        (PairResult(0.78, covered=(1.0, 0.4)), False, False),  # an excerpt, all of which is shown
        (PairResult(0.78, covered=(0.75, 0.6)), False, True),  # how much of it is shown is open
        (PairResult(0.78, covered=(0.75, 0.6)), True, False),
        (PairResult(0.78, covered=(1.0, 1.0)), False, False),  # no reading would part the two
        (PairResult(0.8, covered=(1.0, 0.3)), False, False),  # no reading would make them copies as a whole
    ],
)
def test_what_is_in_doubt_is_read_again(result: PairResult, stored_finely: bool, is_read: bool) -> None:
    contents = [content_of(record) for record in RECORDS]
    known = Comparisons(searched=set(contents))
    known.put(contents[0], contents[1], result)
    readings: Any = Watched(stored_finely=stored_finely)
    PairSearch(MemoryStore(), CommonFrames(), SCORER, known, readings).run(RECORDS, threshold=0.7)
    assert bool(readings.read) is is_read


class Counted(MemoryStore):
    """A store that notes how often it is asked for what is near."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        self.asked += 1
        return super().nearest(vectors, limit)


def of_scenes(generator: np.random.Generator, name: str) -> Entry:
    """Six seconds, each a scene of its own."""
    values = unit_vectors(generator.normal(size=(6, 1, 64))).astype(np.float16)
    features = FrameFeatures.of_whole(values, np.arange(6.0))
    windows = window_vectors(features)
    facts = {"duration": 6.0, "frames": 6, "windows": len(windows)}
    return Entry(VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name, **facts), features, windows)  # type: ignore[arg-type]


def test_of_videos_that_are_added_only_those_are_looked_up() -> None:
    generator = np.random.default_rng(0)
    store = Counted()
    old = [of_scenes(generator, f"old {number}") for number in range(20)]
    store.append_many(old)
    known = Comparisons()
    PairSearch(store, CommonFrames(), SCORER, known).run(store.videos(), threshold=0.7)
    assert store.asked == 20
    # One of ten is a copy of a video that is there.
    new = [of_scenes(generator, f"new {number}") for number in range(9)]
    copied = replace(old[7].record, path="/copy.mp4", content_hash="copy", id=-1)
    store.append_many([*new, Entry(copied, old[7].features, old[7].windows)])
    before = {pair[:2] for pair in known.pairs()}
    PairSearch(store, CommonFrames(), SCORER, known).run(store.videos(), threshold=0.7)
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


def test_two_families_that_were_found_to_be_two_are_not_read_again() -> None:
    records = [
        VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name * 32, duration=20.0, frames=20, id=place)
        for place, name in enumerate("abcd")
    ]
    one, two, other, another = map(content_of, records)
    known = Comparisons(searched={one, two, other, another})
    for pair in ((one, two), (other, another)):
        known.put(*pair, PairResult(0.99, True, (1.0, 1.0)))
    for pair in ((one, other), (two, other)):
        known.put(*pair, PairResult(0.4, True, (1.0, 1.0)))
    known.put(one, another, PairResult(0.6, False, (1.0, 1.0)))
    readings: Any = Watched(stored_finely=False)
    PairSearch(MemoryStore(), CommonFrames(), SCORER, known, readings).run(records, threshold=0.7)
    assert readings.read == []
