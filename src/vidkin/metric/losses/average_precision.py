"""Average-precision losses: smoothed (Smooth-AP, SupAP), graded (HAPPIER), and black-box differentiation."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.metric.losses.base import NotNegative, Positive, Reduction, options_of, reduce_queries
from vidkin.metric.losses.score_pairs import (
    LossOnScores,
    gather_marked,
    inclusive_step,
    lowest,
    map_row_blocks,
    score_pairs,
    surrogate_ap_risk,
)


@check_arguments
def smooth_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    tau: Positive = 0.01,
    *,
    include_self: bool = False,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Smooth-AP (Brown et al., ECCV 2020): 1 - AP with every step replaced by a sigmoid.

    With G(x) = 1 / (1 + exp(-x / tau)) and ``d_ji = s_kj - s_ki``::

        AP_k = 1/|P| sum_{i in P} (1 + sum_{j in P, j != i} G(d_ji)) / (1 + sum_{j in P u Ng, j != i} G(d_ji))

    The loss is the mean of 1 - AP_k over the queries that have a positive; it is in [0, 1].

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        tau: Temperature in units of the scores; small values approximate AP closely, but give gradients only near ties.
        include_self: Keep a query in its own list, as the official code does.
        self_offset: Query i is reference ``i + self_offset`` (for gathered ranks or memory banks).
        max_positives: Upper bound on the number of positives per query, see `quad_linear_ap_loss`.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: Shapes differ, an option is out of range, or ``max_positives`` is too small.

    Cost: O(N M P) time for P positives per query, O(N M) memory plus a block.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    step = partial(sigmoid_step, tau=tau)
    risks = surrogate_ap_risk(pairs, negative_step=step, positive_step=step, max_positives=max_positives)
    return reduce_queries(risks, pairs.positive.any(dim=1), reduction)


class SmoothAPLoss(LossOnScores):
    """`smooth_ap_loss` as a module."""

    @options_of(smooth_ap_loss)
    def __init__(self) -> None:
        """Options as in `smooth_ap_loss`."""


@check_arguments
def sup_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    tau: Positive = 0.01,
    rho: Positive = 100.0,
    delta: Positive = 0.05,
    *,
    include_self: bool = False,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """SupAP, the ranking term of ROADMAP (Ramzi et al., NeurIPS 2021): an upper bound on 1 - AP.

    ::

        risk_k = 1/|P| sum_{i in P} n_i / (p_i + n_i)
        p_i = 1 + sum_{j in P, j != i} [d_ji >= 0]  (no gradient),  n_i = sum_{j in Ng} H-(d_ji)

    with ``d_ji = s_kj - s_ki`` and H- as in `upper_step`, which is an upper bound on the step for x > 0 and keeps a
    slope if a negative is far above. The full ROADMAP loss is ``(1 - w) SupAP + w ContrastiveLoss(positive_margin=0.9,
    negative_margin=0.6)`` with w = 0.5.

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        tau: Temperature of the sigmoid around a tie.
        rho: Slope beyond delta.
        delta: Point where the sigmoid ends and the line begins, in units of the scores.
        include_self: Keep a query in its own list.
        self_offset: Query i is reference ``i + self_offset``.
        max_positives: Upper bound on the number of positives per query, see `quad_linear_ap_loss`.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: Shapes differ, an option is out of range, or ``max_positives`` is too small.

    Cost: as for `smooth_ap_loss`.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    risks = surrogate_ap_risk(
        pairs,
        negative_step=partial(upper_step, tau=tau, rho=rho, delta=delta),
        positive_step=inclusive_step,
        max_positives=max_positives,
    )
    return reduce_queries(risks, pairs.positive.any(dim=1), reduction)


class SupAPLoss(LossOnScores):
    """`sup_ap_loss` as a module."""

    @options_of(sup_ap_loss)
    def __init__(self) -> None:
        """Options as in `sup_ap_loss`."""


def sigmoid_step(difference: Tensor, *, tau: float) -> Tensor:
    """Compute 1 / (1 + exp(-x / tau))."""
    return torch.sigmoid(difference / tau)


def upper_step(difference: Tensor, *, tau: float, rho: float, delta: float) -> Tensor:
    """Compute H-(x): sigmoid(x/tau) for x <= 0, 1/2 + sigmoid(x/tau) up to delta, then a line of slope rho.

    The line continues the curve: ``rho (x - delta) + sigmoid(delta/tau) + 1/2``. The jump of 1/2 at 0, which
    makes it an upper bound on the strict step, has no gradient.

    Args:
        difference: Negative score minus positive score, any shape.
        tau: Temperature, above 0.
        rho: Slope, above 0.
        delta: Point where the line begins, above 0.
    """
    curve = torch.sigmoid(difference.clamp(max=delta) / tau)
    return curve + 0.5 * (difference > 0) + rho * (difference - delta).clamp(min=0.0)


