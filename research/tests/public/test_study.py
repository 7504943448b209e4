"""From feature files to benchmark results."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.support.comparators import passing
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import open_extractor
from vidkin.models.comparator import build_comparator
from vidkin.models.comparator_extractor import ComparatorExtractor
from vidkin.models.comparator_folder import save_comparator
from vidkin.models.config import ComparatorConfig
from vidkin.similarity import FrameFeatures
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask
from vidkin_research.public.features import StoredFeatures, describe_videos, find_videos
from vidkin_research.public.study import estimate_hours, run_benchmark
from vidkin_research.public.systems import ChamferSystem, PairSystem, choose_system

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


def test_features_are_found_by_video_id(folder: Path) -> None:
    stored = StoredFeatures.open(folder)
    assert {video for video in BENCHMARK.videos if video in stored} == {"q", "copy", "other"}
    np.testing.assert_allclose(stored.read("other").whole, unit(2, 5))
    assert stored.read("copy").timestamps.tolist() == [0.0, 2.0, 4.0]
    assert stored.read("q").timestamps.tolist() == [0.0, 1.0, 2.0]
    save_file({"values": unit(1)}, folder / "copy.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"copy is in both .*copy.safetensors and .*rest.safetensors"):
        StoredFeatures.open(folder)


def test_damaged_stored_features_are_rejected_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no safetensors or HDF5 files"):
        StoredFeatures.open(tmp_path)
    save_file({"vectors": unit(1)}, tmp_path / "q.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"must contain values \[T, R, D\] of q"):
        StoredFeatures.open(tmp_path).read("q")
    (tmp_path / "q.safetensors").write_bytes(b"nothing")
    with pytest.raises(InvalidArgumentError, match="cannot be read as features"):
        StoredFeatures.open(tmp_path)


def test_run_reports_missing_videos(folder: Path) -> None:
    report = run_benchmark(BENCHMARK, StoredFeatures.open(folder), ChamferSystem())
    assert (report.queries, report.videos) == (1, 3)
    assert (report.missing_queries, report.missing_videos) == (("gone",), ("lost",))
    assert [(figure.name, figure.value) for figure in report.figures] == [("mAP", 1.0), ("micro-AP", 1.0)]
    strangers = RetrievalBenchmark("made", ("x",), ("y",), (TASK,))
    with pytest.raises(InvalidArgumentError, match="features of 0 of 1 queries and 0 of 1 videos"):
        run_benchmark(strangers, StoredFeatures.open(folder), ChamferSystem())


def test_system_scores_equal_hand_computed_values(folder: Path, tmp_path: Path) -> None:
    stored = StoredFeatures.open(folder)
    videos = [stored.read(name) for name in ("q", "copy", "other")]

    def scores(system: PairSystem, *, segments: bool = False) -> list[float]:
        # Segments require unrelated frames, which the comparator's extractor describes with one region.
        regions = 1 if segments else 2
        query, *targets = (system.prepare(replace(video, values=video.values[:, :, :regions])) for video in videos)
        ((first, second),) = system.compare([query], targets, segments=segments)
        return [first[0], second[0]]

    # Two regions: their mean is less than the best one.
    mean = choose_system(None, spatial_share=1.0)
    assert scores(ChamferSystem())[0] == pytest.approx(1.0)
    assert scores(mean)[0] < 0.8
    model = save_comparator(passing(ComparatorConfig(unrelated=(0.0, 0.5))), tmp_path / "model")
    comparator = choose_system(open_extractor(str(model)))
    assert scores(comparator)[0] == pytest.approx(1.0)  # 2 * 1 - 1
    assert scores(comparator)[1] < 0.9
    assert scores(comparator, segments=True)[0] == 1.0
    assert choose_system(open_extractor("classical"), "chamfer").name == "Chamfer"
    # Both of two regions, as a count instead of a fraction.
    assert scores(choose_system(None, spatial_share=2)) == scores(mean)
    with pytest.raises(InvalidArgumentError, match=r"temporal_share must be None .* at least 2, got 1\.5"):
        choose_system(None, temporal_share=1.5)
    with pytest.raises(InvalidArgumentError, match="spatial_share and temporal_share require the scorer chamfer"):
        choose_system(open_extractor("classical"), spatial_share=0.3)


def test_features_are_extracted_once_and_broken_videos_reported(tmp_path: Path) -> None:
    videos = tmp_path / "videos" / "copy"
    videos.mkdir(parents=True)
    encode(videos / "video.mp4", pan("coffee", 20))
    (tmp_path / "videos" / "lost.mp4").write_bytes(b"nothing")
    found = find_videos(tmp_path / "videos", BENCHMARK.videos)
    assert {video: path.name for video, path in found.items()} == {"copy": "video.mp4", "lost": "lost.mp4"}
    extractor = open_extractor("classical")
    stored, broken = describe_videos(found, extractor, tmp_path / "work")
    assert (set(stored.places), set(broken)) == ({"copy"}, {"lost"})
    (videos / "video.mp4").unlink()  # not read again
    again, _ = describe_videos({"copy": videos / "video.mp4"}, extractor, tmp_path / "work")
    torch.testing.assert_close(again.read("copy").values, stored.read("copy").values)


class CountedSystem(ChamferSystem):
    """Chamfer similarity that counts the videos it prepares."""

    prepared = 0

    def prepare(self, features: FrameFeatures) -> torch.Tensor:
        self.prepared += 1
        return super().prepare(features)


def test_every_video_is_prepared_once_for_all_queries(tmp_path: Path) -> None:
    names = [f"v{number}" for number in range(5)]
    for number, name in enumerate(names):
        save_file({"values": unit(number, 3 + number)}, tmp_path / f"{name}.safetensors")
    benchmark = RetrievalBenchmark("made", tuple(names[:4]), tuple(names), (TASK,))
    system = CountedSystem()
    run_benchmark(benchmark, StoredFeatures.open(tmp_path), system)
    assert system.prepared == 4 + 5
    assert estimate_hours(benchmark, StoredFeatures.open(tmp_path), system) > 0


@pytest.mark.parametrize("settings", [{}, {"symmetric": True}, {"padding": "replicate"}, {"remainder": "dropped"}])
def test_comparator_scores_of_blocks_equal_single_pairs(settings: dict[str, Any], tmp_path: Path) -> None:
    config = ComparatorConfig(unrelated=(0.0, 0.5), temporal_share=0.3, weighting="attention", **settings)
    model = save_comparator(build_comparator(config, weights="random", seed=3), tmp_path / "model")
    extractor = open_extractor(str(model))
    assert isinstance(extractor, ComparatorExtractor)
    videos = [
        FrameFeatures.of_whole(unit(n, length).numpy(), np.arange(length) * 1.0, None)
        for n, length in enumerate((2, 9, 30, 31, 70))
    ]
    system = choose_system(extractor)
    prepared = [system.prepare(video) for video in videos]
    found = [[score for score, _ in row] for row in system.compare(prepared, prepared[1:], segments=False)]
    alone = extractor.comparator
    weighed = [alone.weigh(video.whole) for video in videos]
    single = [
        [alone.video_score(alone.learned_map(alone.frame_map(query, target))) for target in weighed[1:]]
        for query in weighed
    ]
    np.testing.assert_allclose(found, single, atol=2e-5)


def test_features_of_public_systems_are_read_from_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="research/ brings h5py as the extra hdf5")
    with h5py.File(tmp_path / "features.hdf5", "w") as file:
        file["q"] = unit(1).numpy().astype(np.float16)
        file["videos/other"] = unit(2, 5).numpy()[:, 0]
    stored = StoredFeatures.open(tmp_path)
    assert set(stored.places) == {"q", "other"}
    assert stored.read("q").whole.shape == (3, 2, 128)
    np.testing.assert_allclose(stored.read("q").whole, unit(1), atol=1e-3)
    assert stored.read("other").whole.shape == (5, 1, 128)
    assert stored.read("other").timestamps.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    (tmp_path / "features.hdf5").write_bytes(b"nothing")
    with pytest.raises(InvalidArgumentError, match="cannot be read as HDF5"):
        StoredFeatures.open(tmp_path)


def test_error_for_hdf5_without_h5py_is_a_single_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "features.hdf5").touch()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingPartError, match="HDF5 files need h5py; install it with"):
        StoredFeatures.open(tmp_path)
