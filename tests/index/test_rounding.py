"""Descriptors are rounded once on the way from a worker to a score, and every station keeps these numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from tests.index.helpers import outcomes_of, write_videos
from vidkin.features import registry
from vidkin.index import (
    Described,
    Index,
    LanceStore,
    MemoryStore,
    ProcessExecutor,
    VectorStore,
    WorkerSpec,
    scan,
)
from vidkin.index.ingest.session import ingest
from vidkin.media import Frames, read_frames
from vidkin.similarity import FrameFeatures

# Half precision has neither number.
THREE_FOUR = torch.tensor([0.6, 0.8, 0.0, 0.0])
ROUNDED = [0.60009765625, 0.7998046875, 0.0, 0.0]
WHOLE = torch.tensor([[0.0, 0.0, 1.0, 1.0]])


class InParts:
    """The whole picture as (.6, .8, 0, 0) in every frame, and each part of it as (.8, .6, 0, 0)."""

    name = "parts"
    fingerprint = "parts-1"
    scorer = "copies"
    views = "both"
    short_side = 64

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        boxes = WHOLE if boxes is None else boxes
        values = THREE_FOUR[[1, 0, 2, 3]].repeat(len(boxes), 1, 1)
        values[0] = THREE_FOUR
        return FrameFeatures(
            values.repeat(len(frames), 1, 1, 1),
            torch.from_numpy(frames.timestamps.copy()),
            torch.ones(len(frames)),
            self.fingerprint,
            boxes=boxes.repeat(len(frames), 1, 1),
        )


class Exact(InParts):
    """A unit vector for each frame, of eight numbers in float32 that a hash of the frame decides."""

    fingerprint = "exact-1"
    scorer = "kinds"
    views = "none"

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        return FrameFeatures.of_whole(
            vectors_of(frames)[:, None],
            torch.from_numpy(frames.timestamps.copy()),
            fingerprint=self.fingerprint,
        )


def vectors_of(frames: Frames) -> torch.Tensor:
    hashes = [list(hashlib.sha256(image.tobytes()).digest()[:8]) for image in frames.images]
    return torch.nn.functional.normalize(torch.tensor(hashes) - 127.5, dim=-1)


def open_in_parts(name: str, **_: object) -> InParts:
    return InParts()


def open_exact(name: str, **_: object) -> Exact:
    return Exact()


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_videos(tmp_path_factory.mktemp("videos"), 3)


@pytest.mark.process
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_what_a_worker_sends_is_what_a_store_gives_back(kind: str, videos: list[str], tmp_path: Path) -> None:
    """Whole frames as the nearest numbers of half precision, parts as sevenths of their largest number."""
    executor = ProcessExecutor(WorkerSpec("parts", open_extractor=open_in_parts), workers=1)
    sent = outcomes_of(executor.run(videos[:1]))[videos[0]]
    assert isinstance(sent, Described)
    assert sent.features.values.dtype == torch.float16
    assert sent.features.values[:, 0, 0].unique(dim=0).tolist() == [ROUNDED]
    # .8 and .6 are 7 and 5.25 sevenths of .8: (7, 5, 0, 0), of the length 1 again.
    part = (torch.tensor([7.0, 5.0, 0.0, 0.0]) / 74**0.5).half()
    assert sent.features.values[:, 1:23, 0].flatten(0, 1).unique(dim=0).tolist() == [part.tolist()]
    store: VectorStore = MemoryStore() if kind == "memory" else LanceStore(tmp_path / "store")
    ingest(store, scan(videos[:1]), executor)
    (record,) = store.videos()
    assert torch.equal(store.read(record.id).values, sent.features.values)


@pytest.mark.process
def test_scores_are_those_of_vectors_that_were_rounded_once(
    videos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(1 + cosine) / 2 of the nearest frames, in double precision, from vectors in half precision."""
    monkeypatch.setitem(registry._EXTRACTORS._entries, "exact", open_exact)
    with Index.open(tmp_path / "index", extractor="exact", create=True) as index:
        index.add(videos, executor=ProcessExecutor(WorkerSpec("exact", open_extractor=open_exact), workers=1))
        scores = {match.path: match.score for match in index.search(videos[0])}
        rate = index.videos()[0].sampling_rate
    vectors = {path: vectors_of(read_frames(path, rate=rate, short_side=64)) for path in videos}
    rounded = {path: score_of(vectors[videos[0]].half(), vectors[path].half()) for path in videos}
    assert scores[videos[0]] == 1.0
    for path in videos[1:]:
        assert scores[path] == pytest.approx(rounded[path], abs=3e-7)
        # Without rounding, or from vectors rounded to the eight bits of bfloat16 on the way, this digit would differ.
        assert abs(scores[path] - score_of(vectors[videos[0]], vectors[path])) > 1e-6
        coarse = (vectors[each].bfloat16().half() for each in (videos[0], path))
        assert abs(scores[path] - score_of(*coarse)) > 1e-6


def score_of(query: torch.Tensor, target: torch.Tensor) -> float:
    frame_map = (1 + query.double() @ target.double().T) / 2
    return float(frame_map.amax(0).mean() + frame_map.amax(1).mean()) / 2
