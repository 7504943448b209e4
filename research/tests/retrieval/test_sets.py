"""Collections of the comparison: their splits, and features that are computed only once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.labelled import two_by_two
from vidkin.datasets import check_split
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.models import EncoderConfig, build_model
from vidkin_research.retrieval.prepared import read_pixels, stored_frame_features
from vidkin_research.retrieval.sets import COMPARISON_SETS, comparison_set, open_set


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_by_two(tmp_path_factory.mktemp("pictures"), each=8)


def test_names_of_sets_are_unique_and_unknown_names_are_rejected() -> None:
    names = [known.name for known in COMPARISON_SETS]
    assert len(set(names)) == len(names)
    with pytest.raises(InvalidArgumentError, match=r"a set must be one of fruit, strokes, .*, got 'cats'"):
        comparison_set("cats")


def test_own_images_are_split_into_three_parts(pictures: Path) -> None:
    labelled = open_set(comparison_set("pictures"), pictures)
    counts = labelled.split_counts()
    assert sum(counts.values()) == 32
    assert set(counts) == {"train", "validation", "test"}
    for split in counts:
        assert len({item.label for item in labelled.part(split).items}) == 4


def test_missing_collections_and_other_kinds_are_rejected(pictures: Path) -> None:
    with pytest.raises(DatasetError, match="Grocery"):
        open_set(comparison_set("grocery"), pictures)
    with pytest.raises(InvalidArgumentError, match="items of kind image, but set videos is for videos"):
        open_set(comparison_set("videos"), pictures)


def test_features_are_computed_once_by_the_backbone(pictures: Path, tmp_path: Path) -> None:
    labelled = open_set(comparison_set("pictures"), pictures)
    config = EncoderConfig(kind="image", backbone="small", trainable="head", size=32)
    model = build_model(config, seed=0)
    told: list[tuple[int, int]] = []
    first = stored_frame_features(model, labelled, cache=tmp_path, on_item=lambda *done: told.append(done))
    assert first.shape == (32, model.feature_dimension)
    assert told[-1] == (32, 32)
    again: list[tuple[int, int]] = []
    second = stored_frame_features(model, labelled, cache=tmp_path, on_item=lambda *done: again.append(done))
    assert torch.equal(first, second)
    assert not again
    inputs = read_pixels(labelled, size=32, frames=1).float() / 255
    assert inputs.shape == (32, 3, 32, 32)
    with torch.no_grad():
        expected = model.eval().frame_features(inputs)  # type: ignore[operator]
    torch.testing.assert_close(first, expected, rtol=1e-4, atol=1e-5)


def test_other_weights_do_not_use_cached_features(pictures: Path, tmp_path: Path) -> None:
    labelled = open_set(comparison_set("pictures"), pictures)
    config = EncoderConfig(kind="image", backbone="small", trainable="head", size=32)
    found = [stored_frame_features(build_model(config, seed=seed), labelled, cache=tmp_path) for seed in (0, 1)]
    assert not torch.equal(found[0], found[1])
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts", "categories", "subcategories"),
    [
        ("fruit", {"train": 200, "validation": 87, "test": 198}, 3, 67),
        ("strokes", {"train": 2904, "validation": 726, "test": 1210}, 8, 242),
        ("grocery", {"train": 2640, "validation": 296, "test": 2485}, 3, 81),
        ("omniglot", {"train": 2904, "validation": 726, "test": 1210}, 8, 242),
    ],
)
def test_available_collections_can_be_read(
    shared_data: Path, name: str, counts: dict[str, int], categories: int, subcategories: int
) -> None:
    labelled = open_set(comparison_set(name), shared_data)
    assert labelled.split_counts() == counts
    assert (len(labelled.categories()), len(labelled.subcategories())) == (categories, subcategories)
    check_split(labelled)


@pytest.mark.data
def test_every_fruit_video_is_in_one_split(shared_data: Path) -> None:
    labelled = open_set(comparison_set("fruit"), shared_data)
    sides: dict[Path, set[str]] = {}
    for item in labelled.items:
        sides.setdefault(item.path, set()).add(item.split)
    assert len(sides) == 162
    assert all(len(found) == 1 for found in sides.values())
    assert len({item.label for item in labelled.part("test").items}) == 66  # one has a single axis
    assert len({item.label for item in labelled.part("validation").items}) == 29
