"""The image comparison: sets, results of a known row, saved runs, and the page."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.support.labelled import picture
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin_research.images import (
    IMAGE_SETS,
    NETWORK_ROWS,
    ROWS,
    ImageRow,
    ImageTask,
    as_page,
    choose_rates,
    open_task,
    read_rankings,
    run_image_study,
)

PICTURES = next(chosen for chosen in IMAGE_SETS if chosen.name == "pictures")


class Red:
    """Describes an image by the red value at its center."""

    def __init__(self, task: ImageTask, seed: int) -> None:
        self.mean = float(task.train.images[:, 16, 16, 0].mean())

    def describe(self, images: NDArray[np.uint8]) -> Tensor:
        return torch.from_numpy(images[:, 16, 16, 0].astype(np.float32)) - self.mean

    def distances(self, queries: Tensor, gallery: Tensor) -> Tensor:
        return (queries[:, None] - gallery[None, :]).abs()


class Guess(Red):
    """The same, with a classifier that always predicts class 0."""

    def classify(self, described: Tensor) -> Tensor:
        return torch.zeros(len(described), dtype=torch.long)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Red values: dark 10 to 50, light 150 to 190; in the test set one light image is as dark as the dark ones."""
    root = tmp_path_factory.mktemp("pictures")
    for label, start in (("dark", 10), ("light", 150)):
        for number in range(5):
            picture(root / "train" / label / f"{number}.png", (start + 10 * number, 0, 0), (40, 40))
        for number in range(3):
            red = 24 if (label, number) == ("light", 0) else start + 12 * number
            picture(root / "test" / label / f"{number}.png", (red, 0, 0), (40, 40))
    return root


def test_results_equal_hand_computed_values(folder: Path, tmp_path: Path) -> None:
    task = open_task(PICTURES, folder, size=32)
    rows = [ImageRow("red", Red, is_seeded=False), ImageRow("guess", Guess)]
    told: list[str] = []
    report = run_image_study(rows, [task], tmp_path, seeds=(0, 1), on_progress=lambda *at: told.append(at[2]))
    assert report.sets == {"pictures": (2, 10, 6)}
    assert [(run.row, run.seed) for run in report.runs] == [("red", 0), ("guess", 0), ("guess", 1)]
    red, guess = report.runs[:2]
    # The dark image of the light class is classified as dark.
    assert (red.top_1, red.macro) == (pytest.approx(5 / 6), pytest.approx((1 + 2 / 3) / 2))
    assert (guess.top_1, guess.macro) == (0.5, 0.5)
    # Red values of the test set: dark 10, 22, 34; light 24, 162, 174. The nearest other image has the same class for
    # 10, 162 and 174; among the nearest four, every image has one of its class.
    assert red.recalls[0] == pytest.approx(3 / 6)
    assert red.recalls[1] == 1.0
    assert red.triplet_precision == guess.triplet_precision
    assert told[-1] == "done"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert run_image_study(rows, [task], tmp_path, seeds=(0, 1)).runs == report.runs
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before


def test_page_has_a_table_for_each_set(folder: Path, tmp_path: Path) -> None:
    report = run_image_study([ImageRow("red", Red)], [open_task(PICTURES, folder, size=32)], tmp_path, seeds=(0, 1))
    page = as_page(report, notes=["Made by hand."])
    assert "## pictures\n\n2 classes, 10 training and 6 test images." in page
    assert "| red | 83.3 ± 0.0 | 83.3 ± 0.0 |" in page
    assert page.endswith("Made by hand.\n")


def test_rankings_are_made_from_saved_runs(folder: Path, tmp_path: Path) -> None:
    task = open_task(PICTURES, folder, size=32)
    rows = [ImageRow("red", Red, is_seeded=False), ImageRow("guess", Guess)]
    run_image_study(rows, [task], tmp_path, seeds=(0, 1))
    # The red values of the test set: 10, 22, 34 and 24, 162, 174.
    first = {0: [1, 3, 2, 4, 5], 2: [3, 1, 0, 4, 5]}
    rankings = read_rankings(rows, task, tmp_path)
    assert list(rankings) == ["red", "guess"]
    assert {query: rankings["red"][query] for query in first} == first
    for path in (tmp_path / "runs").rglob("*.json"):
        stored = json.loads(path.read_text())
        del stored["nearest"]  # the format of earlier versions
        path.write_text(json.dumps(stored))
    assert read_rankings(rows, task, tmp_path) == {}
    assert len(run_image_study(rows, [task], tmp_path, seeds=(0, 1)).runs) == 3


def test_images_can_be_reduced_and_made_long_tailed(folder: Path) -> None:
    task = open_task(PICTURES, folder, size=32, per_class=2)
    assert (len(task.train), len(task.test), task.name) == (4, 4, "pictures")
    tail = open_task(PICTURES, folder, size=32, long_tail=0.4)
    assert (torch.bincount(tail.train.labels[:, 1]).tolist(), len(tail.test)) == ([5, 2], 6)
    assert tail.name == "pictures, long-tailed"
    for settings in ({"long_tail": 0.0}, {"per_class": -1}):
        with pytest.raises(InvalidArgumentError, match="long_tail must be above 0 and at most 1"):
            open_task(PICTURES, folder, **settings)  # type: ignore[arg-type]


