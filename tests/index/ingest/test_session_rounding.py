"""Vectors are rounded exactly once between worker and score; all later steps keep the rounded values."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import Boxes, outcomes_of, units, write_videos
from tests.support.videos import encode, pan
from vidkin.features import register_extractor
from vidkin.index import (
    Described,
    DiskStore,
    Index,
    MemoryStore,
    ProcessExecutor,
    VectorStore,
    WorkerSpec,
    open_place,
    scan,
)
from vidkin.index.ingest.session import ingest
from vidkin.media import Frames, read_frames
from vidkin.similarity import FrameFeatures

# Neither value can be represented in half precision.
THREE_FOUR = np.array([0.6, 0.8, 0.0, 0.0], np.float32)
ROUNDED = [0.60009765625, 0.7998046875, 0.0, 0.0]
WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)


class InParts:
    """Describes the whole frame as (0.6, 0.8, 0, 0) and each part of it as (0.8, 0.6, 0, 0)."""

    name = "parts"
    fingerprint = "parts-1"
    scorer = "copies"
    describes_boxes = True
    short_side = 64

    def extract(self, frames: Frames, *, boxes: Boxes | None = None) -> FrameFeatures:
        boxes = WHOLE if boxes is None else boxes
        values = np.tile(THREE_FOUR[[1, 0, 2, 3]], (len(boxes), 1, 1))
        values[0] = THREE_FOUR
        return FrameFeatures(
            np.tile(values, (len(frames), 1, 1, 1)),
            frames.timestamps,
            np.ones(len(frames), np.float32),
            self.fingerprint,
            boxes=np.tile(boxes, (len(frames), 1, 1)),
        )


class Exact(InParts):
    """Describes each frame by a float32 unit vector of 28 dimensions whose last eight signs come from a hash of the
    frame.

    Any two have a cosine of at least 12 / 28. All components have the magnitude 1 / sqrt(28), which half precision
    reduces
    by a factor of 0.00009 and bfloat16 increases by 0.0025, so that a rounding shows in every score, whatever the
    encoder.
    """

    fingerprint = "exact-1"
    scorer = "kinds"
    describes_boxes = False

    def extract(self, frames: Frames, *, boxes: Boxes | None = None) -> FrameFeatures:
        return FrameFeatures.of_whole(
            vectors_of(frames)[:, None],
            frames.timestamps,
            fingerprint=self.fingerprint,
        )


def vectors_of(frames: Frames) -> NDArray[np.floating]:
    hashes = np.array([list(hashlib.sha256(image.tobytes()).digest()[:1]) for image in frames.images], np.uint8)
    signs = np.unpackbits(hashes, axis=1) - 0.5
    return units(np.hstack([np.full((len(frames), 20), 0.5), signs]))


def open_in_parts(name: str, **_: object) -> InParts:
    return InParts()


def open_exact(name: str, **_: object) -> Exact:
    return Exact()


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A video with an inset, which becomes a separate part, and two others."""
    folder = tmp_path_factory.mktemp("videos")
    frames = [frame.copy() for frame in pan("coffee", 10, width=96, height=64)]
    for frame, small in zip(frames, pan("rocket", 10, width=48, height=40, seed=2), strict=True):
        frame[12:52, 30:78] = small
    return [str(encode(folder / "inset.mp4", frames, rate=5)), *write_videos(folder, 2)]


@pytest.mark.process
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_store_returns_exactly_what_a_worker_sends(kind: str, videos: list[str], tmp_path: Path) -> None:
    """Whole frames are rounded to half precision, parts to sevenths of their largest component."""
    executor = ProcessExecutor(WorkerSpec("parts", open_extractor=open_in_parts), workers=1)
    sent = outcomes_of(executor.run(videos[:1]))[videos[0]]
    assert isinstance(sent, Described)
    assert sent.features.values.dtype == np.float16
    assert np.unique(sent.features.values[:, 0, 0], axis=0).tolist() == [ROUNDED]
    # 0.8 and 0.6 are 7 and 5.25 sevenths of 0.8, which gives (7, 5, 0, 0), normalized again.
    part = (np.array([7.0, 5.0, 0.0, 0.0]) / 74**0.5).astype(np.float16)
    parts = sent.features.values[:, 1:, 0].reshape(-1, 4)
    assert np.unique(parts[parts.any(axis=1)], axis=0).tolist() == [part.tolist()]
    store: VectorStore = MemoryStore() if kind == "memory" else DiskStore(open_place(tmp_path / "store"))
    ingest(store, scan(videos[:1]), executor)
    (record,) = store.videos()
    assert np.array_equal(store.read(record.id).values, sent.features.values)


@pytest.mark.process
def test_scores_use_vectors_rounded_once(videos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score is (1 + cosine) / 2 of the closest frames, in double precision, from half-precision vectors."""
    register_extractor("exact", open_exact)
    with Index.open(tmp_path / "index", extractor="exact", create=True) as index:
        index.add(videos, executor=ProcessExecutor(WorkerSpec("exact", open_extractor=open_exact), workers=1))
        scores = {match.path: match.score for match in index.search(videos[0])}
        rate = index.videos()[0].sampling_rate
    vectors = {path: vectors_of(read_frames(path, rate=rate, short_side=64)) for path in videos}
    rounded = {
        path: score_of(vectors[videos[0]].astype(np.float16), vectors[path].astype(np.float16)) for path in videos
    }
    assert scores[videos[0]] == 1.0
    for path in videos[1:]:
        assert scores[path] == pytest.approx(rounded[path], abs=3e-7)
        # It would be higher without rounding, and higher still with bfloat16 as an intermediate format.
        assert scores[path] < score_of(vectors[videos[0]], vectors[path]) - 3e-6
        coarse = (in_eight_bits(vectors[each]).astype(np.float16) for each in (videos[0], path))
        assert scores[path] < score_of(*coarse) - 3e-5


def in_eight_bits(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to bfloat16."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def score_of(query: NDArray[np.floating], target: NDArray[np.floating]) -> float:
    frame_map = (1 + query.astype(np.float64) @ target.astype(np.float64).T) / 2
    return float(frame_map.max(axis=0).mean() + frame_map.max(axis=1).mean()) / 2
