"""Rows of the comparison: names, published figures, and batches by hand."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.experiments.retrieval.methods import METHODS, batch_sizes, method_named
from vidkin.training.objectives import available_objectives


def test_every_method_has_its_own_name_and_known_objectives() -> None:
    names = [method.name for method in METHODS]
    assert len(set(names)) == len(names)
    assert {term.name for method in METHODS for term in method.objectives} <= set(available_objectives())
    assert [method.name for method in METHODS if not method.objectives] == ["backbone", "untrained"]


def test_both_forms_of_radial_stand_beside_the_published_figure() -> None:
    assert method_named("radial").published == method_named("radial_detached").published == (60.70, 75.80)
    assert [term.name for term in method_named("radial_detached").objectives] == ["radial_detached"]


def test_unknown_methods_are_told_with_all_that_there_are() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"a method must be one of backbone, untr.*; got 'radial2'"
    ):
        method_named("radial2")


def labels_of(subcategories: list[int], items: int) -> torch.Tensor:
    """Categories with so many subcategories each, of so many items each."""
    rows, fine = [], 0
    for category, count in enumerate(subcategories):
        for _ in range(count):
            rows += [[category, fine]] * items
            fine += 1
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("subcategories", "items", "wanted"),
    [
        ([20, 25, 22], 12, (3, 10, 4)),  # 3 * 10 * 4 = 120 of 128
        ([30] * 8, 12, (8, 4, 4)),
        ([30] * 12, 12, (8, 4, 4)),  # no more than eight categories
        ([20, 20, 20], 3, (3, 14, 3)),  # three items each: 126 of 128
        ([2, 3, 5, 2], 20, (4, 2, 4)),  # no more subcategories than the smallest category has
    ],
)
def test_batches_hold_what_128_items_allow(
    subcategories: list[int], items: int, wanted: tuple[int, int, int]
) -> None:
    assert batch_sizes(labels_of(subcategories, items), 128) == wanted


@pytest.mark.parametrize(("subcategories", "items"), [([4], 4), ([4, 1], 4), ([4, 4], 1)])
def test_labels_without_quadlets_are_refused(subcategories: list[int], items: int) -> None:
    with pytest.raises(InvalidArgumentError, match="batches of quadlets need 2 categories, 2 subcategories"):
        batch_sizes(labels_of(subcategories, items), 128)
