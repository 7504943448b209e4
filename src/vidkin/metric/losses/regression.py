"""Pointwise losses: errors of scores against relevance, and a penalty for scores that are out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_range
from vidkin.metric.losses.base import (
    Loss,
    Reduction,
    checked,
    options_of,
    reduce,
    to_full_precision,
    weighted_mean,
)
from vidkin.metric.losses.score_pairs import LossOnScores, check_scores, self_pair_mask


@check_arguments
def mae_loss(
    scores: Tensor,
    relevance: Tensor,
    *,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean absolute error ``|s_kj - y_kj|`` over all pairs that are not ignored.

    Args:
        scores: [N, M], on the scale of the relevance.
        relevance: [N, M], the target scores, for example 0 and 1; pairs with negative values are ignored.
        include_self: Keep the pairs of a query with itself.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" or "sum" over pairs, or "none" for [N, M] with 0 for ignored pairs.
    """
    errors, counted = score_errors(scores, relevance, include_self, self_offset)
    return weighted_mean(errors.abs(), counted, reduction)


class MAELoss(LossOnScores):
    """`mae_loss` as a module."""

    @options_of(mae_loss)
    def __init__(self) -> None:
        """Options as in `mae_loss`."""


@check_arguments
def mse_loss(
    scores: Tensor,
    relevance: Tensor,
    *,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean squared error ``(s_kj - y_kj)^2`` over all pairs that are not ignored; arguments as for `mae_loss`."""
    errors, counted = score_errors(scores, relevance, include_self, self_offset)
    return weighted_mean(errors.square(), counted, reduction)


class MSELoss(LossOnScores):
    """`mse_loss` as a module."""

    @options_of(mse_loss)
    def __init__(self) -> None:
        """Options as in `mse_loss`."""


@check_arguments
@checked(check_range)
def similarity_regularizer(
    scores: Tensor,
    low: float = -1.0,
    high: float = 1.0,
    *,
    reduction: Reduction = "sum",
) -> Tensor:
    """``|min(s - low, 0)| + |max(s - high, 0)|``: keeps a raw similarity map within the range to which it is clipped.

    The clipping has no gradient outside the range, so without this penalty a comparator can drift (ViSiL, S2VS).

    Args:
        scores: The map before it is clipped to [low, high], of any shape.
        low: Lower end of the range.
        high: Upper end of the range.
        reduction: "sum" as published, "mean" over all entries, or "none" for the shape of the scores.
    """
    values = to_full_precision(scores)
    outside = (low - values).clamp(min=0.0) + (values - high).clamp(min=0.0)
    return reduce(outside, reduction)


class SimilarityRegularizer(Loss):
    """`similarity_regularizer` as a module; it takes only the map."""

    @options_of(similarity_regularizer)
    def __init__(self) -> None:
        """Options as in `similarity_regularizer`."""

    def forward(self, scores: Tensor) -> Tensor:
        """Compute the penalty for scores outside [low, high]; scores can have any shape."""
        return self.compute(scores, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def score_errors(
    scores: Tensor, relevance: Tensor, include_self: bool, self_offset: int | None
) -> tuple[Tensor, Tensor]:
    """Return score minus relevance [N, M], with 0 for ignored pairs, and the mask of the other pairs [N, M]."""
    scores = check_scores(scores, relevance)
    counted = relevance >= 0
    self_pairs = self_pair_mask(scores, include_self=include_self, self_offset=self_offset)
    if self_pairs is not None:
        counted = counted & ~self_pairs
    return torch.where(counted, scores - relevance.to(scores.dtype), 0.0), counted
