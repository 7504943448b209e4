from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.metric.losses.score_cases import assert_gradcheck, assert_same_with_gradient, random_case
from tests.metric.losses.test_average_precision import naive_upper_step
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import HierarchicalAPLoss, hierarchical_ap_loss, sup_ap_loss

# (category, subcategory) of nine shuffled items in groups of unequal size; one is alone in its category.
CATEGORIES = torch.tensor([0, 1, 0, 1, 1, 0, 2, 0, 1])
SUBCATEGORIES = torch.tensor([0, 2, 1, 2, 3, 0, 4, 1, 2])


def graded_relevance() -> Tensor:
    """Relevance: 1 for the same subcategory, 1/2 for the same category, otherwise 0."""
    same_category = CATEGORIES.unsqueeze(1) == CATEGORIES.unsqueeze(0)
    same_subcategory = SUBCATEGORIES.unsqueeze(1) == SUBCATEGORIES.unsqueeze(0)
    return 0.5 * same_category.double() + 0.5 * same_subcategory.double()


def naive(scores: Tensor, relevance: Tensor, tau: float, rho: float, delta: float) -> Tensor:
    values = []
    for k in range(scores.shape[0]):
        row, grade = scores[k], relevance[k].tolist()
        others = [j for j in range(scores.shape[1]) if j != k]
        relevant = [i for i in others if grade[i] > 0]
        if not relevant:
            continue
        total = torch.zeros((), dtype=scores.dtype)
        for i in relevant:
            hierarchical, rank = grade[i], torch.ones((), dtype=scores.dtype)
            for j in others:
                above = float(row[j] >= row[i])
                if j == i:
                    continue
                hierarchical += min(grade[i], grade[j]) * above
                lower = grade[j] < grade[i]
                rank = rank + (naive_upper_step(row[j] - row[i], tau, rho, delta) if lower else above)
            total = total + hierarchical / rank
        values.append(1 - total / sum(grade[i] for i in relevant))
    return torch.stack(values).mean()


@pytest.mark.parametrize(("tau", "rho", "delta"), [(0.01, 100.0, 0.05), (0.1, 2.0, 0.3)])
def test_loss_equals_a_plain_loop(tau: float, rho: float, delta: float) -> None:
    scores, _ = random_case()
    relevance = graded_relevance()
    assert_same_with_gradient(
        lambda s: hierarchical_ap_loss(s, relevance, tau=tau, rho=rho, delta=delta),
        lambda s: naive(s, relevance, tau, rho, delta),
        scores,
    )


def test_loss_in_blocks_equals_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.metric.losses.score_pairs.BLOCK_PAIRS", 40)
    scores, _ = random_case(4)
    relevance = graded_relevance()
    assert_same_with_gradient(
        lambda s: HierarchicalAPLoss(0.1, 2.0, 0.3)(s, relevance),
        lambda s: naive(s, relevance, 0.1, 2.0, 0.3),
        scores,
    )


def test_gradient_equals_finite_differences() -> None:
    scores, _ = random_case(1)
    relevance = graded_relevance()
    assert_gradcheck(lambda s: hierarchical_ap_loss(s, relevance, tau=0.2, rho=3.0, delta=0.4), scores)


def test_binary_relevance_is_sup_ap() -> None:
    scores, relevance = random_case()
    torch.testing.assert_close(hierarchical_ap_loss(scores, relevance), sup_ap_loss(scores, relevance))


def test_only_ratios_of_the_relevance_matter() -> None:
    scores, _ = random_case()
    relevance = graded_relevance()
    torch.testing.assert_close(hierarchical_ap_loss(scores, relevance), hierarchical_ap_loss(scores, 2 * relevance))


def test_loss_matches_hand_computed_values() -> None:
    # Correct order with wide gaps: every rank is exact, and H-AP is 1.
    ordered = torch.tensor([[0.9, 0.5, 0.1]], dtype=torch.float64)
    relevance = torch.tensor([[1.0, 0.5, 0.0]])
    assert hierarchical_ap_loss(ordered, relevance).item() == pytest.approx(0.0, abs=1e-12)
    # Items of subcategory and category are swapped, with a gap of exactly delta, so the step is s = 1.4933: the first
    # has rank 1 + s and hierarchical rank 1 + 1/2, the second rank 1 and 1/2; the relevance sums to 3/2.
    step = 1 / (1 + torch.exp(torch.tensor(-5.0, dtype=torch.float64))).item() + 0.5
    swapped = torch.tensor([[0.5, 0.55, 0.1]], dtype=torch.float64)
    expected = 1 - (1.5 / (1 + step) + 0.5) / 1.5
    assert hierarchical_ap_loss(swapped, relevance).item() == pytest.approx(expected, rel=1e-6)


def test_swapped_levels_have_a_loss_and_a_gradient_that_separates_them() -> None:
    scores = torch.tensor([[0.5, 0.55, 0.1]], requires_grad=True)
    hierarchical_ap_loss(scores, torch.tensor([[1.0, 0.5, 0.0]])).backward()
    assert scores.grad is not None
    same, kind, other = scores.grad[0].tolist()
    assert same < 0 < kind
    assert other == pytest.approx(0.0, abs=1e-6)


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="delta must be above 0, got 0"):
        HierarchicalAPLoss(delta=0)
