"""Blocks of equal labels and samples from their ranges match hand-computed counts."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.blocks import LabelBlocks

# Items 0 to 6; category 1 has subcategories 5 (items 1, 4) and 6 (item 3), category 0 has 2 (0, 2, 5) and 3 (6).
LABELS = torch.tensor([[0, 2], [1, 5], [0, 2], [1, 6], [1, 5], [0, 2], [0, 3]])


def test_items_are_sorted_and_blocks_are_ranges() -> None:
    blocks = LabelBlocks.of(LABELS)
    assert blocks.order.tolist() == [0, 2, 5, 6, 1, 4, 3]
    assert blocks.category.tolist() == [[0, 4]] * 4 + [[4, 7]] * 3
    assert blocks.subcategory.tolist() == [[0, 3]] * 3 + [[3, 4]] + [[4, 6]] * 2 + [[6, 7]]


def count_items(positions: torch.Tensor) -> Counter[int]:
    return Counter(LabelBlocks.of(LABELS).order[positions].tolist())


def test_members_of_a_quadlet_come_from_their_ranges() -> None:
    blocks, generator = LabelBlocks.of(LABELS), torch.Generator().manual_seed(0)
    query = torch.full((3000,), 1)  # item 2
    positives = count_items(blocks.sample_positives(query, generator))
    assert set(positives) == {0, 5}
    assert all(abs(count - 1500) < 150 for count in positives.values())
    assert set(count_items(blocks.sample_intermediates(query, generator))) == {6}
    outside = count_items(blocks.sample_outside(query, generator, blocks.category))
    assert set(outside) == {1, 3, 4}
    assert all(abs(count - 1000) < 120 for count in outside.values())
    assert set(count_items(blocks.sample_outside(query, generator, blocks.subcategory))) == {1, 3, 4, 6}


def test_eligible_queries_are_sampled_uniformly_or_by_their_number_of_tuples() -> None:
    blocks, generator = LabelBlocks.of(LABELS), torch.Generator().manual_seed(0)
    by_query = count_items(blocks.sample_queries(5000, generator, "queries", "skip", quadlets=True))
    assert set(by_query) == {0, 2, 5, 1, 4}  # items 3 and 6 are alone in their subcategories
    assert all(abs(count - 1000) < 120 for count in by_query.values())
    # Item 0 has 2 positives, 3 negatives and 1 intermediate, so 6 quadlets; item 1 has 1, 4 and 1, so 4.
    by_tuple = count_items(blocks.sample_queries(5200, generator, "tuples", "skip", quadlets=True))
    expected = {0: 1200, 2: 1200, 5: 1200, 1: 800, 4: 800}
    assert all(abs(by_tuple[item] - count) < 130 for item, count in expected.items())


@pytest.mark.parametrize(
    ("labels", "quadlets", "message"),
    [
        ([], True, "there are no items to sample quadlets from"),
        ([[0, 1], [0, 1]], True, r"all items have the same category \(0\): quadlets need negatives"),
        ([[0, 1], [0, 1]], False, r"all items have the same class \(1\): triplets need negatives"),
        (
            [[0, 1], [0, 1], [1, 2], [1, 2]],
            True,
            "category 0 has one subcategory, so its items have no interm",
        ),
        (
            [[0, 1], [0, 1], [0, 2], [1, 3], [1, 3], [1, 4], [1, 4]],
            True,
            "subcategory 2 of category 0 has one item, which has no positive: add items, or pass ineligible=",
        ),
        ([[0, 1], [0, 1], [0, 2]], False, "class 2 has one item, which has no positive"),
    ],
)
def test_error_explains_why_labels_do_not_allow_every_query(
    labels: list[list[int]], quadlets: bool, message: str
) -> None:
    blocks = LabelBlocks.of(torch.tensor(labels, dtype=torch.int64).reshape(-1, 2))
    with pytest.raises(InvalidArgumentError, match=message):
        blocks.sample_queries(1, torch.Generator(), "queries", "raise", quadlets=quadlets)