@check_arguments
def hierarchical_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    tau: Positive = 0.01,
    rho: Positive = 100.0,
    delta: Positive = 0.05,
    *,
    include_self: bool = False,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Sup-H-AP from HAPPIER (Ramzi et al., ECCV 2022): 1 - hierarchical AP with smoothed ranks.

    For query k, the relevant references P (relevance r > 0) and ``d_ji = s_kj - s_ki``::

        H-AP_k = sum_{i in P} hrank_i / rank_i / sum_{i in P} r_i
        hrank_i = r_i + sum_{j in P, j != i} min(r_i, r_j) [d_ji >= 0]
        rank_i  = 1 + sum_{j: r_j >= r_i, j != i} [d_ji >= 0] + sum_{j: r_j < r_i} H-(d_ji)

    Only references less relevant than i are pushed below it; the other steps have no gradient. H- is `upper_step`. The
    loss is the mean of 1 - H-AP_k over the queries that have a relevant reference. For binary relevance, it equals
    `sup_ap_loss`. (The cluster term of HAPPIER is a separate loss and is not included.)

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], graded, 0 irrelevant, below 0 ignored: for example 1 for the same subcategory and
            1/2 for the same category. Only ratios matter.
        tau: Temperature of the sigmoid around a tie.
        rho: Slope beyond delta.
        delta: Point where the line begins, in units of the scores.
        include_self: Keep a query in its own list.
        self_offset: Query i is reference ``i + self_offset``.
        max_positives: Upper bound on the number of references with relevance above 0 per query.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: Shapes differ, an option is out of range, or ``max_positives`` is too small.

    Cost: O(N M P) time for P relevant references per query, O(N M) memory plus a block.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    columns, filled = gather_marked(pairs.positive, max_positives)
    # Ignored references get a negative grade, which excludes them from every sum below.
    grades = relevance.to(pairs.scores.dtype).masked_fill(~(pairs.positive | pairs.negative), -1.0)
    risks = map_row_blocks(
        partial(graded_risk, tau=tau, rho=rho, delta=delta),
        columns,
        filled,
        pairs.scores,
        grades,
        pairs_per_row=columns.shape[1] * pairs.scores.shape[1],
    )
    return reduce_queries(risks, pairs.positive.any(dim=1), reduction)


class HierarchicalAPLoss(LossOnScores):
    """`hierarchical_ap_loss` as a module."""

    @options_of(hierarchical_ap_loss)
    def __init__(self) -> None:
        """Options as in `hierarchical_ap_loss`."""


def graded_risk(
    columns: Tensor, filled: Tensor, scores: Tensor, grades: Tensor, *, tau: float, rho: float, delta: float
) -> Tensor:
    """Compute 1 - H-AP [N] for rows of scores [N, M] whose relevant columns are [N, P]."""
    difference = scores.unsqueeze(1) - scores.gather(1, columns).unsqueeze(2)
    own = grades.gather(1, columns).unsqueeze(2)
    other = grades.unsqueeze(1)
    itself = torch.zeros_like(difference, dtype=torch.bool).scatter_(2, columns.unsqueeze(2), True)
    above = inclusive_step(difference.detach()).masked_fill_(itself, 0.0)
    hierarchical_rank = own + (torch.minimum(own, other.clamp(min=0.0)) * above).sum(dim=2, keepdim=True)
    lower = upper_step(difference, tau=tau, rho=rho, delta=delta) * ((other >= 0) & (other < own))
    rank = 1.0 + (above * (other >= own) + lower).sum(dim=2, keepdim=True)
    precision = (hierarchical_rank / rank).squeeze(2)
    weights = own.squeeze(2) * filled
    total = weights.sum(dim=1)
    return 1.0 - (precision * filled).sum(dim=1) / total.masked_fill(total == 0, 1.0)


@check_arguments
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

    The ranks in the list, ``rank(s)`` (1 for the highest score, divided by the length of the list), are a
    black box whose gradient for an incoming gradient g is ``-(rank(s) - rank(s + lambda g)) / lambda``: the gradient
    of a piecewise linear interpolation of the loss. The ranks among the positives have no gradient. The loss is the
    mean over the queries that have a positive of::

        1 - 1/|P| sum_{i in P} (rank of i among the positives) / (rank of i)

    Ties are broken by column order.

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        lambda_: Strength of the interpolation, above 0; larger values reach further but are less faithful. It
            multiplies the incoming gradient, which a mean over queries divides by their number, so increase it
            with the batch size.
        margin: Before ranking, margin / 2 is subtracted from positives and added to negatives (deterministic, as in
            the paper; the public code scales it by random numbers). Training needs a margin: without it, the gradient
            vanishes as soon as the order is right. The paper uses 0.02 to 0.2.
        include_self: Keep a query in its own list, as the public code does.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Raises:
        InvalidArgumentError: Shapes differ, ``lambda_`` is not above 0, or the margin is negative.

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
    """Return the rank of each entry in its row: 1 for the highest, ties in column order."""
    order = values.argsort(dim=1, descending=True, stable=True)
    positions = torch.arange(1, values.shape[1] + 1, device=values.device, dtype=values.dtype)
    return torch.empty_like(values).scatter_(1, order, positions.expand_as(values))


def interpolated_rank(values: Tensor, length: Tensor, lambda_: float) -> Tensor:
    """Return the ranks divided by the length of the list [N, 1], with the gradient of black-box differentiation."""
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
