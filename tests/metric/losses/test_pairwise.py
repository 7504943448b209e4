from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.losses import CircleLoss as PackageCircleLoss
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
from vidkin.metric.losses import (
    CircleLoss,
    ContrastiveLoss,
    ScoreTripletLoss,
    circle_loss,
    contrastive_loss,
    score_triplet_loss,
)


def minus_distances(x: Tensor) -> Tensor:
    """Negative Euclidean distances of all pairs of unit vectors."""
    unit = normalize(x, dim=1)
    off = 1 - torch.eye(len(x), dtype=x.dtype)
    return -((unit.unsqueeze(1) - unit.unsqueeze(0)).square().sum(2) + (1 - off)).sqrt() * off


def naive_contrastive(scores: Tensor, relevance: Tensor, near: float, far: float, active: bool) -> Tensor:
    attraction, repulsion = [], []
    for k, positives, negatives in lists(relevance):
        attraction += [(near - scores[k, i]).clamp(min=0) for i in positives]
        repulsion += [(scores[k, j] - far).clamp(min=0) for j in negatives]
    if active:
        attraction = [x for x in attraction if x > 0]
        repulsion = [x for x in repulsion if x > 0]
    return torch.stack(attraction).mean() + torch.stack(repulsion).mean()


def naive_triplet(scores: Tensor, relevance: Tensor, margin: float, mining: str) -> Tensor:
    values = []
    for k, positives, negatives in lists(relevance):
        if not positives or not negatives:
            continue
        if mining == "hard":
            positives = [min(positives, key=lambda i: scores[k, i].item())]
            negatives = [max(negatives, key=lambda j: scores[k, j].item())]
        hinges = [(margin + scores[k, j] - scores[k, i]).clamp(min=0) for i in positives for j in negatives]
        values.append(torch.stack(hinges).mean())
    return torch.stack(values).mean()


def naive_circle(scores: Tensor, positives: list[tuple[int, int]], negatives: list[tuple[int, int]]) -> Tensor:
    margin, gamma = 0.25, 16.0
    near = [-gamma * max(0.0, 1 + margin - scores[p].item()) * (scores[p] - 1 + margin) for p in positives]
    far = [gamma * max(0.0, scores[n].item() + margin) * (scores[n] - margin) for n in negatives]
    return torch.log(1 + torch.stack(near).exp().sum() * torch.stack(far).exp().sum())


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize(("near", "far"), [(1.0, 0.0), (0.5, -0.2)])
def test_contrastive_equals_a_plain_loop(near: float, far: float, active: bool) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: ContrastiveLoss(near, far, active_only=active)(s, relevance),
        lambda s: naive_contrastive(s, relevance, near, far, active),
        scores,
    )


def test_contrastive_loss_matches_hand_computed_values() -> None:
    # The positives 0.8 and 0.4 are 0.2 and 0.6 below 1; the negatives 0.3 and -0.5 exceed 0 by 0.3 and 0.
    scores = torch.tensor([[0.8, 0.4, 0.3, -0.5]])
    relevance = torch.tensor([[1, 1, 0, 0]])
    assert contrastive_loss(scores, relevance).item() == pytest.approx(0.4 + 0.15)
    assert contrastive_loss(scores, relevance, active_only=True).item() == pytest.approx(0.4 + 0.3)
    assert contrastive_loss(scores, relevance, reduction="sum").item() == pytest.approx(1.1)
    pairs = contrastive_loss(scores, relevance, reduction="none")
    torch.testing.assert_close(pairs, torch.tensor([[0.2, 0.6, 0.3, 0.0]]))


def test_contrastive_on_distances_equals_the_package() -> None:
    loss = ContrastiveLoss(1.0, 0.0, active_only=True)
    found = anchor_value_and_gradient(lambda x: loss(1 + minus_distances(x), anchor_relevance()))
    assert found == pytest.approx((1.2645405530929565, 1.3998239040374756), rel=1e-5)


@pytest.mark.parametrize("mining", ["all", "hard"])
@pytest.mark.parametrize("margin", [0.0, 0.2, 1.0])
def test_triplet_equals_a_plain_loop(mining: str, margin: float) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: ScoreTripletLoss(margin, mining=mining)(s, relevance),  # type: ignore[arg-type]
        lambda s: naive_triplet(s, relevance, margin, mining),
        scores,
    )


def test_triplet_loss_matches_hand_computed_values() -> None:
    # 0.2 + 0.6 - 0.5 = 0.3 and 0.2 + 0.1 - 0.5 < 0: the mean is 0.15, the hardest 0.3.
    scores, relevance = torch.tensor([[0.5, 0.6, 0.1]]), torch.tensor([[1, 0, 0]])
    assert score_triplet_loss(scores, relevance).item() == pytest.approx(0.15)
    assert score_triplet_loss(scores, relevance, mining="hard").item() == pytest.approx(0.3)


