"""Which pairs are read again."""

from __future__ import annotations

from typing import Any

import pytest

from vidkin.errors import NotIndexedError
from vidkin.index import MemoryStore, VideoRecord
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.query.common import CommonFrames
from vidkin.similarity import CopyScorer, FrameFeatures, Segment

RECORDS = [
    VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name * 32, duration=20.0, frames=20, id=place)
    for place, name in enumerate("ab")
]
FLIPPED = (Segment(0, 9, 0, 9, 0.9, mirrored=True),)


class Watched:
    """Readings that note what is asked for, and have nothing to give."""

    def __init__(self, *, stored_finely: bool) -> None:
        self.stored_finely = stored_finely
        self.read: list[str] = []

    def is_stored_as_finely(self, record: VideoRecord) -> bool:
        return self.stored_finely

    def finest(self, record: VideoRecord, *, mirrored: bool) -> Any:
        self.read.append(record.path)
        raise NotIndexedError(record.path)

    def predict_flipped(self, features: FrameFeatures) -> None:
        return None

    def flipped(self, record: VideoRecord) -> None:
        return None


@pytest.mark.parametrize(
    ("result", "stored_finely", "is_read"),
    [
        (PairResult(0.8, covered=(1.0, 1.0)), False, True),
        (PairResult(0.8, covered=(1.0, 1.0)), True, False),
        (PairResult(0.1, covered=(1.0, 1.0)), False, False),  # unrelated
        (PairResult(0.8, True, (1.0, 1.0)), False, False),  # was read already
        (PairResult(0.99, covered=(1.0, 0.4)), False, False),  # an excerpt, all of which is shown
        (PairResult(0.99, covered=(0.75, 0.6)), False, True),  # how much of it is shown is open
        (PairResult(0.99, covered=(0.75, 0.6)), True, False),
        (PairResult(0.8, covered=(1.0, 1.0), segments=FLIPPED), True, True),
        (PairResult(0.99, covered=(1.0, 1.0), segments=FLIPPED), True, False),  # no reading would part the two
        (PairResult(0.8, covered=(1.0, 0.3)), False, False),  # no reading would make them copies as a whole
    ],
)
def test_what_is_in_doubt_is_read_again(result: PairResult, stored_finely: bool, is_read: bool) -> None:
    contents = [content_of(record) for record in RECORDS]
    known = Comparisons(searched=set(contents), flipped=set(contents))
    known.put(contents[0], contents[1], result)
    readings: Any = Watched(stored_finely=stored_finely)
    PairSearch(MemoryStore(), CommonFrames(), CopyScorer(), known, readings).run(RECORDS, threshold=0.7)
    assert bool(readings.read) is is_read


def test_two_families_that_were_found_to_be_two_are_not_read_again() -> None:
    records = [
        VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name * 32, duration=20.0, frames=20, id=place)
        for place, name in enumerate("abcd")
    ]
    one, two, other, another = map(content_of, records)
    known = Comparisons(searched={one, two, other, another}, flipped={one, two, other, another})
    for pair in ((one, two), (other, another)):
        known.put(*pair, PairResult(0.99, True, (1.0, 1.0)))
    for pair in ((one, other), (two, other)):
        known.put(*pair, PairResult(0.4, True, (1.0, 1.0)))
    known.put(one, another, PairResult(0.6, False, (1.0, 1.0)))
    readings: Any = Watched(stored_finely=False)
    PairSearch(MemoryStore(), CommonFrames(), CopyScorer(), known, readings).run(records, threshold=0.7)
    assert readings.read == []
