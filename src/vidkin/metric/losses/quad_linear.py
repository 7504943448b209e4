"""QuadLinear-AP on video scores and on frame scores (HAP-VR, ACM Multimedia 2024)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import (
    Loss,
    Positive,
    Reduction,
    options_of,
    reduce_queries,
    to_full_precision,
)
from vidkin.metric.losses.score_pairs import (
    LossOnScores,
    StepFunction,
    gather_marked,
    list_risk,
    map_row_blocks,
    score_pairs,
    self_pair_mask,
    strict_step,
    surrogate_ap_risk,
)


@check_arguments
def quad_linear_step(difference: Tensor, *, delta: float) -> Tensor:
    """Compute R-(x; delta), the surrogate for "this negative is above this positive".

    ``2x/delta + 1`` for x >= 0, ``(x/delta + 1)^2`` for -delta <= x < 0, and 0 below: convex, with a continuous
    derivative, and never saturated where the order is wrong.

    Args:
        difference: Negative score minus positive score, any shape.
        delta: Margin, above 0, in units of the scores.
    """
    shifted = (difference / delta + 1.0).clamp(min=0.0)
    return torch.where(difference < 0, shifted.square(), 2.0 * shifted - 1.0)


@check_arguments
def quad_linear_ap_loss(
    scores: Tensor,
    relevance: Tensor,
    delta: Positive = 0.05,
    rho: Positive = 0.1,
    include_self: bool = False,
    *,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """QuadLinear-AP: average-precision risk with a surrogate whose gradient does not vanish for badly wrong orders.

    For query k with positives P, negatives Ng and ``d_ji = s_kj - s_ki``::

        risk_k = 1/|P| sum_{i in P} h( sum_{j in Ng} R-(d_ji; delta) / (1 + rho sum_{j in P} H(d_ji)) )
        h(x) = x / (1 + x),  H the strict step without gradient,  R- as in `quad_linear_step`

    The loss is the mean over the queries that have a positive, in [0, 1]; 0 with a gradient if there are none.

    Args:
        scores: [N, M], similarities of N queries to M references, higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        delta: Margin of R-, in units of the scores. The published 0.05 is for scores in [0, 1].
        rho: Weight of the positives above a positive; small values emphasize the lowest-ranked positives.
        include_self: Keep a query in its own list (the public code does, as a positive). If False, the
            diagonal of a square matrix is ignored.
        self_offset: Query i is reference ``i + self_offset`` (for gathered ranks or memory banks).
        max_positives: Upper bound on the number of positives per query. Set it (to K - 1 for a P x K batch) to
            avoid a synchronization with the accelerator to count them.
        reduction: "mean" or "sum" over queries, or "none" for [N] with 0 for queries without positives.

    Raises:
        InvalidArgumentError: Shapes differ, an option is out of range, or ``max_positives`` is too small.

    Cost: O(N M P) time for P positives per query, O(N M) memory plus a block.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    negative_step, positive_step = quad_linear_steps(delta, rho)
    risks = surrogate_ap_risk(
        pairs, negative_step=negative_step, positive_step=positive_step, max_positives=max_positives
    )
    return reduce_queries(risks, pairs.positive.any(dim=1), reduction)


class QuadLinearAPLoss(LossOnScores):
    """`quad_linear_ap_loss` as a module; the defaults are the published video-level settings.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[1.0, 0.8, 0.3, 0.6], [0.8, 1.0, 0.2, 0.75], [0.3, 0.2, 1.0, 0.9],
        ...                        [0.6, 0.75, 0.9, 1.0]])
        >>> relevance = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2))
        >>> round(QuadLinearAPLoss(delta=0.1, rho=1.0, include_self=True)(scores, relevance).item(), 7)
        0.0138889
    """

    @options_of(quad_linear_ap_loss)
    def __init__(self) -> None:
        """Options as in `quad_linear_ap_loss`."""


