"""Quadlet and triplet precision: exact values match enumeration, sampled values estimate the exact ones."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import graded_relevance, quadlet_precision, triplet_precision

T = torch.tensor


def test_precision_of_one_query_matches_hand_computed_values() -> None:
    # p = 0.9 and 0.4, i = 0.6, n = 0.5 and 0.1: of 4 quadlets, (0.9, 0.6, 0.5) and (0.9, 0.6, 0.1) are in order.
    scores, relevance = T([[0.9, 0.4, 0.6, 0.5, 0.1]]), T([[2, 2, 1, 0, 0]])
    value = quadlet_precision(scores, relevance)
    assert (value, value.count, value.skipped) == (0.5, 4, 0)  # type: ignore[union-attr]
    # (p, n): 3 of 4 correct, counted once per intermediate; (i, n): 2 of 2 correct, counted once per positive.
    assert triplet_precision(scores, relevance) == pytest.approx((3 * 1 + 2 * 2) / 8)
    assert triplet_precision(scores, relevance, weighting="triplets") == pytest.approx(5 / 6)


def test_ties_are_not_in_order() -> None:
    scores, relevance = T([[0.5, 0.5, 0.5]]), T([[2, 1, 0]])
    assert quadlet_precision(scores, relevance) == 0.0
    assert triplet_precision(scores, relevance) == 0.0
    assert quadlet_precision(scores, relevance, samples=10) == 0.0


def pool(parts: list[list[bool]]) -> tuple[float, int]:
    together = [right for part in parts for right in part]
    return sum(together) / len(together), len(together)


@pytest.mark.parametrize("seed", range(4))
def test_exact_counts_equal_the_list_of_all_quadlets(seed: int) -> None:
    scores, relevance, valid = naive.random_case(seed, distinct=6)
    lists = naive.ranked_lists(scores, relevance, valid)
    columns = [([s for s, _ in ranked], naive.grades_of(ranked)) for ranked in lists]
    for twin, value in (
        (naive.quadlets, quadlet_precision(scores, relevance, valid=valid)),
        (naive.quadlet_triplets, triplet_precision(scores, relevance, valid=valid)),
        (naive.distinct_triplets, triplet_precision(scores, relevance, valid=valid, weighting="triplets")),
    ):
        expected, count = pool([twin(*column) for column in columns])
        assert (value, value.count) == (pytest.approx(expected), count)  # type: ignore[union-attr]
    single = quadlet_precision(scores, relevance, valid=valid, reduction="none")
    assert isinstance(single, torch.Tensor)
    for one, column in zip(single.tolist(), columns, strict=True):
        found = naive.quadlets(*column)
        assert one == pytest.approx(sum(found) / len(found) if found else math.nan, nan_ok=True)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=0, max_size=10),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_gallery_does_not_matter(pairs: list[tuple[int, int]], random: object) -> None:
    scores = T([[float(score) for score, _ in pairs]]).reshape(1, -1)
    relevance = T([[grade for _, grade in pairs]], dtype=torch.long).reshape(1, -1)
    found = naive.quadlets([score for score, _ in pairs], [grade for _, grade in pairs])
    value = quadlet_precision(scores, relevance)
    assert value == pytest.approx(sum(found) / len(found) if found else math.nan, nan_ok=True)
    order = list(range(len(pairs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    turned = quadlet_precision(scores[:, order], relevance[:, order])
    assert turned == pytest.approx(float(value), nan_ok=True)


def test_sample_is_seeded_and_estimates_the_exact_value() -> None:
    generator = torch.Generator().manual_seed(3)
    # Query 0 has 10 quadlets and query 1 has 576, so sampling queries uniformly would be far off.
    relevance = torch.zeros(2, 30, dtype=torch.long)
    relevance[0, :1], relevance[0, 1:2] = 2, 1
    relevance[1, :8], relevance[1, 8:20] = 2, 1
    scores = torch.rand(2, 30, generator=generator) + 0.2 * relevance
    valid = torch.ones(2, 30, dtype=torch.bool)
    valid[0, 12:] = False
    valid[1, 26:] = False
    exact = quadlet_precision(scores, relevance, valid=valid)
    exact_triplets = triplet_precision(scores, relevance, valid=valid)
    assert exact.count == 10 + 8 * 12 * 6  # type: ignore[union-attr]
    drawn = quadlet_precision(scores, relevance, valid=valid, samples=15_000, seed=1)
    triplets = triplet_precision(scores, relevance, valid=valid, samples=15_000, seed=1)
    # Five standard deviations of a fraction of 15,000 samples are at most 0.0205.
    assert abs(drawn - exact) < 0.0205
    assert abs(triplets - exact_triplets) < 0.0205
    assert (drawn.count, triplets.count) == (15_000, 30_000)  # type: ignore[union-attr]
    assert drawn == quadlet_precision(scores, relevance, valid=valid, samples=15_000, seed=1)
    again = torch.Generator().manual_seed(1)
    assert drawn == quadlet_precision(scores, relevance, valid=valid, samples=15_000, seed=again)
    assert drawn != quadlet_precision(scores, relevance, valid=valid, samples=15_000, seed=2)


def test_precision_without_quadlets_is_nan() -> None:
    scores = torch.rand(2, 4)
    for relevance in (torch.zeros(2, 4), torch.ones(2, 4), torch.full((2, 4), 2.0)):
        for samples in (None, 5):
            value = quadlet_precision(scores, relevance, samples=samples)
            assert math.isnan(float(value))
            assert (value.count, value.skipped) == (0, 2)  # type: ignore[union-attr]
    # Without intermediates there is no quadlet, but there are distinct triplets.
    relevance = T([[2, 2, 0, 0]])
    assert math.isnan(float(triplet_precision(T([[0.9, 0.1, 0.5, 0.2]]), relevance)))
    assert triplet_precision(T([[0.9, 0.1, 0.5, 0.2]]), relevance, weighting="triplets") == 0.5


def test_precision_from_labels() -> None:
    labels = T([[0, 0], [0, 0], [0, 1], [1, 0]])
    points = T([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4], [0.0, 1.0]])
    relevance = graded_relevance(labels, labels)
    assert relevance.tolist() == [[2, 2, 1, 0], [2, 2, 1, 0], [1, 1, 2, 0], [0, 0, 0, 2]]
    valid = ~torch.eye(4, dtype=torch.bool)
    value = quadlet_precision(-torch.cdist(points, points), relevance, valid=valid)
    assert (value, value.count, value.skipped) == (1.0, 2, 2)  # type: ignore[union-attr]


def test_labels_of_one_level_give_binary_relevance() -> None:
    assert graded_relevance(T([3, 4]), T([3, 3, 4])).tolist() == [[1, 1, 0], [0, 0, 1]]
    with pytest.raises(InvalidArgumentError, match=r"same L on both sides, got \[2\] and \[2, 2\]"):
        graded_relevance(T([3, 4]), T([[3, 3], [4, 4]]))


def test_incompatible_arguments_are_refused() -> None:
    scores, relevance = torch.rand(2, 4), torch.ones(2, 4)
    with pytest.raises(InvalidArgumentError, match="samples must be at least 1, got 0"):
        quadlet_precision(scores, relevance, samples=0)
    with pytest.raises(InvalidArgumentError, match="reduction must be 'mean' with samples"):
        quadlet_precision(scores, relevance, samples=3, reduction="none")
    with pytest.raises(InvalidArgumentError, match="weighting must be 'quadlets' with samples"):
        triplet_precision(scores, relevance, samples=3, weighting="triplets")
    with pytest.raises(InvalidArgumentError, match="weighting must be one of 'quadlets', 'triplets', got 'all'"):
        triplet_precision(scores, relevance, weighting="all")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="reduction must be one of 'mean', 'none', got 'sum'"):
        quadlet_precision(scores, relevance, reduction="sum")  # type: ignore[arg-type]
