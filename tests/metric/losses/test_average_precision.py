from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import SmoothAPLoss as PackageSmoothAPLoss
from torch import Tensor
from torch.nn.functional import normalize

from tests.metric.losses.score_cases import (
    anchor_embeddings,
    anchor_relevance,
    anchor_value_and_gradient,
    assert_gradcheck,
    assert_same_with_gradient,
    lists,
    random_case,
    same_label,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import SmoothAPLoss, SupAPLoss, smooth_ap_loss, sup_ap_loss
from vidkin.metric.losses.average_precision import upper_step


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def naive_smooth(scores: Tensor, relevance: Tensor, tau: float, include_self: bool = False) -> Tensor:
    values = []
    for k, positives, negatives in lists(relevance, include_self=include_self):
        row, precisions = scores[k], []
        for i in positives:
            among = 1 + sum(sigmoid((row[j] - row[i]) / tau) for j in positives if j != i)
            overall = among + sum(sigmoid((row[j] - row[i]) / tau) for j in negatives)
            precisions.append(among / overall)
        if positives:
            values.append(1 - torch.stack(precisions).mean())
    return torch.stack(values).mean()


def naive_upper_step(x: Tensor, tau: float, rho: float, delta: float) -> Tensor:
    if x <= 0:
        return sigmoid(x / tau)
    if x <= delta:
        return sigmoid(x / tau) + 0.5
    return rho * (x - delta) + 1 / (1 + math.exp(-delta / tau)) + 0.5


def naive_sup(scores: Tensor, relevance: Tensor, tau: float, rho: float, delta: float) -> Tensor:
    values = []
    for k, positives, negatives in lists(relevance):
        row, risks = scores[k], []
        for i in positives:
            among = 1 + sum(float(row[j] >= row[i]) for j in positives if j != i)
            below = sum(naive_upper_step(row[j] - row[i], tau, rho, delta) for j in negatives)
            risks.append(below / (among + below))
        if positives:
            values.append(torch.stack(risks).mean())
    return torch.stack(values).mean()


def exact_risk(scores: Tensor, relevance: Tensor) -> float:
    values = []
    for k, positives, negatives in lists(relevance):
        row, precisions = scores[k].tolist(), []
        for i in positives:
            among = 1 + sum(row[j] > row[i] for j in positives)
            precisions.append(among / (among + sum(row[j] > row[i] for j in negatives)))
        if positives:
            values.append(1 - sum(precisions) / len(precisions))
    return sum(values) / len(values)


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("include_self", [False, True])
def test_smooth_ap_equals_a_plain_loop(tau: float, include_self: bool) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: smooth_ap_loss(s, relevance, tau=tau, include_self=include_self),
        lambda s: naive_smooth(s, relevance, tau, include_self),
        scores,
    )


def test_smooth_ap_approaches_the_exact_risk() -> None:
    scores, relevance = random_case()
    assert smooth_ap_loss(scores, relevance, tau=1e-6).item() == pytest.approx(exact_risk(scores, relevance))


def test_smooth_ap_matches_a_hand_computed_value() -> None:
    # The positive ties with the only negative: rank 1 among positives, 1.5 overall.
    scores = torch.tensor([[0.3, 0.3]])
    assert smooth_ap_loss(scores, torch.tensor([[1, 0]])).item() == pytest.approx(1 / 3)


def test_smooth_ap_gradient_equals_finite_differences() -> None:
    scores, relevance = random_case(1)
    assert_gradcheck(lambda s: smooth_ap_loss(s, relevance, tau=0.2), scores)


@pytest.mark.parametrize(
    ("tau", "value", "gradient"),
    [
        (0.01, 0.18830817937850952, 0.10401179641485214),
        (0.1, 0.23922741413116455, 0.27066704630851746),
    ],
)
def test_smooth_ap_equals_the_official_code(tau: float, value: float, gradient: float) -> None:
    loss = SmoothAPLoss(tau, include_self=True)
    found = anchor_value_and_gradient(lambda x: loss(x @ x.T, anchor_relevance()))
    assert found == pytest.approx((value, gradient), rel=1e-4)


