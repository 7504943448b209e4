"""Features of a frozen network are computed once per video, and every run gets a new head."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin_research.heads import HeadStore


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return encode(tmp_path_factory.mktemp("video") / "coffee.mp4", pan("coffee", 12, width=64, height=48), rate=5)


def store(folder: Path, **settings: object) -> HeadStore:
    return HeadStore(None, folder, window=4, network="small", size=32, units=8, **settings)  # type: ignore[arg-type]


def test_every_frame_has_features(video: Path, tmp_path: Path) -> None:
    heads = store(tmp_path)
    (features,) = heads.features([video])
    assert features.shape == (12, heads.model(0).backbone.dimension)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    # Adjacent frames of a moving camera are similar but not equal.
    assert 0 < np.abs(features[0] - features[1]).mean() < np.abs(features[0] - features[11]).mean()


def test_stored_features_do_not_depend_on_the_file_name(video: Path, tmp_path: Path) -> None:
    (first,) = store(tmp_path / "store").features([video])
    (stored,) = (tmp_path / "store").iterdir()
    # Verifies that the file is read and not rewritten.
    np.save(stored, first + 1, allow_pickle=False)
    copy = shutil.copy(video, tmp_path / "renamed.mp4")
    heads = store(tmp_path / "store")
    assert all(np.array_equal(features, first + 1) for features in heads.features([video, Path(copy)]))
    assert len(list((tmp_path / "store").iterdir())) == 1


def test_features_depend_on_network_and_video(video: Path, tmp_path: Path) -> None:
    other = encode(tmp_path / "rocket.mp4", pan("rocket", 6, width=64, height=48), rate=5)
    (coffee, rocket) = store(tmp_path / "store").features([video, other])
    assert (len(coffee), len(rocket)) == (12, 6)
    larger = HeadStore(None, tmp_path / "store", window=4, network="small", size=48, units=8)
    assert not np.array_equal(larger.features([video])[0], coffee)
    assert len(list((tmp_path / "store").iterdir())) == 3


def test_heads_differ_by_seed_and_share_the_frozen_network(tmp_path: Path) -> None:
    heads = store(tmp_path)
    one, again, other = heads.model(0), heads.model(0), heads.model(1)
    assert not one.training
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name
    differs = {
        name.partition(".")[0]
        for name, weight in one.state_dict().items()
        if not torch.equal(weight, other.state_dict()[name])
    }
    assert differs
    trained = {name.partition(".")[0] for name, weight in one.named_parameters() if weight.requires_grad}
    assert "backbone" not in trained
    assert differs - {"backbone"} <= trained


def test_progress_names_the_videos(video: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    store(tmp_path).features([video, video], on_progress=lambda *step: steps.append(step))
    assert steps == [(0, 2, "coffee.mp4"), (1, 2, "coffee.mp4")]


def test_failed_video_stores_no_features(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("hello")
    with pytest.raises(MediaError, match=r"text.mp4"):
        store(tmp_path / "store").features([tmp_path / "text.mp4"])
    assert not (tmp_path / "store").exists()
