from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import FastAPLoss as PackageFastAPLoss
from torch import Tensor
from torch.nn.functional import normalize

from tests.metric.losses.score_cases import (
    LABELS,
    anchor_relevance,
    anchor_value_and_gradient,
    assert_gradcheck,
    assert_same_with_gradient,
    lists,
    random_case,
    same_label,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import FastAPLoss, QuantizedAPLoss, fast_ap_loss, quantized_ap_loss


def triangle(score: Tensor, center: float, width: float) -> Tensor:
    return (1 - (score - center).abs() / width).clamp(min=0)


def naive(scores: Tensor, relevance: Tensor, bins: int, low: float, high: float, form: str = "plain") -> Tensor:
    width = (high - low) / (bins - 1)
    values = []
    for k, positives, negatives in lists(relevance):
        if not positives:
            continue
        before = positive_before = precision = torch.zeros((), dtype=scores.dtype)
        for b in range(bins):
            center = high - b * width
            own = sum(triangle(scores[k, j], center, width) for j in positives)
            mass = own + sum(triangle(scores[k, j], center, width) for j in negatives)
            after, positive_after = before + mass, positive_before + own
            if form == "plain":
                gain = own * positive_after / after if after > 0 else after
            elif form == "simplified":
                gain = own * (positive_before + positive_after + 1) / (before + after + 1)
            else:
                ratio = (own - 1).clamp(min=0) / (mass - 1) if mass > 1 else mass * 0
                growth = torch.log((after + 1) / (before + 1))
                inner = mass * ratio + (positive_before + 1 - ratio * (before + 1)) * growth
                gain = own * inner / mass if mass > 0 else mass
            precision = precision + gain
            before, positive_before = after, positive_after
        values.append(1 - precision / len(positives))
    return torch.stack(values).mean()


@pytest.mark.parametrize("form", ["plain", "tie-aware", "simplified"])
@pytest.mark.parametrize(("bins", "low", "high"), [(20, -1.0, 1.0), (4, -1.5, 1.2), (2, -1.0, 1.0)])
def test_loss_equals_a_plain_loop(form: str, bins: int, low: float, high: float) -> None:
    scores, relevance = random_case()
    loss = QuantizedAPLoss(bins, form != "plain", low=low, high=high, simplified=form == "simplified")
    assert_same_with_gradient(
        lambda s: loss(s, relevance), lambda s: naive(s, relevance, bins, low, high, form), scores
    )


def test_fast_ap_equals_a_plain_loop() -> None:
    scores, relevance = random_case(3)
    assert_same_with_gradient(
        lambda s: FastAPLoss(10)(s, relevance), lambda s: naive(s, relevance, 11, -1.0, 1.0), scores
    )


@pytest.mark.parametrize("tie_aware", [False, True])
def test_gradient_equals_finite_differences(tie_aware: bool) -> None:
    scores, relevance = random_case(1)
    assert_gradcheck(lambda s: quantized_ap_loss(s, relevance, bins=7, tie_aware=tie_aware), scores)


@pytest.mark.parametrize(
    ("bins", "low", "form", "value", "value_labels_only"),
    [
        (25, 0.0, "plain", 0.20147448778152466, 0.6316828727722168),
        (20, -1.0, "plain", 0.21735835075378418, 0.648361325263977),
        (25, 0.0, "tie-aware", 0.33589184284210205, 0.619536280632019),
        (20, -1.0, "tie-aware", 0.32978391647338867, 0.6052645444869995),
        (25, 0.0, "simplified", 0.1827031970024109, 0.5941383838653564),
        (20, -1.0, "simplified", 0.1946595311164856, 0.6059527397155762),
    ],
)
def test_loss_equals_the_public_dir_code(
    bins: int, low: float, form: str, value: float, value_labels_only: float
) -> None:
    loss = QuantizedAPLoss(bins, form != "plain", low=low, simplified=form == "simplified", include_self=True)
    found, gradient = anchor_value_and_gradient(lambda x: loss((x @ x.T).clamp(max=1.0), anchor_relevance()))
    assert found == pytest.approx(value, rel=2e-6)
    assert math.isfinite(gradient)
    # The query stays in its own list, as a negative.
    relevance = anchor_relevance().fill_diagonal_(0)
    found, _ = anchor_value_and_gradient(lambda x: loss((x @ x.T).clamp(max=1.0), relevance))
    assert found == pytest.approx(value_labels_only, rel=2e-6)


def test_fast_ap_equals_the_official_value_with_the_true_gradient() -> None:
    found = anchor_value_and_gradient(lambda x: FastAPLoss(10)(x @ x.T, anchor_relevance()))
    assert found == pytest.approx((0.4856910705566406, 0.8205040693283081), rel=1e-5)


def test_fast_ap_equals_pytorch_metric_learning() -> None:
    embeddings = normalize(torch.randn(9, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.tensor(LABELS)
    expected = PackageFastAPLoss(10)(embeddings, labels)
    found = FastAPLoss(10)(embeddings @ embeddings.T, same_label(labels))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_loss_matches_a_hand_computed_value() -> None:
    # The bin centers are 1, 0 and -1. The negative is at 1, the positive half at 0 and half at -1: 1/2 1/2 / (3/2) +
    # 1/2 1/2.
    scores = torch.tensor([[-0.5, 1.0]])
    value = fast_ap_loss(scores, torch.tensor([[1, 0]]), bins=2).item()
    assert value == pytest.approx(1 - (0.25 / 1.5 + 0.5 * 1.0 / 2.0))


def test_tie_aware_form_integrates_over_the_ranks_of_ties() -> None:
    # A positive and a negative share a center (c = 2, c+ = 1, r = 0), so AP = 1/2 ln 3; the integral of 1 / x from 1
    # to 3 replaces the sum 1 + 1/2 over both ranks.
    scores = torch.zeros(1, 2, dtype=torch.float64)
    value = quantized_ap_loss(scores, torch.tensor([[1, 0]]), bins=3, tie_aware=True).item()
    assert value == pytest.approx(1 - math.log(3) / 2)


def test_scores_beyond_the_range_are_clipped() -> None:
    relevance = torch.tensor([[1, 0, 0]])
    inside = fast_ap_loss(torch.tensor([[0.2, 1.0, -1.0]]), relevance)
    beyond = torch.tensor([[0.2, 3.0, -1.7]], requires_grad=True)
    outside = fast_ap_loss(beyond, relevance)
    (gradient,) = torch.autograd.grad(outside, beyond)
    torch.testing.assert_close(outside, inside)
    assert gradient[0, 1:].abs().sum() == 0


def test_single_item_at_a_center_keeps_the_gradient_bounded() -> None:
    # With a mass of 1 + 1e-7 at the first center, the ratio of the tie-aware form is discontinuous.
    scores = torch.tensor([[1.0, 0.9000001, -1.0]], requires_grad=True)
    quantized_ap_loss(scores, torch.tensor([[1, 1, 0]]), bins=21, tie_aware=True).backward()
    assert scores.grad is not None
    assert scores.grad.abs().max() < 100


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"bins must be at least 2, got 1"):
        QuantizedAPLoss(1)
    with pytest.raises(InvalidArgumentError, match=r"low must be below high, got 1.0 and 1.0"):
        FastAPLoss(low=1.0)
    with pytest.raises(InvalidArgumentError, match="simplified needs tie_aware"):
        QuantizedAPLoss(simplified=True)
