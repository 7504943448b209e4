"""From files of features to figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.support.comparators import passing
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.models.comparator_folder import save_comparator
from vidkin.models.config import ComparatorConfig
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask
from vidkin_research.public.features import StoredFeatures, describe_videos, find_videos
from vidkin_research.public.study import run_benchmark
from vidkin_research.public.systems import ChamferSystem, choose_system

TASK = RetrievalTask("mAP", "micro-AP", {"q": frozenset({"copy", "lost"})})
BENCHMARK = RetrievalBenchmark(
    "made", ("q", "gone"), ("copy", "lost", "other", "q"), (TASK,), {("q", "copy"): ((0, 0, 3, 3),)}
)


def unit(seed: int, frames: int = 3) -> torch.Tensor:
    values = torch.randn(frames, 2, 128, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(values, dim=-1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "features"
    place.mkdir()
    save_file({"values": unit(1)}, place / "q.safetensors")
    both = torch.cat([unit(1), unit(2, 5)])
    save_file(
        {"values": both, "lengths": torch.tensor([3, 5]), "timestamps": torch.arange(8) % 3 * 2.0},
        place / "rest.safetensors",
        {"paths": '["/somewhere/copy.mp4", "other.mkv"]'},
    )
    return place


def test_features_by_the_ids_of_videos(folder: Path) -> None:
    stored = StoredFeatures.open(folder)
    assert {video for video in BENCHMARK.videos if video in stored} == {"q", "copy", "other"}
    np.testing.assert_allclose(stored.read("other").whole, unit(2, 5))
    assert stored.read("copy").timestamps.tolist() == [0.0, 2.0, 4.0]
    assert stored.read("q").timestamps.tolist() == [0.0, 1.0, 2.0]
    save_file({"values": unit(1)}, folder / "copy.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"copy is in .*copy.safetensors and in .*rest.safetensors"):
        StoredFeatures.open(folder)


def test_damaged_stored_features_are_refused_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="has no safetensors files"):
        StoredFeatures.open(tmp_path)
    save_file({"vectors": unit(1)}, tmp_path / "q.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"must hold values \[T, R, D\] of q"):
        StoredFeatures.open(tmp_path).read("q")
    (tmp_path / "q.safetensors").write_bytes(b"nothing")
    with pytest.raises(InvalidArgumentError, match="cannot be read as features"):
        StoredFeatures.open(tmp_path)


def test_a_run_reports_what_is_missing(folder: Path) -> None:
    report = run_benchmark(BENCHMARK, StoredFeatures.open(folder), ChamferSystem())
    assert (report.queries, report.videos) == (1, 3)
    assert (report.missing_queries, report.missing_videos) == (("gone",), ("lost",))
    assert [(figure.name, figure.value) for figure in report.figures] == [("mAP", 1.0), ("micro-AP", 1.0)]
    strangers = RetrievalBenchmark("made", ("x",), ("y",), (TASK,))
    with pytest.raises(InvalidArgumentError, match="features of 0 of 1 queries and of 0 of 1 videos"):
        run_benchmark(strangers, StoredFeatures.open(folder), ChamferSystem())


def test_systems(folder: Path, tmp_path: Path) -> None:
    stored = StoredFeatures.open(folder)
    query, targets = stored.read("q"), [stored.read("copy"), stored.read("other")]
    # Two regions: the mean of both is less than the best one.
    best, mean = ChamferSystem(), choose_system(None, spatial_share=1.0)
    assert best.compare(query, targets, segments=False)[0][0] == pytest.approx(1.0)
    assert mean.compare(query, targets, segments=False)[0][0] < 0.8
    model = save_comparator(passing(ComparatorConfig(unrelated=(0.0, 0.5))), tmp_path / "model")
    comparator = choose_system(open_extractor(str(model)))
    scores = [score for score, _ in comparator.compare(query, targets, segments=False)]
    assert scores[0] == pytest.approx(1.0)  # 2 * 1 - 1
    assert scores[1] < 0.9
    assert comparator.compare(query, targets[:1], segments=True)[0][0] == 1.0
    assert choose_system(open_extractor("classical"), "chamfer").name == "Chamfer"
    # Both of two regions, as a number instead of a share.
    both = choose_system(None, spatial_share=2)
    assert both.compare(query, targets, segments=False) == mean.compare(query, targets, segments=False)
    with pytest.raises(InvalidArgumentError, match=r"temporal_share must be None .* 2 or more, got 1\.5"):
        choose_system(None, temporal_share=1.5)
    with pytest.raises(InvalidArgumentError, match="shares must not be given"):
        choose_system(open_extractor("classical"), spatial_share=0.3)


def test_videos_are_described_once_and_broken_ones_reported(tmp_path: Path) -> None:
    videos = tmp_path / "videos" / "copy"
    videos.mkdir(parents=True)
    encode(videos / "video.mp4", pan("coffee", 20))
    (tmp_path / "videos" / "lost.mp4").write_bytes(b"nothing")
    found = find_videos(tmp_path / "videos", BENCHMARK.videos)
    assert {video: path.name for video, path in found.items()} == {"copy": "video.mp4", "lost": "lost.mp4"}
    extractor = open_extractor("classical")
    stored, broken = describe_videos(found, extractor, tmp_path / "work")
    assert (set(stored.places), set(broken)) == ({"copy"}, {"lost"})
    (videos / "video.mp4").unlink()  # it is not read again
    again, _ = describe_videos({"copy": videos / "video.mp4"}, extractor, tmp_path / "work")
    torch.testing.assert_close(again.read("copy").values, stored.read("copy").values)