@check_arguments
def frame_quad_linear_ap_loss(
    frame_scores: Tensor,
    reference_scores: Tensor,
    relevance: Tensor,
    delta: Positive = 0.05,
    rho: Positive = 5.0,
    *,
    top_rate: Positive = 0.35,
    bottom_rate: Positive = 0.35,
    query_mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    include_self: bool = False,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """QuadLinear-AP on the frames of relevant video pairs, labeled by the ranking of a frozen model.

    For every video pair with relevance above 0, each query frame is a query: of the n valid target frames, the
    ``max(1, round(top_rate n))`` that the frozen model ranks most similar are its positives, and the ``max(1,
    round(bottom_rate n))`` least similar its negatives; the frames in between do not count. The loss is the mean over
    the pairs of the mean over their query frames.

    Only relevant pairs are processed: O(B P T k^2) time and memory instead of O(B C T^3).

    Args:
        frame_scores: [B, C, T, S], similarities of T frames of B queries to S frames of C targets, before
            any comparator network.
        reference_scores: [B, C, T, S], similarities from a frozen self-supervised model; no gradient.
        relevance: [B, C], above 0 if the videos are relevant to each other.
        delta: Margin of R-.
        rho: Weight of the positives above a positive.
        top_rate: Fraction of the target frames used as positives, above 0.
        bottom_rate: Fraction used as negatives, above 0; the sum of both is at most 1.
        query_mask: [B, T], True for query frames that are not padding.
        target_mask: [C, S], True for target frames that are not padding.
        include_self: Keep the pairs of a video with itself (the public code does).
        self_offset: Query i is target ``i + self_offset``.
        max_positives: Upper bound on the number of relevant videos per query, see `quad_linear_ap_loss`.
        reduction: "mean" or "sum" over pairs, or "none" for [B, C] with 0 for pairs that are not relevant.
    """
    check_frame_arguments(frame_scores, reference_scores, relevance, top_rate + bottom_rate)
    selected = relevance > 0
    self_pairs = self_pair_mask(relevance, include_self=include_self, self_offset=self_offset)
    columns, filled = gather_marked(selected if self_pairs is None else selected & ~self_pairs, max_positives)
    targets = frame_scores.shape[3]
    rows = torch.arange(columns.shape[0], device=columns.device).unsqueeze(1)
    lengths = torch.full_like(columns, targets)
    labels = reference_scores.detach()[rows, columns]
    if target_mask is not None:
        valid = target_mask.bool()[columns]
        lengths = valid.sum(dim=2)
        labels = labels.masked_fill(~valid.unsqueeze(2), -torch.inf)
    positives, negatives = extreme_frames(labels, lengths, top_rate, bottom_rate)
    candidates = to_full_precision(frame_scores)[rows, columns]
    risks = frame_risks(candidates, positives, negatives, *quad_linear_steps(delta, rho))
    real = filled.unsqueeze(2) & (lengths > 0).unsqueeze(2)
    real = real.expand(risks.shape) if query_mask is None else real & query_mask.bool().unsqueeze(1)
    frames = real.sum(dim=2)
    per_pair = risks.masked_fill(~real, 0.0).sum(dim=2) / frames.clamp(min=1)
    if reduction == "none":
        return per_pair.new_zeros(relevance.shape).scatter_add(1, columns, per_pair)
    return reduce_queries(per_pair, frames > 0, reduction)


class FrameQuadLinearAPLoss(Loss):
    """`frame_quad_linear_ap_loss` as a module; the defaults are the published frame-level settings."""

    @options_of(frame_quad_linear_ap_loss)
    def __init__(self) -> None:
        """Options as in `frame_quad_linear_ap_loss`."""

    def forward(
        self,
        frame_scores: Tensor,
        reference_scores: Tensor,
        relevance: Tensor,
        *,
        query_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        self_offset: int | None = None,
    ) -> Tensor:
        return self.compute(
            frame_scores,
            reference_scores,
            relevance,
            query_mask=query_mask,
            target_mask=target_mask,
            self_offset=self_offset,
            **self.options,
        )

    if TYPE_CHECKING:
        __call__ = forward


def quad_linear_steps(delta: float, rho: float) -> tuple[StepFunction, StepFunction]:
    """Return the step functions for negatives and for positives that are ranked above a positive."""

    def weighted_strict_step(difference: Tensor) -> Tensor:
        return rho * strict_step(difference)

    return partial(quad_linear_step, delta=delta), weighted_strict_step


def extreme_frames(
    labels: Tensor, lengths: Tensor, top_rate: float, bottom_rate: float
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the indices of the most and the least similar target frames, each with a mask of filled slots.

    Args:
        labels: [B, P, T, S], with padding at negative infinity.
        lengths: [B, P], number of valid target frames.
    """
    # Computed in Python for every possible length, because single precision would round some products differently.
    sizes = range(labels.shape[3] + 1)
    top = torch.tensor([max(1, round(top_rate * n)) for n in sizes], device=labels.device)
    bottom = torch.tensor([max(1, round(bottom_rate * n)) for n in sizes], device=labels.device)
    order = labels.argsort(dim=3, descending=True, stable=True)
    tops, bottoms = top[lengths][..., None, None], bottom[lengths][..., None, None]
    lengths = lengths[..., None, None]
    shape = order.shape[:3]

    first = torch.arange(max(1, round(top_rate * sizes[-1])), device=labels.device)
    is_top = first < torch.minimum(tops, lengths)
    last = lengths - 1 - torch.arange(max(1, round(bottom_rate * sizes[-1])), device=labels.device)
    # In a short target, a frame could be both; it is kept only as a positive.
    is_bottom = (last >= lengths - bottoms) & (last >= tops)
    last = last.clamp(min=0).expand(*shape, -1)
    return (
        (order[..., : first.numel()], is_top.expand(*shape, -1)),
        (order.gather(3, last), is_bottom.expand(*shape, -1)),
    )


def frame_risks(
    candidates: Tensor,
    positives: tuple[Tensor, Tensor],
    negatives: tuple[Tensor, Tensor],
    negative_step: StepFunction,
    positive_step: StepFunction,
) -> Tensor:
    """Compute the risk [B, P, T] of each query frame for candidate pairs [B, P, T, S]."""
    top, bottom = positives[0].shape[3], negatives[0].shape[3]
    risks = map_row_blocks(
        partial(list_risk, negative_step=negative_step, positive_step=positive_step),
        # Unfilled slots may refer to padding, whose scores are arbitrary.
        candidates.gather(3, positives[0]).masked_fill(~positives[1], 0.0).flatten(0, 2),
        positives[1].flatten(0, 2),
        candidates.gather(3, negatives[0]).masked_fill(~negatives[1], 0.0).flatten(0, 2),
        negatives[1].flatten(0, 2),
        pairs_per_row=top * (top + bottom),
    )
    return risks.view(candidates.shape[:3])


def check_frame_arguments(frame_scores: Tensor, reference_scores: Tensor, relevance: Tensor, rates: float) -> None:
    """Raise :class:`InvalidArgumentError` unless shapes match and no frame can be both positive and negative."""
    if (
        frame_scores.ndim != 4
        or frame_scores.shape != reference_scores.shape
        or frame_scores.shape[:2] != relevance.shape
        or frame_scores.numel() == 0
    ):
        raise InvalidArgumentError(
            "frame and reference scores must have the same shape [queries, targets, frames, frames], not empty, and "
            f"relevance [queries, targets], got {tuple(frame_scores.shape)}, {tuple(reference_scores.shape)} and "
            f"{tuple(relevance.shape)}"
        )
    if rates > 1.0 + 1e-9:
        raise InvalidArgumentError(f"top_rate + bottom_rate must be at most 1, got {rates}")
