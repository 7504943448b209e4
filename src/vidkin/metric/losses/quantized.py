"""Average precision from soft histograms: FastAP, and the listwise loss of DIR, plain and tie-aware."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_at_least, check_range
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Reduction, checked, options_of, reduce_queries
from vidkin.metric.losses.score_pairs import LossOnScores, score_pairs

AtLeastOne = Annotated[int, partial(check_at_least, 1)]
AtLeastTwo = Annotated[int, partial(check_at_least, 2)]


def check_form(tie_aware: bool, simplified: bool) -> None:
    """Raise :class:`InvalidArgumentError` if ``simplified`` is set without ``tie_aware``."""
    if simplified and not tie_aware:
        raise InvalidArgumentError("simplified needs tie_aware, because it is a form of the tie-aware loss")


@check_arguments
@checked(check_range, check_form)
def quantized_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    bins: AtLeastTwo = 20,
    tie_aware: bool = False,
    *,
    low: float = -1.0,
    high: float = 1.0,
    simplified: bool = False,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Quantized listwise AP from DIR (Revaud et al., ICCV 2019): 1 - AP from soft histograms of the scores.

    Each score is assigned to ``bins`` equally spaced centers from ``high`` down to ``low`` with triangular weights (it
    adds to its two neighboring centers). With c_b the mass and c+_b the positive mass at center b, and C and C+ their
    cumulative sums starting at the highest center::

        plain      AP = 1/|P| sum_b c+_b C+_b / C_b
        tie-aware  AP = 1/|P| sum_b c+_b / c_b (c_b r_b + (C+_{b-1} + 1 - r_b (C_{b-1} + 1)) ln((C_b + 1) /
                        (C_{b-1} + 1))),   r_b = max(c+_b - 1, 0) / max(c_b - 1, 0)
        simplified AP = 1/|P| sum_b c+_b (C+_{b-1} + C+_b + 1) / (C_{b-1} + C_b + 1)

    The tie-aware form is the mean AP over the orders of tied items (He et al., CVPR 2018). Since centers hold
    fractions of items, it can exceed [0, 1] slightly. The mean of 1 - AP is over the queries that have a positive.

    Args:
        scores: [N, M], higher is more similar; clipped to [low, high], without gradient outside.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        bins: Number of centers, at least 2. DIR uses 20 or 25.
        low: Lowest score: -1 for cosines, 0 for calibrated scores.
        high: Highest score.
        tie_aware: Use the tie-aware form, which is better with few bins.
        simplified: With ``tie_aware``, use its simplified form.
        include_self: Keep a query in its own list, as the public code does.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: Shapes differ, there are fewer than 2 bins, low is not below high, or simplified is set
            without tie_aware.

    Cost: O(N M) time and memory, regardless of the number of bins.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    position = ((high - pairs.scores) * ((bins - 1) / (high - low))).clamp(0.0, bins - 1.0)
    lower = position.detach().floor().clamp(max=bins - 2.0)
    share = position - lower
    # NaN remains in the shares, but as an index it would be out of range.
    index = lower.nan_to_num().long()
    positive = soft_histogram(index, share, pairs.positive, bins)
    everything = positive + soft_histogram(index, share, pairs.negative, bins)
    total = pairs.positive.sum(dim=1)
    form = (simplified_tie_gain if simplified else tie_gain) if tie_aware else plain_gain
    precision = form(positive, everything).sum(dim=1) / total.clamp(min=1)
    return reduce_queries(1.0 - precision, total > 0, reduction)


class QuantizedAPLoss(LossOnScores):
    """`quantized_ap_loss` as a module."""

    @options_of(quantized_ap_loss)
    def __init__(self) -> None:
        """Options as in `quantized_ap_loss`."""


@check_arguments
@checked(check_range)
def fast_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    bins: AtLeastOne = 10,
    *,
    low: float = -1.0,
    high: float = 1.0,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """FastAP (Cakir et al., CVPR 2019): 1 - AP from ``bins`` intervals of the score range.

    The paper bins squared distances ``2 - 2 s`` of unit vectors over [0, 4]. In terms of scores, the range is [-1, 1]
    and the ``bins + 1`` edges of the intervals are the centers, so this is the plain form of `quantized_ap_loss` with
    one more center. The gradient is exact; the official hand-written backward pass is N / 2 times as large.

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        bins: Number of intervals, at least 1.
        low: Lowest score.
        high: Highest score.
        include_self: Keep a query in its own list; the published loss does not.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" or "sum" over queries, or "none" for [N].
    """
    return quantized_ap_loss(
        scores,
        relevance,
        bins=bins + 1,
        low=low,
        high=high,
        include_self=include_self,
        self_offset=self_offset,
        reduction=reduction,
    )


class FastAPLoss(LossOnScores):
    """`fast_ap_loss` as a module."""

    @options_of(fast_ap_loss)
    def __init__(self) -> None:
        """Options as in `fast_ap_loss`."""


def soft_histogram(index: Tensor, share: Tensor, counted: Tensor, bins: int) -> Tensor:
    """Compute histograms [N, bins]: each counted item adds 1 - share at its index and share at the next index."""
    weight = share * counted
    empty = share.new_zeros(share.shape[0], bins)
    return empty.scatter_add(1, index, counted.to(share.dtype) - weight).scatter_add(1, index + 1, weight)


def plain_gain(positive: Tensor, everything: Tensor) -> Tensor:
    """Compute c+ C+ / C at each center; 0 before the first item."""
    running = everything.cumsum(dim=1)
    return positive * positive.cumsum(dim=1) / running.masked_fill(running == 0, 1.0)


def tie_gain(positive: Tensor, everything: Tensor) -> Tensor:
    """Compute the expected gain at each center over the orders of its items."""
    after, positive_after = everything.cumsum(dim=1), positive.cumsum(dim=1)
    before, positive_before = after - everything, positive_after - positive
    # The ratio jumps where a center holds exactly one item; rounding errors there must not cause gradients of 1e7.
    several = everything > 1.0 + 1e-3
    others = torch.where(several, everything - 1.0, 1.0)
    ratio = torch.where(several, (positive - 1.0).clamp(min=0.0), 0.0) / others
    growth = torch.log((after + 1.0) / (before + 1.0))
    inner = everything * ratio + (positive_before + 1.0 - ratio * (before + 1.0)) * growth
    return positive * inner / everything.masked_fill(everything == 0, 1.0)


def simplified_tie_gain(positive: Tensor, everything: Tensor) -> Tensor:
    """Compute the tie-aware gain with the precision evaluated at the middle of each center."""
    after, positive_after = everything.cumsum(dim=1), positive.cumsum(dim=1)
    before, positive_before = after - everything, positive_after - positive
    return positive * (positive_before + positive_after + 1.0) / (before + after + 1.0)
