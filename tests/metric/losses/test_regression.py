from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.metric.losses.score_cases import (
    anchor_value_and_gradient,
    assert_gradcheck,
    assert_same_with_gradient,
    random_case,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import (
    MAELoss,
    MSELoss,
    SimilarityRegularizer,
    mae_loss,
    mse_loss,
    similarity_regularizer,
)


def off_diagonal(scores: Tensor, relevance: Tensor) -> list[Tensor]:
    return [scores[k, j] - relevance[k, j] for k in range(9) for j in range(9) if k != j]


def test_errors_equal_a_plain_loop() -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: MAELoss()(s, relevance),
        lambda s: torch.stack([x.abs() for x in off_diagonal(s, relevance)]).mean(),
        scores,
    )
    assert_same_with_gradient(
        lambda s: MSELoss()(s, relevance),
        lambda s: torch.stack([x**2 for x in off_diagonal(s, relevance)]).mean(),
        scores,
    )
    assert_gradcheck(lambda s: mae_loss(s, relevance), scores)
    assert_gradcheck(lambda s: mse_loss(s, relevance), scores)


def test_errors_match_hand_computed_values() -> None:
    # The errors are -0.2 and 0.5; the third pair is ignored.
    scores, relevance = torch.tensor([[0.8, 0.5, 0.9]]), torch.tensor([[1, 0, -1]])
    assert mae_loss(scores, relevance).item() == pytest.approx(0.35)
    assert mse_loss(scores, relevance).item() == pytest.approx((0.04 + 0.25) / 2)
    assert mae_loss(scores, relevance, reduction="sum").item() == pytest.approx(0.7)
    torch.testing.assert_close(mse_loss(scores, relevance, reduction="none"), torch.tensor([[0.04, 0.25, 0.0]]))


def test_graded_relevance_is_the_target_score() -> None:
    scores = torch.tensor([[0.5, 0.2]])
    assert mae_loss(scores, torch.tensor([[0.5, 0.2]])).item() == 0.0


def test_regularizer_matches_hand_computed_values() -> None:
    scores = torch.tensor([-1.5, -1.0, 0.0, 1.0, 1.25], requires_grad=True)
    loss = SimilarityRegularizer()(scores)
    assert loss.item() == pytest.approx(0.75)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient[[0, 2, 4]].tolist() == [-1.0, 0.0, 1.0]
    assert similarity_regularizer(scores, reduction="mean").item() == pytest.approx(0.15)
    torch.testing.assert_close(
        similarity_regularizer(scores, reduction="none"), torch.tensor([0.5, 0.0, 0.0, 0.0, 0.25])
    )


def test_regularizer_equals_the_public_code() -> None:
    # The stored value is for the range [-0.5, 0.5].
    loss = SimilarityRegularizer(-0.5, 0.5)
    value, _ = anchor_value_and_gradient(lambda x: loss(x @ x.T))
    assert value == pytest.approx(11.534564971923828, rel=1e-6)


def test_regularizer_accepts_maps_of_any_shape_and_empty_maps() -> None:
    maps = torch.full((2, 3, 4), 2.0)
    assert similarity_regularizer(maps).item() == 24.0
    assert similarity_regularizer(maps[:0], reduction="mean").item() == 0.0
    assert similarity_regularizer(maps.bfloat16()).dtype == torch.float32


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"low must be below high, got 1\.0 and 1\.0"):
        SimilarityRegularizer(low=1.0)
    with pytest.raises(InvalidArgumentError, match="reduction must be one of 'mean', 'sum', 'none', got 'max'"):
        MAELoss(reduction="max")  # type: ignore[arg-type]
    assert repr(SimilarityRegularizer()) == "SimilarityRegularizer(low=-1.0, high=1.0, reduction='sum')"
