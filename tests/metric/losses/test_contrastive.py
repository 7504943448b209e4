from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import NTXentLoss, SupConLoss
from torch import Tensor
from torch.nn.functional import normalize

from tests.metric.losses.score_cases import (
    LABELS,
    anchor_relevance,
    anchor_value_and_gradient,
    assert_gradcheck,
    assert_same_with_gradient,
    example,
    lists,
    random_case,
    same_label,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import (
    InfoNCELoss,
    SelfHardNegativeLoss,
    hard_negative_loss,
    info_nce_loss,
    self_hard_negative_loss,
    self_similarity_loss,
)


def naive_info_nce(scores: Tensor, relevance: Tensor, tau: float, denominator: str) -> Tensor:
    values = []
    for k, positives, negatives in lists(relevance):
        power = (scores[k] / tau).exp()
        costs = []
        for i in positives:
            rivals = [i, *negatives] if denominator == "negatives" else positives + negatives
            costs.append(-torch.log(power[i] / sum(power[j] for j in rivals)))
        if positives:
            values.append(torch.stack(costs).mean())
    return torch.stack(values).mean()


@pytest.mark.parametrize("denominator", ["negatives", "all"])
@pytest.mark.parametrize("tau", [0.03, 0.5])
def test_info_nce_equals_a_plain_loop(tau: float, denominator: str) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: InfoNCELoss(tau, denominator=denominator)(s, relevance),  # type: ignore[arg-type]
        lambda s: naive_info_nce(s, relevance, tau, denominator),
        scores,
    )


@pytest.mark.parametrize("denominator", ["negatives", "all"])
def test_info_nce_gradient_equals_finite_differences(denominator: str) -> None:
    scores, relevance = random_case(1)
    assert_gradcheck(lambda s: info_nce_loss(s, relevance, tau=0.5, denominator=denominator), scores)  # type: ignore[arg-type]


def test_info_nce_matches_the_worked_example() -> None:
    scores, relevance = example()
    assert InfoNCELoss(0.03)(scores, relevance).item() == pytest.approx(0.04526002, abs=1e-7)


@pytest.mark.parametrize(
    ("tau", "value", "gradient"),
    [(0.07, 4.695975303649902, 7.561305999755859), (0.03, 10.428726196289062, 18.02479362487793)],
)
def test_info_nce_equals_the_public_code(tau: float, value: float, gradient: float) -> None:
    found = anchor_value_and_gradient(lambda x: InfoNCELoss(tau)(x @ x.T, anchor_relevance()))
    assert found == pytest.approx((value, gradient), rel=1e-5)


def test_info_nce_equals_package_losses_on_equal_classes() -> None:
    def cosines(x: Tensor) -> Tensor:
        return normalize(x) @ normalize(x).T

    found = anchor_value_and_gradient(lambda x: InfoNCELoss(0.07)(cosines(x), anchor_relevance()))
    assert found == pytest.approx((4.6959757804870605, 6.776800155639648), rel=1e-5)
    loss = InfoNCELoss(0.1, denominator="all")
    found = anchor_value_and_gradient(lambda x: loss(cosines(x), anchor_relevance()))
    assert found == pytest.approx((3.993464708328247, 3.792572498321533), rel=1e-5)


