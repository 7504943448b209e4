"""A synthetic index of objects of several kinds, and a simulated reviewer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.index import Entry, Index, VideoRecord, open_place, window_vectors
from vidkin.review import Labels
from vidkin.similarity import FrameFeatures

KINDS, THINGS, COPIES = 4, 4, 2


def fill(path: Path) -> None:
    """Fill an index with ``/videos/KIND-THING-COPY.mp4``.

    Frames of one kind agree in half of the dimensions, copies of one object in all of them.
    """
    generator = np.random.default_rng(0)

    def draw(*size: int) -> NDArray[np.float32]:
        return generator.standard_normal(size, dtype=np.float32)

    entries = []
    for kind in range(KINDS):
        of_kind = np.concatenate([draw(8), np.zeros(8, np.float32)])
        for thing in range(THINGS):
            of_thing = 0.8 * of_kind + np.concatenate([0.3 * draw(8), 1.2 * draw(8)])
            for copy in range(COPIES):
                frames = of_thing + 0.4 * draw(4, 16)
                frames /= np.linalg.norm(frames, axis=-1, keepdims=True)
                values = frames[:, None, None]
                features = FrameFeatures(values, np.arange(4, dtype=np.float64), np.ones(4, np.float32))
                windows = window_vectors(features)
                name = f"{kind}-{thing}-{copy}"
                record = VideoRecord(
                    path=f"/videos/{name}.mp4",
                    size=1000,
                    mtime_ns=1,
                    content_hash=f"hash-{name}",
                    duration=4.0,
                    width=320,
                    height=240,
                    frame_rate=25.0,
                    codec="h264",
                    frames=4,
                    sampling_rate=1.0,
                    windows=len(windows),
                )
                entries.append(Entry(record, features, windows))
    with Index.open(path, extractor="classical", create=True) as index:
        index.store.append_many(entries)


def judge(one: str, other: str) -> str:
    """The reviewer's verdict on two content hashes."""
    first, second = (name.split("-")[1:3] for name in (one, other))
    if first == second:
        return "same"
    return "same kind" if first[0] == second[0] else "different"


def judge_pairs(path: Path, pairs: list[tuple[str, str]]) -> None:
    """Store the reviewer's verdicts on pairs of content hashes."""
    for one, other in pairs:
        Labels.judge_pair(open_place(path), one, other, judge(one, other), source="test")  # type: ignore[arg-type]
