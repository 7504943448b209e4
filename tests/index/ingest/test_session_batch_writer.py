"""When index changes are written: after a number of videos, an amount of data, or a delay."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.index import Entry, FileOutcome, MemoryStore, Scan, VideoRecord
from vidkin.index.ingest import session as batch_writer
from vidkin.index.ingest.report import Tally
from vidkin.index.ingest.session import SECONDS_PER_COMMIT, VIDEOS_PER_COMMIT, BatchWriter
from vidkin.similarity import FrameFeatures


def entry(number: int) -> Entry:
    features = FrameFeatures.of_whole(np.eye(4, dtype=np.float16)[None, :1], np.zeros(1), np.ones(1, np.float32))
    record = VideoRecord(path=f"/{number}.mp4", size=1, mtime_ns=1, content_hash=f"{number}", frames=1)
    return Entry(record, features, np.zeros((0, 0), np.float16))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(batch_writer.time, "monotonic", lambda: now[0])
    return now


def test_videos_are_written_by_count_or_after_a_delay(clock: list[float]) -> None:
    store = MemoryStore()
    writer = BatchWriter(store, Tally(Scan((), (), ()), None))
    writer.write_if_due()
    for number in range(VIDEOS_PER_COMMIT - 1):
        writer.append(entry(number), "added", "")
        writer.write_if_due()
    assert store.count() == 0
    writer.append(entry(99), "added", "")
    writer.write_if_due()
    assert store.count() == VIDEOS_PER_COMMIT
    writer.append(entry(100), "added", "")
    clock[0] += SECONDS_PER_COMMIT - 0.1
    writer.write_if_due()
    assert store.count() == VIDEOS_PER_COMMIT
    clock[0] += 0.2
    writer.write_if_due()
    assert store.count() == VIDEOS_PER_COMMIT + 1


def test_outcomes_are_settled_once_their_records_are_written(clock: list[float]) -> None:
    store = MemoryStore()
    tally = Tally(Scan((), (), ()), None)
    writer = BatchWriter(store, tally)
    writer.append(entry(1), "added", "its end is missing")
    assert tally.report().added == ()
    writer.write()
    assert tally.report().added == (FileOutcome("/1.mp4", "added", "its end is missing"),)
    (record,) = store.videos()
    moved = VideoRecord(**{**record.to_dict(), "path": "/new.mp4"})
    writer.update(moved, FileOutcome("/new.mp4", "moved", "was /1.mp4"))
    writer.write()
    assert [record.path for record in store.videos()] == ["/new.mp4"]
    assert [outcome.cause for outcome in tally.report().moved] == ["was /1.mp4"]