def test_info_nce_on_unequal_classes_matches_package_losses_up_to_weights() -> None:
    embeddings = normalize(torch.randn(9, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.tensor(LABELS)
    scores, relevance = embeddings @ embeddings.T, same_label(labels)
    # SupCon averages over queries, as we do; NT-Xent averages over pairs, which weights queries by their positives.
    torch.testing.assert_close(
        info_nce_loss(scores, relevance, tau=0.1, denominator="all"), SupConLoss(0.1)(embeddings, labels)
    )
    per_query = info_nce_loss(scores, relevance, tau=0.1, reduction="none")
    positives = relevance.sum(dim=1) - 1
    weighted = (per_query * positives).sum() / positives.sum()
    torch.testing.assert_close(weighted, NTXentLoss(0.1)(embeddings, labels).double(), check_dtype=False)


def test_info_nce_stays_finite_where_exponentials_overflow() -> None:
    # e^(1 / 0.001) overflows in double precision; the difference 1.9 / 0.001 does not.
    scores = torch.tensor([[-0.9, 1.0]], requires_grad=True)
    loss = info_nce_loss(scores, torch.tensor([[1, 0]]), tau=0.001)
    assert loss.item() == pytest.approx(1900.0)
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(gradient, torch.tensor([[-1000.0, 1000.0]]))


@pytest.mark.parametrize("denominator", ["negatives", "all"])
def test_info_nce_without_negatives_is_bounded(denominator: str) -> None:
    scores = torch.tensor([[0.3, 0.3]], requires_grad=True)
    loss = info_nce_loss(scores, torch.ones(1, 2), denominator=denominator)  # type: ignore[arg-type]
    (gradient,) = torch.autograd.grad(loss, scores)
    # A single positive costs nothing; two equal positives compete with each other and cost log 2.
    assert loss.item() == pytest.approx(0.0 if denominator == "negatives" else math.log(2))
    torch.testing.assert_close(gradient, torch.zeros(1, 2))


def test_self_hard_negative_matches_the_worked_example() -> None:
    scores, relevance = example()
    hardest = hard_negative_loss(scores, relevance).item()
    assert hardest == pytest.approx(-(math.log(0.4) + 2 * math.log(0.25) + math.log(0.7)) / 4)
    assert hardest == pytest.approx(1.01138854, abs=1e-7)
    assert self_similarity_loss(scores, relevance).item() == 0.0
    assert self_hard_negative_loss(scores, relevance).item() == pytest.approx(hardest)
    assert SelfHardNegativeLoss(negative_weight=3.0)(scores, relevance).item() == pytest.approx(3 * hardest)


def test_hard_negative_equals_the_public_code() -> None:
    found, _ = anchor_value_and_gradient(lambda x: hard_negative_loss(x @ x.T, anchor_relevance()))
    assert found == pytest.approx(0.5189653038978577, rel=1e-6)
    found, _ = anchor_value_and_gradient(lambda x: self_similarity_loss(x @ x.T, anchor_relevance()))
    assert found == pytest.approx(0.0, abs=1e-7)


def test_self_hard_negative_equals_a_plain_loop() -> None:
    scores, relevance = random_case()
    scores = 0.05 + 0.9 * (scores + 1) / 2

    def loop(s: Tensor) -> Tensor:
        own = torch.stack([-torch.log(s[k, k]) for k in range(9)]).mean()
        hardest = [-torch.log(1 - max(s[k, j] for j in found)) for k, _, found in lists(relevance)]
        return own + torch.stack(hardest).mean()

    assert_same_with_gradient(lambda s: self_hard_negative_loss(s, relevance), loop, scores)
    assert_gradcheck(lambda s: self_hard_negative_loss(s, relevance), scores)


def test_floor_bounds_the_logarithms() -> None:
    scores = torch.tensor([[-0.5, 1.5], [0.0, 1.0]], requires_grad=True)
    loss = self_hard_negative_loss(scores, torch.eye(2), reduction="none")
    torch.testing.assert_close(loss, torch.tensor([-2 * math.log(1e-3), 0.0]))
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert gradient[0].abs().sum() == 0


def test_self_offset_selects_the_column_of_the_query() -> None:
    # The two queries are references 2 and 3 of four.
    scores = torch.tensor([[0.1, 0.2, 0.5, 0.3], [0.4, 0.1, 0.2, 0.25]])
    relevance = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 1]])
    found = self_similarity_loss(scores, relevance, self_offset=2, reduction="none")
    torch.testing.assert_close(found, -torch.tensor([0.5, 0.25]).log())
    ignored = relevance.clone()
    ignored[0, 2] = -1
    torch.testing.assert_close(self_similarity_loss(scores, ignored, self_offset=2), -torch.tensor(0.25).log())


def test_mismatched_arguments_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"scores must be square unless self_offset says .*, got \(2, 4\)"):
        self_similarity_loss(torch.zeros(2, 4), torch.zeros(2, 4))
    with pytest.raises(InvalidArgumentError, match="denominator must be one of 'negatives', 'all', got 'none'"):
        InfoNCELoss(denominator="none")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="tau must be above 0, got 0"):
        InfoNCELoss(0)
    with pytest.raises(InvalidArgumentError, match="floor must be above 0, got 0"):
        SelfHardNegativeLoss(0)
