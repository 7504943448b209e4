from __future__ import annotations

import pytest
import torch

from tests.metric.losses.score_cases import (
    anchor_relevance,
    anchor_value_and_gradient,
    lists,
    random_case,
)
from tests.metric.losses.test_average_precision import exact_risk
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import BlackBoxAPLoss, blackbox_ap_loss
from vidkin.metric.losses.average_precision import descending_rank


def ranks_of(row: dict[int, float]) -> dict[int, int]:
    order = sorted(row, key=lambda j: (-row[j], j))
    return {j: rank for rank, j in enumerate(order, start=1)}


@pytest.mark.parametrize("seed", range(4))
def test_value_is_the_exact_risk(seed: int) -> None:
    scores, relevance = random_case(seed)
    value = blackbox_ap_loss(scores, relevance).item()
    assert value == pytest.approx(exact_risk(scores, relevance), abs=1e-12)


@pytest.mark.parametrize("lambda_", [4.0, 15.0, 60.0])
def test_gradient_equals_a_plain_loop(lambda_: float) -> None:
    scores, relevance = random_case()
    scores.requires_grad_()
    blackbox_ap_loss(scores, relevance, lambda_=lambda_).backward()
    queries = [entry for entry in lists(relevance) if entry[1]]
    expected = torch.zeros(9, 9, dtype=torch.float64)
    for k, positives, negatives in queries:
        row = {j: scores[k, j].item() for j in positives + negatives}
        length, ranks = len(row), ranks_of(row)
        among = ranks_of({j: row[j] for j in positives})
        moved = dict(row)
        for i in positives:
            # d loss / d (rank / length) of one positive of one of the queries.
            slope = (among[i] / length) / (ranks[i] / length) ** 2 / len(positives) / len(queries)
            moved[i] += lambda_ * slope
        after = ranks_of(moved)
        for j in row:
            expected[k, j] = -(ranks[j] - after[j]) / length / lambda_
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, expected)
    assert expected.abs().sum() > 0


@pytest.mark.parametrize(("lambda_", "gradient"), [(0.5, 0.49515995383262634), (4.0, 0.14080780744552612)])
def test_loss_equals_the_public_code(lambda_: float, gradient: float) -> None:
    loss = BlackBoxAPLoss(lambda_, include_self=True)
    found = anchor_value_and_gradient(lambda x: loss(x @ x.T, anchor_relevance()))
    # The public code divides by |P| + 1e-5.
    assert found == pytest.approx((0.18914413452148438, gradient), rel=2e-5)


def test_gradient_descent_lowers_the_risk() -> None:
    scores, relevance = random_case()
    before = blackbox_ap_loss(scores, relevance).item()
    for _ in range(60):
        scores.requires_grad_()
        loss = blackbox_ap_loss(scores, relevance, lambda_=20.0, margin=0.1)
        scores = (scores - torch.autograd.grad(loss, scores)[0]).detach()
    assert blackbox_ap_loss(scores, relevance).item() < 0.5 * before


def test_margin_requires_a_gap() -> None:
    # The order is correct, but the gap is smaller than the margin, so it counts as wrong.
    scores = torch.tensor([[0.50, 0.45]], requires_grad=True)
    relevance = torch.tensor([[1, 0]])
    assert blackbox_ap_loss(scores, relevance).item() == 0.0
    value = blackbox_ap_loss(scores, relevance, margin=0.1)
    assert value.item() == pytest.approx(0.5)
    (gradient,) = torch.autograd.grad(value, scores)
    # A step of lambda swaps the two items: (1 - 2) / 2 / 4 for the positive.
    torch.testing.assert_close(gradient, torch.tensor([[-0.125, 0.125]]))


def test_ties_go_to_the_first_column() -> None:
    values = torch.tensor([[0.5, 0.7, 0.5, 0.7]])
    assert descending_rank(values).tolist() == [[3.0, 1.0, 4.0, 2.0]]


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="lambda_ must be above 0, got 0"):
        BlackBoxAPLoss(0)
    with pytest.raises(InvalidArgumentError, match="margin must be at least 0, got -1"):
        BlackBoxAPLoss(margin=-1)