def test_triplet_on_distances_equals_the_package() -> None:
    found = anchor_value_and_gradient(lambda x: ScoreTripletLoss(0.2)(minus_distances(x), anchor_relevance()))
    assert found == pytest.approx((0.16514848172664642, 0.19848628342151642), rel=1e-5)
    hard, _ = anchor_value_and_gradient(
        lambda x: ScoreTripletLoss(0.2, mining="hard")(minus_distances(x), anchor_relevance())
    )
    assert hard == pytest.approx(0.6012373544766846, rel=1e-6)


def test_circle_of_queries_equals_a_plain_loop() -> None:
    scores, relevance = random_case()

    def loop(s: Tensor) -> Tensor:
        values = [
            naive_circle(s, [(k, i) for i in positives], [(k, j) for j in negatives])
            for k, positives, negatives in lists(relevance)
            if positives and negatives
        ]
        return torch.stack(values).mean()

    assert_same_with_gradient(lambda s: circle_loss(s, relevance, gamma=16.0), loop, scores)


def test_circle_of_the_whole_matrix_equals_a_plain_loop() -> None:
    scores, relevance = random_case()
    positives = [(k, i) for k, found, _ in lists(relevance) for i in found]
    negatives = [(k, j) for k, _, found in lists(relevance) for j in found]
    assert_same_with_gradient(
        lambda s: circle_loss(s, relevance, gamma=16.0, form="global"),
        lambda s: naive_circle(s, positives, negatives),
        scores,
    )


@pytest.mark.parametrize(
    ("margin", "gamma", "query", "whole"),
    [
        (0.4, 80.0, (112.65131378173828, 89.05551147460938), (174.33938598632812, 265.3802185058594)),
        (0.25, 256.0, (401.5616760253906, 255.7645721435547), (607.5731811523438, 791.5684204101562)),
    ],
)
def test_circle_equals_both_public_implementations(
    margin: float, gamma: float, query: tuple[float, float], whole: tuple[float, float]
) -> None:
    found = anchor_value_and_gradient(
        lambda x: CircleLoss(margin, gamma)(normalize(x) @ normalize(x).T, anchor_relevance())
    )
    assert found == pytest.approx(query, rel=1e-5)
    once = torch.where(torch.ones(12, 12).triu(1) > 0, anchor_relevance(), -1.0)
    found = anchor_value_and_gradient(lambda x: CircleLoss(margin, gamma, form="global")(x @ x.T, once))
    # The stored values were computed in single precision, with exponents up to 600.
    assert found == pytest.approx(whole, rel=3e-5)


def test_circle_equals_the_package_on_unequal_classes() -> None:
    embeddings = normalize(torch.randn(9, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.tensor(LABELS)
    expected = PackageCircleLoss(m=0.4, gamma=80)(embeddings, labels)
    found = CircleLoss(0.4, 80.0)(embeddings @ embeddings.T, same_label(labels))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_circle_gradient_treats_the_weights_as_constants() -> None:
    # One pair of each kind: d loss / d s_n = gamma a_n sigmoid(logit), where a_n is treated as a constant.
    scores = torch.tensor([[0.4, 0.6]], dtype=torch.float64, requires_grad=True)
    circle_loss(scores, torch.tensor([[1, 0]]), margin=0.25, gamma=2.0).backward()
    near, far = -2 * 0.85 * (0.4 - 0.75), 2 * 0.85 * (0.6 - 0.25)
    weight = torch.sigmoid(torch.tensor(near + far, dtype=torch.float64)).item()
    assert scores.grad is not None
    assert scores.grad[0].tolist() == pytest.approx([-2 * 0.85 * weight, 2 * 0.85 * weight])


def test_gradients_equal_finite_differences() -> None:
    scores, relevance = random_case(1)
    assert_gradcheck(lambda s: contrastive_loss(s, relevance, positive_margin=0.7), scores)
    assert_gradcheck(lambda s: score_triplet_loss(s, relevance, margin=0.3), scores)
    assert_gradcheck(lambda s: score_triplet_loss(s, relevance, margin=0.3, mining="hard"), scores)


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="mining must be one of 'all', 'hard', got 'easy'"):
        ScoreTripletLoss(mining="easy")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"margin must be at least 0, got -0\.1"):
        score_triplet_loss(*random_case(), margin=-0.1)
    with pytest.raises(InvalidArgumentError, match="form must be one of 'query', 'global', got 'square'"):
        CircleLoss(form="square")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="gamma must be above 0, got 0"):
        CircleLoss(gamma=0)