def test_settings_are_tuned_without_the_test_images(folder: Path, tmp_path: Path) -> None:
    test = {item.path for item in open_task(PICTURES, folder, size=32).test.labelled.items}
    task = open_task(PICTURES, folder, size=32, validation=True)
    chosen_on = {item.path for item in task.test.labelled.items}
    trained_on = {item.path for item in task.train.labelled.items}
    # A fifth of the five training images of each class.
    assert (len(trained_on), len(chosen_on), task.name) == (8, 2, "pictures, validation")
    assert not test & (chosen_on | trained_on)
    assert not chosen_on & trained_on
    # An existing validation split is used unchanged.
    shutil.copytree(folder, tmp_path / "own")
    for label in ("dark", "light"):
        shutil.copytree(tmp_path / "own" / "test" / label, tmp_path / "own" / "val" / label)
    own = open_task(PICTURES, tmp_path / "own", size=32, validation=True)
    assert (len(own.train), len(own.test)) == (10, 6)
    assert {item.path.parent.parent.name for item in own.test.labelled.items} == {"val"}


class Learner(Guess):
    """Correct on dark images with a rate of 0.1, and on all with 0.3 and above."""

    def __init__(self, task: ImageTask, seed: int) -> None:
        super().__init__(task, seed)
        self.is_good = task.learning_rate >= 0.3

    def classify(self, described: Tensor) -> Tensor:
        return (described > 0).long() if self.is_good else torch.zeros(len(described), dtype=torch.long)


def test_rate_is_tuned_on_validation_images_and_ties_go_to_the_first(folder: Path, tmp_path: Path) -> None:
    row = ImageRow("learner", Learner)
    judged = {"pictures": open_task(PICTURES, folder, size=32, validation=True)}
    chosen = choose_rates([row], judged, tmp_path, rates=(0.1, 0.3, 0.9))
    assert chosen == {("pictures", "learner"): 0.3}
    task = open_task(PICTURES, folder, size=32, learning_rate=0.1)
    plain = run_image_study([row], [task], tmp_path, seeds=(0,)).runs[0]
    best = run_image_study([row], [task], tmp_path, seeds=(0,), rates=chosen).runs[0]
    # One light image of the test set is as dark as the dark ones.
    assert (plain.top_1, best.top_1) == (0.5, pytest.approx(5 / 6))
    assert list(read_rankings([row], task, tmp_path, rates=chosen)) == ["learner"]


class Layered(Guess):
    """Two layers: one distinguishes dark from light, the other only odd from even positions."""

    def layers(self, described: Tensor) -> dict[str, Tensor]:
        good = torch.stack([(described > 0).float(), (described <= 0).float()], dim=1)
        return {"embedding": good, "penultimate": torch.eye(2)[torch.arange(len(described)) % 2]}


def test_each_layer_of_two_heads_is_evaluated(folder: Path, tmp_path: Path) -> None:
    task = open_task(PICTURES, folder, size=32, learning_rate=0.5)
    report = run_image_study([ImageRow("layered", Layered)], [task], tmp_path, seeds=(0, 1))
    run = report.runs[0]
    assert run.learning_rate == 0.5
    # Clusters of 4 and 2, classes of 3 and 3: one light image is in the dark cluster.
    assert run.layers["embedding"][-1] == pytest.approx(0.4792, abs=1e-3)
    # Clusters of two dark and one light, and of one dark and two light images: one bit minus the entropy of a third.
    assert run.layers["penultimate"][-1] == pytest.approx(0.0817, abs=1e-3)
    again = run_image_study([ImageRow("layered", Layered)], [task], tmp_path, seeds=(0, 1))
    assert again.runs == report.runs
    page = as_page(replace(report, rates=(0.1, 0.5)))
    assert "out of 0.1, 0.5 with the highest top-1 on the validation split" in page
    line = next(line for line in page.splitlines() if line.startswith("| layered | 0.5 | "))
    assert "47.9 ± 0.0" in line
    assert "embedding NMI | penultimate R@1" in page


def test_single_class_is_rejected(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "train" / "dark", tmp_path / "dark")
    with pytest.raises(DatasetError, match=r"at least 2 classes with training images.*got \d+ training and \d+ test"):
        open_task(PICTURES, tmp_path, size=32)


def test_network_features_are_compared_by_cosine(folder: Path) -> None:
    task = open_task(PICTURES, folder, size=64)
    fitted: Any = NETWORK_ROWS[0].fit(task, 0)
    vectors = fitted.describe(task.train.images)
    distances = fitted.distances(vectors, vectors)
    assert distances.shape == (10, 10)
    torch.testing.assert_close(distances.diagonal(), torch.zeros(10), atol=1e-5, rtol=0)
    assert len({row.name for row in ROWS}) == len(ROWS)