def test_smooth_ap_equals_the_package_for_layouts_it_groups_correctly() -> None:
    # The package groups items correctly only if they are in order, with as many classes as members per class.
    embeddings = normalize(torch.randn(16, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.arange(16) // 4
    expected = PackageSmoothAPLoss(0.01)(embeddings, labels)
    found = SmoothAPLoss(0.01, include_self=True)(embeddings @ embeddings.T, same_label(labels))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_smooth_ap_differs_from_the_package_for_other_layouts() -> None:
    # With four classes of three, the package treats four consecutive rows as a class.
    embeddings, labels = anchor_embeddings().float(), torch.arange(12) // 3
    package = PackageSmoothAPLoss(0.01)(embeddings, labels).item()
    found = SmoothAPLoss(0.01, include_self=True)(embeddings @ embeddings.T, anchor_relevance()).item()
    assert package == pytest.approx(0.2776690423488617, rel=1e-5)
    assert found == pytest.approx(0.18830817937850952, rel=1e-4)
    # Its value depends on the order of the items, so it is not a function of the labeled set.
    order = torch.tensor([0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11])
    moved = PackageSmoothAPLoss(0.01)(embeddings[order], labels[order]).item()
    assert abs(moved - package) > 0.01
    scores = embeddings[order] @ embeddings[order].T
    again = SmoothAPLoss(0.01, include_self=True)(scores, same_label(labels[order])).item()
    assert again == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize(("tau", "rho", "delta"), [(0.01, 100.0, 0.05), (0.1, 2.0, 0.3), (0.5, 10.0, 1.5)])
def test_sup_ap_equals_a_plain_loop(tau: float, rho: float, delta: float) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: SupAPLoss(tau, rho, delta)(s, relevance),
        lambda s: naive_sup(s, relevance, tau, rho, delta),
        scores,
    )


def test_sup_ap_gradient_equals_finite_differences() -> None:
    scores, relevance = random_case(2)
    assert_gradcheck(lambda s: sup_ap_loss(s, relevance, tau=0.2, rho=3.0, delta=0.4), scores)


@pytest.mark.parametrize("seed", range(5))
def test_sup_ap_is_an_upper_bound_on_the_exact_risk(seed: int) -> None:
    scores, relevance = random_case(seed)
    assert sup_ap_loss(scores, relevance).item() >= exact_risk(scores, relevance)


def test_upper_step_matches_hand_computed_values() -> None:
    x = torch.tensor([-10.0, 0.0, 1e-9, 0.05, 0.06], dtype=torch.float64)
    end = 1 / (1 + math.exp(-5)) + 0.5
    expected = torch.tensor([0.0, 0.5, 1.0, end, end + 1.0], dtype=torch.float64)
    torch.testing.assert_close(upper_step(x, tau=0.01, rho=100.0, delta=0.05), expected, rtol=1e-6, atol=1e-6)


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="tau must be above 0, got 0"):
        SmoothAPLoss(tau=0)
    with pytest.raises(InvalidArgumentError, match="rho must be above 0, got -1"):
        SupAPLoss(rho=-1)
    with pytest.raises(InvalidArgumentError, match="max_positives must be at least 1, got 0"):
        smooth_ap_loss(*random_case(), max_positives=0)
    with pytest.raises(
        InvalidArgumentError,
        match="at least the positives of each query, got 2; raise or omit it",
    ):
        smooth_ap_loss(*random_case(), max_positives=2)


def test_bound_on_the_number_of_positives_does_not_change_the_loss() -> None:
    scores, relevance = random_case()
    for bound in (3, 5, 100):
        torch.testing.assert_close(
            smooth_ap_loss(scores, relevance, max_positives=bound), smooth_ap_loss(scores, relevance)
        )
