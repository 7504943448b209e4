"""Metrics of a row in the image comparison, compared with plain loops over its distances."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import pytest
import torch
from torch import Tensor

from vidkin_research.images.figures import RECALLS, measure_row


@dataclass
class Part:
    """The part of a split that is evaluated: images whose first pixel is a position on a line, and classes."""

    values: list[int]
    classes: list[int]

    @property
    def images(self) -> Tensor:
        images = torch.zeros(len(self.values), 4, 4, 3, dtype=torch.uint8)
        images[:, 0, 0, 0] = torch.tensor(self.values)
        return images

    @property
    def labels(self) -> Tensor:
        # Two irrelevant categories: only the class counts.
        return torch.tensor([[place % 2, label] for place, label in enumerate(self.classes)])


@dataclass
class Task:
    train: Part
    test: Part
    name: str = "made"


class Line:
    """Compares images by the distance of their positions."""

    def describe(self, images: Tensor) -> Tensor:
        return torch.as_tensor(images)[:, 0, 0, 0].double()

    def distances(self, first: Tensor, second: Tensor) -> Tensor:
        return (first[:, None] - second[None, :]).abs()


class Classifier(Line):
    """Predicts class 1 from position 50 on."""

    def classify(self, described: Tensor) -> Tensor:
        return (described >= 50).long()


def task(values: list[int], classes: list[int]) -> Task:
    return Task(Part([0, 40, 100], [0, 1, 1]), Part(values, classes))


def measure(fitted: Line, given: Task) -> dict[str, object]:
    measured = measure_row(fitted, given, row="line", group="made", seed=3, seconds_to_fit=2.0)  # type: ignore[arg-type]
    figures = measured.figures
    return {"top_1": figures.top_1, "macro": figures.macro, "precision": figures.triplet_precision} | {
        f"recall {k}": recall for k, recall in zip(RECALLS, figures.recalls, strict=True)
    }


def test_class_is_taken_from_the_nearest_training_image() -> None:
    """The nearest images to 10, 15 and 90 are 0, 0 and 100, of classes 0, 0 and 1."""
    found = measure(Line(), task([10, 15, 90, 95], [0, 1, 1, 1]))
    assert found["top_1"] == 0.75
    # One of one for class 0, two of three for class 1.
    assert found["macro"] == pytest.approx((1 + 2 / 3) / 2)


def test_classifier_row_uses_its_own_predictions() -> None:
    found = measure(Classifier(), task([10, 45, 60, 90], [0, 0, 0, 1]))
    assert found["top_1"] == 0.75
    # The nearest training image would give class 1 for 45 and 60.
    assert measure(Line(), task([10, 45, 60, 90], [0, 0, 0, 1]))["top_1"] == 0.5


@pytest.mark.parametrize("seed", range(6))
def test_retrieval_equals_plain_loops(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randperm(200, generator=generator)[:9].tolist()
    classes = torch.randint(0, 3, (9,), generator=generator).tolist()
    classes[:4] = [0, 0, 1, 1]
    found = measure(Line(), task(values, classes))
    triplets = [
        abs(values[q] - values[p]) < abs(values[q] - values[n])
        for q, p, n in permutations(range(9), 3)
        if classes[q] == classes[p] != classes[n]
    ]
    assert found["precision"] == pytest.approx(sum(triplets) / len(triplets))
    for k in RECALLS:
        hits = []
        for query in range(9):
            others = sorted((abs(values[query] - values[o]), o) for o in range(9) if o != query)
            if any(classes[o] == classes[query] for _, o in others):
                hits.append(any(classes[o] == classes[query] for _, o in others[:k]))
        assert found[f"recall {k}"] == pytest.approx(sum(hits) / len(hits)), k


def test_times_and_names_are_preserved() -> None:
    given = task([10, 90], [0, 1])
    measured = measure_row(Line(), given, row="line", group="made", seed=3, seconds_to_fit=2.0)  # type: ignore[arg-type]
    figures = measured.figures
    assert measured.nearest == ((0, (1,)), (1, (0,)))
    assert (figures.set, figures.row, figures.group, figures.seed) == ("made", "line", "made", 3)
    assert figures.seconds_to_fit == 2.0
    assert figures.milliseconds >= 0


def test_rankings_omit_the_query() -> None:
    given = task([0, 10, 21, 33, 46, 60, 75, 91, 108, 126, 145], [0] * 11)
    measured = measure_row(Line(), given, row="line", group="made", seed=0, seconds_to_fit=0)  # type: ignore[arg-type]
    # Four of eleven queries, from the first to the last, with the eight nearest of the other ten.
    assert [query for query, _ in measured.nearest] == [0, 3, 7, 10]
    assert measured.nearest[0][1] == (1, 2, 3, 4, 5, 6, 7, 8)
    assert measured.nearest[2][1] == (6, 8, 5, 9, 4, 10, 3, 2)
