"""Index streams: the items sampled in each step."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import torch

from vidkin.datasets import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.training import Draw, index_stream
from vidkin.training.draws import balanced_sizes, check_drawable

DRAWS: tuple[Draw, ...] = get_args(Draw)
# Two categories with three subcategories of 3 items; subcategory numbers repeat between categories.
LABELS = torch.tensor([[c, s] for c in range(2) for s in range(3) for _ in range(3)])


def same(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return (LABELS[first] == LABELS[second]).all(dim=1)


@pytest.mark.parametrize("draw", DRAWS)
def test_stream_does_not_depend_on_where_it_starts(draw: Draw) -> None:
    whole = list(index_stream(draw, LABELS, steps=9, quadlets=5, seed=4))
    late = list(index_stream(draw, LABELS, steps=9, start=6, quadlets=5, seed=4))
    assert len(whole) == 9
    assert all(torch.equal(a, b) for a, b in zip(whole[6:], late, strict=True))
    other = next(index_stream(draw, LABELS, steps=9, quadlets=5, seed=5))
    assert not torch.equal(whole[0], other)


def test_quadlets_are_ordered_by_member() -> None:
    q, p, i, n = next(index_stream("quadlets", LABELS, steps=1, quadlets=50)).chunk(4)
    assert bool(same(q, p).all())
    assert bool((q != p).all())
    assert bool((LABELS[q, 0] == LABELS[i, 0]).all())
    assert not bool(same(q, i).any())
    assert bool((LABELS[q, 0] != LABELS[n, 0]).all())


def test_quadruplets_a_sample_the_second_negative_from_a_third_class() -> None:
    a, p, n1, n2 = next(index_stream("quadruplets_a", LABELS, steps=1, quadlets=200)).chunk(4)
    assert bool(same(a, p).all())
    for first, second in ((a, n1), (a, n2), (n1, n2)):
        assert not bool(same(first, second).any())
    inside = (LABELS[a, 0] == LABELS[n1, 0]).float().mean()
    assert 0.35 < float(inside) < 0.65


def test_quadruplets_b_sample_both_negatives_from_other_categories() -> None:
    a, _, n1, n2 = next(index_stream("quadruplets_b", LABELS, steps=1, quadlets=100)).chunk(4)
    assert bool((LABELS[a, 0] != LABELS[n1, 0]).all())
    assert bool((LABELS[a, 0] != LABELS[n2, 0]).all())
    assert not bool(same(n1, n2).any())


def test_quadruplets_b_need_two_subcategories_in_other_categories() -> None:
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2]])
    with pytest.raises(InvalidArgumentError, match="negatives from two subcategories other than the query's"):
        next(index_stream("quadruplets_b", labels, steps=1, quadlets=8))


def test_batches_skip_items_without_a_positive_or_an_intermediate() -> None:
    # Item 4 has no positive, and category 2 has only one subcategory.
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [0, 2], [1, 3], [1, 3], [1, 4], [1, 4], [2, 5], [2, 5]])
    for batch in index_stream("batches", labels, steps=20, quadlets=4):
        assert sorted(batch.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]


def test_batch_sizes_are_limited_by_the_smallest_class() -> None:
    # With 2 categories and 3 items each, 12 items have room for 2 subcategories, 18 items for 3.
    assert balanced_sizes(LABELS, 12) == (2, 2, 3)
    assert balanced_sizes(LABELS, 18) == (2, 3, 3)
    assert balanced_sizes(LABELS, 1000) == (2, 3, 3)
    assert next(index_stream("batches", LABELS, steps=1, sizes=(2, 2, 2))).shape == (8,)


def test_batches_need_two_categories() -> None:
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2]])
    with pytest.raises(InvalidArgumentError, match=r"batches require at least 2 categories .*, got 1 categories"):
        next(index_stream("batches", labels, steps=1))


def test_uniform_samples_any_items() -> None:
    assert len(next(index_stream("uniform", LABELS, steps=1, sizes=(11, 3)))) == 33
    drawn = next(index_stream("uniform", LABELS, steps=1, quadlets=100))
    assert drawn.shape == (400,)
    assert set(drawn.tolist()) == set(range(18))


def make_labelled(*labels: str) -> LabelledSet:
    pairs = [label.split("/") for label in labels]
    items = (
        LabelledItem(path=Path(f"{number}.png"), category=pair[0], subcategory=pair[1], group=str(number))
        for number, pair in enumerate(pairs)
    )
    return LabelledSet("some", "image", tuple(items))


def test_missing_labels_are_reported_by_name() -> None:
    check_drawable(make_labelled("é/x", "é/x", "é/y", "ü/z"), ["quadlets", "batches"])
    with pytest.raises(InvalidArgumentError, match="training items must have at least 2 categories, got 'é' for all 2"):
        check_drawable(make_labelled("é/x", "é/y"), ["uniform", "quadlets"])
    one_each = make_labelled("é/x", "ü/y", "ü/z")
    with pytest.raises(
        InvalidArgumentError,
        match=r"'é' has 1 subcategory with at most 1 .* 'ü' has 2 subcategories with at most 1 .*data.excerpts",
    ):
        check_drawable(one_each, ["quadlets"])
    # Items 0 and 1 share a subcategory and category 1 has two subcategories, but no category has both.
    with pytest.raises(InvalidArgumentError, match="none of the 4 training items has both a second item"):
        check_drawable(make_labelled("é/x", "é/x", "ü/y", "ü/z"), ["quadruplets_a"])
    check_drawable(one_each, ["uniform"])


def labels_of(subcategories: list[int], items: int) -> torch.Tensor:
    """Labels of categories with these numbers of subcategories, with the same number of items in each."""
    rows, fine = [], 0
    for category, count in enumerate(subcategories):
        for _ in range(count):
            rows += [[category, fine]] * items
            fine += 1
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("subcategories", "items", "expected"),
    [
        ([20, 25, 22], 12, (3, 10, 4)),  # 3 * 10 * 4 = 120 of 128
        ([30] * 8, 12, (8, 4, 4)),
        ([30] * 12, 12, (8, 4, 4)),  # at most eight categories
        ([20, 20, 20], 3, (3, 14, 3)),  # three items each: 126 of 128
        ([2, 3, 5, 2], 20, (4, 2, 4)),  # at most as many subcategories as the smallest category has
    ],
)
def test_balanced_sizes_for_128_items(subcategories: list[int], items: int, expected: tuple[int, int, int]) -> None:
    assert balanced_sizes(labels_of(subcategories, items), 128, repeat=True) == expected


@pytest.mark.parametrize(("subcategories", "items"), [([4], 4), ([4, 1], 4), ([4, 4], 1)])
def test_labels_without_quadlets_are_rejected(subcategories: list[int], items: int) -> None:
    with pytest.raises(
        InvalidArgumentError, match="batches require at least 2 categories with 2 subcategories of 2 items each"
    ):
        balanced_sizes(labels_of(subcategories, items), 128, repeat=True)


def test_items_of_small_subcategories_repeat_only_with_repeat() -> None:
    labels = torch.cat([labels_of([3, 3], 5), torch.tensor([[1, 6], [1, 6]])])
    assert balanced_sizes(labels, 24) == (2, 3, 2)
    assert balanced_sizes(labels, 24, repeat=True) == (2, 3, 4)


def test_error_suggests_a_batch_if_there_are_too_few_classes() -> None:
    labels = torch.tensor([[0, number % 3] for number in range(12)])
    with pytest.raises(
        InvalidArgumentError,
        match=r"at most 3 classes, the number of classes with 2 items, got 8; for a batch of the same size use --set "
        r"schedule\.batch='\[3, 10\]'",
    ):
        index_stream("batches", labels, steps=1, quadlets=8, sizes=(8, 4), seed=0)
    batch = next(index_stream("batches", labels, steps=1, quadlets=8, sizes=(3, 10), seed=0))
    assert len(batch) == 30
