"""Average precision through black-box differentiation of the ranking."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vidkin.metric.losses.base import NotNegative, Positive, Reduction, checked, options_of, reduce_queries
from vidkin.metric.losses.score_pairs import LossOnScores, lowest, score_pairs


@checked()
def blackbox_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    lambda_: Positive = 4.0,
    *,
    margin: NotNegative = 0.0,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """BlackBox-AP (Rolinek et al., CVPR 2020): the exact 1 - AP, with the gradient of an interpolation.

    The ranks of the list, ``rank(s)`` (1 is the greatest score, divided by the length of the list), are a
    black box whose gradient for an incoming gradient g is ``-(rank(s) - rank(s + lambda g)) / lambda``: that of
    a piecewise linear interpolation of the loss. The ranks among the positives carry none. The loss is the
    mean over queries with a positive of::

        1 - 1/|P| sum_{i in P} rank among the positives of i / rank of i

    Ties are broken by the order of the columns, the first one first.

    Args:
        scores: [N, M], greater is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        lambda_: Strength of the interpolation, above 0; larger reaches further and is less faithful. It
            multiplies the incoming gradient, which a mean over queries divides by their number: raise it
            with the batch.
        margin: Before ranking, positives lose and negatives gain margin / 2 (deterministic, as in the paper;
            the public code scales it by random numbers). Needed in training: without it the gradient stops
            as soon as the order is right. The paper uses 0.02 to 0.2.
        include_self: Keep a query in its own list, as the public code does.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean", "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: On shapes that differ, lambda not above 0, a negative margin.

    Cost: O(N M log M) time, O(N M) memory.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    shifted = pairs.scores + (0.5 * margin) * (
        pairs.negative.to(pairs.scores.dtype) - pairs.positive.to(pairs.scores.dtype)
    )
    ignored = ~(pairs.positive | pairs.negative)
    length = (~ignored).sum(dim=1, keepdim=True).clamp(min=1).to(shifted.dtype)
    ranks = interpolated_rank(shifted.masked_fill(ignored, lowest(shifted)), length, lambda_)
    among_positives = descending_rank((-ranks.detach()).masked_fill(~pairs.positive, lowest(ranks))) / length
    precision = (among_positives / ranks * pairs.positive).sum(dim=1)
    total = pairs.positive.sum(dim=1)
    return reduce_queries(1.0 - precision / total.clamp(min=1), total > 0, reduction)


class BlackBoxAPLoss(LossOnScores):
    """`blackbox_ap_loss` as a module."""

    @options_of(blackbox_ap_loss)
    def __init__(self) -> None:
        """Options as in `blackbox_ap_loss`."""


def descending_rank(values: Tensor) -> Tensor:
    """Rank of every entry of its row, 1 for the greatest, ties in the order of the columns."""
    order = values.argsort(dim=1, descending=True, stable=True)
    positions = torch.arange(1, values.shape[1] + 1, device=values.device, dtype=values.dtype)
    return torch.empty_like(values).scatter_(1, order, positions.expand_as(values))


def interpolated_rank(values: Tensor, length: Tensor, lambda_: float) -> Tensor:
    """Rank divided by the length of the list [N, 1], with the gradient of black-box differentiation."""
    ranks: Tensor = _InterpolatedRank.apply(values, length, lambda_)  # type: ignore[no-untyped-call]
    return ranks


class _InterpolatedRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, length: Tensor, lambda_: float) -> Tensor:
        ranks = descending_rank(values) / length
        ctx.save_for_backward(values, length, ranks)
        ctx.lambda_ = lambda_
        return ranks

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        values, length, ranks = ctx.saved_tensors
        moved = descending_rank(values + ctx.lambda_ * gradients[0]) / length
        return (moved - ranks) / ctx.lambda_, None, None
