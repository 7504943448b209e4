"""Classical features in the image comparison, fitted to training images only (OASIS to triplets from labels)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from research.tests.features.pictures import photographs

from vidkin_research.features import available_features
from vidkin_research.images import CLASSICAL_ROWS, IMAGE_SETS, ImageTask, open_task
from vidkin_research.images.classical_rows import draw_label_triplets

PICTURES = next(chosen for chosen in IMAGE_SETS if chosen.name == "pictures")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> ImageTask:
    """Crops of three photographs, four for training and two for evaluation."""
    root = tmp_path_factory.mktemp("scenes")
    for number, picture in enumerate(photographs(18)):
        part = "train" if number % 6 < 4 else "test"
        folder = root / part / f"scene{number // 6}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number}.png")
    return open_task(PICTURES, root, size=64)


def test_each_feature_has_a_row() -> None:
    assert len(CLASSICAL_ROWS) == len(available_features())
    assert {row.group for row in CLASSICAL_ROWS} == {"classical"}
    assert [row.name for row in CLASSICAL_ROWS if not row.is_seeded] == [
        "classical: wavelet",
        "classical: color",
        "classical: HOG",
    ]


@pytest.mark.parametrize("name", ["color", "HOG", "SPMK textons", "OASIS"])
@pytest.mark.large
def test_row_recognizes_the_scene(task: ImageTask, name: str) -> None:
    row = next(row for row in CLASSICAL_ROWS if row.name == f"classical: {name}")
    fitted = row.fit(task, 0)
    test, train = fitted.describe(task.test.images), fitted.describe(task.train.images)
    distances = fitted.distances(test, train)
    assert distances.shape == (6, 12)
    same = task.test.labels[:, None, 1] == task.train.labels[None, :, 1]
    assert float(distances[same].mean()) < float(distances[~same].mean())


def test_triplets_have_the_expected_labels() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    triplets = np.array(draw_label_triplets(labels, 500, seed=1))
    classes = labels.numpy()[triplets]
    assert (classes[:, 0] == classes[:, 1]).all()
    assert (classes[:, 0] != classes[:, 2]).all()
    assert (triplets[:, 0] != triplets[:, 1]).all()
    # Item 5 is the only one of its class.
    assert set(triplets[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert draw_label_triplets(labels, 500, seed=1) == [tuple(row) for row in triplets.tolist()]
    assert draw_label_triplets(torch.tensor([0, 1]), 5) == []
