"""Recall@K, R-precision and mAP@R."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import Ties, map_at_r, r_precision, recall_at_k

T = torch.tensor
SCORES = T([[0.9, 0.8, 0.7, 0.6, 0.5]])


def test_measures_of_one_list_match_hand_computed_values() -> None:
    relevance = T([[0, 1, 0, 1, 1]])
    assert recall_at_k(SCORES, relevance, 1) == 0.0
    assert recall_at_k(SCORES, relevance, 2) == 1.0
    assert recall_at_k(SCORES, relevance, 2, form="share") == pytest.approx(1 / 3)
    assert recall_at_k(SCORES, relevance, 99, form="share") == 1.0
    assert r_precision(SCORES, relevance) == pytest.approx(1 / 3)
    assert map_at_r(SCORES, relevance) == pytest.approx((1 / 2) / 3)


def per_query(values: object) -> list[float]:
    assert isinstance(values, torch.Tensor)
    return [float(value) for value in values.tolist()]


Measure = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Ties], object]
CASES: dict[str, tuple[Measure, Callable[[list[int]], float]]] = {
    "hit@1": (
        lambda s, r, v, t: recall_at_k(s, r, 1, valid=v, ties=t, level=2, reduction="none"),
        lambda grades: naive.recall_hit(grades, 1, 2),
    ),
    "hit@3": (
        lambda s, r, v, t: recall_at_k(s, r, 3, valid=v, ties=t, level=2, reduction="none"),
        lambda grades: naive.recall_hit(grades, 3, 2),
    ),
    "hit@99": (
        lambda s, r, v, t: recall_at_k(s, r, 99, valid=v, ties=t, reduction="none"),
        lambda grades: naive.recall_hit(grades, 99),
    ),
    "share@3": (
        lambda s, r, v, t: recall_at_k(s, r, 3, form="share", valid=v, ties=t, reduction="none"),
        lambda grades: naive.recall_share(grades, 3),
    ),
    "r_precision": (
        lambda s, r, v, t: r_precision(s, r, valid=v, ties=t, reduction="none"),
        naive.r_precision,
    ),
    "map_at_r": (
        lambda s, r, v, t: map_at_r(s, r, valid=v, ties=t, reduction="none"),
        naive.map_at_r,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_values_equal_those_of_the_naive_implementation_under_both_tie_rules(name: str, seed: int) -> None:
    measure, twin = CASES[name]
    scores, relevance, valid = naive.random_case(seed, queries=6, gallery=8, distinct=3)
    lists = naive.ranked_lists(scores, relevance, valid)
    stable = [twin(naive.grades_of(ranked)) for ranked in lists]
    assert per_query(measure(scores, relevance, valid, "stable")) == pytest.approx(stable, nan_ok=True)
    expected = [naive.over_orders(ranked, twin) for ranked in lists]
    assert per_query(measure(scores, relevance, valid, "expected")) == pytest.approx(expected, nan_ok=True)


def test_queries_without_positives_are_skipped() -> None:
    scores, relevance = SCORES.repeat(2, 1), T([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
    for value in (
        recall_at_k(scores, relevance, 1),
        r_precision(scores, relevance),
        map_at_r(scores, relevance),
    ):
        assert (value, value.count, value.skipped) == (1.0, 1, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("ties", ["stable", "expected"])
def test_recall_in_an_empty_gallery_is_nan(ties: Ties) -> None:
    empty = torch.zeros(2, 0)
    assert math.isnan(float(recall_at_k(empty, empty, 1, ties=ties)))
    assert math.isnan(float(r_precision(empty, empty, ties=ties)))
    assert math.isnan(float(map_at_r(empty, empty, ties=ties)))


def test_values_equal_those_of_a_public_implementation() -> None:
    scores, relevance, valid = naive.fixture_scores()
    assert map_at_r(scores, relevance, level=2, valid=valid) == pytest.approx(0.5833333134651184, abs=1e-6)
    assert recall_at_k(scores, relevance, 1, level=2, valid=valid) == 0.75


def test_unknown_choices_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="k must be at least 1, got 0"):
        recall_at_k(SCORES, SCORES, 0)
    with pytest.raises(InvalidArgumentError, match="form must be one of 'hit', 'share', got 'all'"):
        recall_at_k(SCORES, SCORES, 1, form="all")  # type: ignore[arg-type]
