"""NDCG: hand-computed values, a naive implementation and all orders of ties."""

from __future__ import annotations

import math

import pytest
import torch

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import CountedMean, Gain, ndcg

T = torch.tensor


def test_ndcg_of_three_items_matches_a_hand_computed_value() -> None:
    # Ranked grades 1, 2, 0 have gains 1, 3, 0; the best order has 3, 1, 0; discounts are 1 and log2(3).
    scores, relevance = T([[0.9, 0.5, 0.1]]), T([[1, 2, 0]])
    log = math.log2(3)
    assert ndcg(scores, relevance) == pytest.approx((1 + 3 / log) / (3 + 1 / log))
    assert ndcg(scores, relevance, gain="linear") == pytest.approx((1 + 2 / log) / (2 + 1 / log))
    assert ndcg(scores, relevance, k=1) == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [None, 1, 4, 100])
def test_values_equal_those_of_the_naive_implementation(seed: int, gain: Gain, k: int | None) -> None:
    scores, relevance, valid = naive.random_case(seed, grades=4)
    expected = [
        naive.ndcg(naive.grades_of(ranked), k, linear=gain == "linear")
        for ranked in naive.ranked_lists(scores, relevance, valid)
    ]
    values = ndcg(scores, relevance, gain=gain, k=k, valid=valid, reduction="none")
    assert isinstance(values, torch.Tensor)
    assert values.tolist() == pytest.approx(expected, nan_ok=True)


def test_expected_ties_equal_the_mean_over_every_order() -> None:
    scores, relevance, valid = naive.random_case(5, queries=5, gallery=8, distinct=3)
    lists = naive.ranked_lists(scores, relevance, valid)
    expected = [naive.over_orders(ranked, lambda grades: naive.ndcg(grades, 3)) for ranked in lists]
    values = ndcg(scores, relevance, k=3, ties="expected", valid=valid, reduction="none")
    assert isinstance(values, torch.Tensor)
    assert values.tolist() == pytest.approx(expected, nan_ok=True)


def test_the_best_order_scores_one_and_queries_without_gain_are_skipped() -> None:
    relevance = T([[2, 1, 0], [0, 0, 0]])
    value = ndcg(T([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), relevance)
    assert isinstance(value, CountedMean)
    assert (value, value.count, value.skipped) == (1.0, 1, 1)
    assert math.isnan(float(ndcg(torch.zeros(0, 4), torch.zeros(0, 4))))


def test_values_equal_those_of_a_public_implementation() -> None:
    scores, relevance, valid = naive.fixture_scores()
    assert ndcg(scores, relevance, valid=valid) == pytest.approx(0.8062912821769714, abs=1e-6)


def test_the_order_of_queries_and_gallery_does_not_matter() -> None:
    torch.manual_seed(0)
    scores, relevance = torch.rand(6, 20), torch.randint(3, (6, 20))
    rows, columns = torch.randperm(6), torch.randperm(20)
    assert ndcg(scores[rows][:, columns], relevance[rows][:, columns]) == pytest.approx(ndcg(scores, relevance))


def test_unknown_choices_are_rejected() -> None:
    scores, relevance = torch.rand(2, 3), torch.ones(2, 3)
    with pytest.raises(InvalidArgumentError, match="gain must be one of 'exponential', 'linear', got 'log'"):
        ndcg(scores, relevance, gain="log")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="k must be at least 1, got 0"):
        ndcg(scores, relevance, k=0)
    with pytest.raises(InvalidArgumentError, match="reduction must be one of 'mean', 'none', got 'sum'"):
        ndcg(scores, relevance, reduction="sum")  # type: ignore[arg-type]
