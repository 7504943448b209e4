"""H-AP and ASI: hand-computed values, a naive and a public implementation."""

from __future__ import annotations

import math

import pytest
import torch

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import average_precision, average_set_intersection, hierarchical_average_precision

T = torch.tensor


def test_hierarchical_ap_matches_a_hand_computed_value() -> None:
    # Ranked grades 1, 0, 2 with rel = 1/2 and 1. H-rank of the last item = min(1, 1/2) + 1.
    scores, relevance = T([[0.9, 0.5, 0.1]]), T([[1, 0, 2]])
    expected = (0.5 / 1 + 1.5 / 3) / 1.5
    assert hierarchical_average_precision(scores, relevance) == pytest.approx(expected)
    assert hierarchical_average_precision(scores, relevance, weights="level") == pytest.approx(expected)


def test_set_intersection_matches_a_hand_computed_value() -> None:
    # Ranked 1, 0, 2, best order 2, 1, 0: SI(1) = 0, SI(2) = 1/2 (the 1), SI(3) = 1.
    scores, relevance = T([[0.9, 0.5, 0.1]]), T([[1, 0, 2]])
    assert average_set_intersection(scores, relevance) == pytest.approx((0 + 1 / 2) / 2)
    assert average_set_intersection(scores, relevance, depth="gallery") == pytest.approx((0 + 1 / 2 + 1) / 3)


def test_one_level_is_average_precision() -> None:
    scores, relevance, valid = naive.random_case(0, grades=2)
    values = hierarchical_average_precision(scores, relevance, valid=valid, reduction="none")
    assert isinstance(values, torch.Tensor)
    assert values.tolist() == pytest.approx(average_precision(scores, relevance, valid=valid).tolist(), nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("population", [True, False])
def test_hierarchical_ap_equals_the_naive_implementation(seed: int, alpha: float, population: bool) -> None:
    scores, relevance, valid = naive.random_case(seed, grades=4)
    lists = naive.ranked_lists(scores, relevance, valid)
    expected = [naive.hierarchical_ap(naive.grades_of(ranked), 3, alpha, population=population) for ranked in lists]
    values = hierarchical_average_precision(
        scores,
        relevance,
        levels=3,
        alpha=alpha,
        weights="population" if population else "level",
        valid=valid,
        reduction="none",
    )
    assert isinstance(values, torch.Tensor)
    assert values.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whole", [True, False])
def test_set_intersection_equals_the_naive_implementation(seed: int, whole: bool) -> None:
    scores, relevance, valid = naive.random_case(seed, grades=4)
    lists = naive.ranked_lists(scores, relevance, valid)
    expected = [naive.set_intersection(naive.grades_of(ranked), whole=whole) for ranked in lists]
    values = average_set_intersection(
        scores, relevance, depth="gallery" if whole else "positives", valid=valid, reduction="none"
    )
    assert isinstance(values, torch.Tensor)
    assert values.tolist() == pytest.approx(expected, nan_ok=True)


def test_the_best_order_scores_one_and_queries_without_positives_are_skipped() -> None:
    scores, relevance = T([[3.0, 2.0, 1.0]]).repeat(2, 1), T([[2, 1, 0], [0, 0, 0]])
    for measure in (hierarchical_average_precision, average_set_intersection):
        value = measure(scores, relevance)
        assert (value, value.count, value.skipped) == (1.0, 1, 1)  # type: ignore[union-attr]
        assert math.isnan(float(measure(torch.zeros(0, 3), torch.zeros(0, 3))))


def test_values_equal_those_of_a_public_implementation() -> None:
    scores, relevance, valid = naive.fixture_scores()
    assert average_set_intersection(scores, relevance, valid=valid) == pytest.approx(0.5688889026641846, abs=1e-6)
    # The reference counts the query as a member of its class; without it, the value matches the text of the paper.
    reference = hierarchical_average_precision(scores, relevance, include_query=True, valid=valid)
    assert reference == pytest.approx(0.6249011754989624, abs=1e-6)
    assert hierarchical_average_precision(scores, relevance, valid=valid) == pytest.approx(0.6349, abs=1e-4)


def test_unknown_choices_are_rejected() -> None:
    scores, relevance = torch.rand(2, 3), T([[0, 1, 2], [2, 1, 0]])
    with pytest.raises(InvalidArgumentError, match="weights must be one of 'population', 'level', got 'equal'"):
        hierarchical_average_precision(scores, relevance, weights="equal")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="depth must be one of 'positives', 'gallery', got 'R'"):
        average_set_intersection(scores, relevance, depth="R")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="levels must be at least the highest relevance, 2, got 1"):
        hierarchical_average_precision(scores, relevance, levels=1)
    with pytest.raises(InvalidArgumentError, match="relevance must be integer levels"):
        average_set_intersection(scores, relevance / 3)
