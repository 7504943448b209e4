"""Deep ranking in the image comparison: training on triplets improves the ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vidkin.errors import InvalidArgumentError
from vidkin_research.images import IMAGE_SETS, RANKING_ROWS, ImageTask, measure_row, open_task
from vidkin_research.images.ranking_rows import RankingRow

PICTURES = next(chosen for chosen in IMAGE_SETS if chosen.name == "pictures")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> ImageTask:
    """Noise with a faint tint: the class affects the image less than the noise."""
    root = tmp_path_factory.mktemp("tints")
    random = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 8)):
        for label, tint in (("red", (14, 0, 0)), ("green", (0, 14, 0)), ("blue", (0, 0, 14))):
            folder = root / part / label
            folder.mkdir(parents=True)
            for number in range(count):
                brightness = random.integers(0, 150)
                picture = brightness + np.array(tint) + random.integers(0, 60, (64, 64, 3))
                Image.fromarray(picture.astype(np.uint8)).save(folder / f"{number}.png")
    return open_task(PICTURES, root, size=64)


@pytest.mark.parametrize("kind", ["deep_ranking", "image"])
def test_training_orders_triplets(task: ImageTask, kind: str) -> None:
    def precision(steps: int) -> float:
        row = RankingRow(task, 0, kind=kind, steps=steps, backbone="small")
        return measure_row(row, task, row=kind, group="", seed=0, seconds_to_fit=0).figures.triplet_precision

    assert precision(40) > precision(0) + 0.02


def test_fine_tuning_also_trains_the_deep_path(task: ImageTask) -> None:
    first, tuned = (
        RankingRow(replace(task, steps=2), 0, kind="image", steps=1, is_tuned=is_tuned, backbone="small")
        for is_tuned in (False, True)
    )
    before, after = (row._model.backbone.state_dict() for row in (first, tuned))
    assert any(not torch.equal(before[name], after[name]) for name in before)
    before, after = (row.describe(task.test.images) for row in (first, tuned))
    assert not torch.equal(before, after)


def test_seed_determines_the_weights(task: ImageTask) -> None:
    first, again, other = (
        RankingRow(task, seed, kind="deep_ranking", steps=2, backbone="small").describe(task.test.images)
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.testing.assert_close(first.norm(dim=1), torch.ones(24))


def test_rows_have_names_and_validated_kinds(task: ImageTask) -> None:
    assert [row.name for row in RANKING_ROWS] == ["single-scale ranking", "deep ranking"]
    with pytest.raises(InvalidArgumentError, match="kind must be 'deep_ranking' or 'image', got 'clip'"):
        RankingRow(task, 0, kind="clip")
