"""Losses that compare pairs of scores using margins: contrastive, triplet, circle."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from vidkin._base.arguments import check_arguments
from vidkin.metric.losses.base import NotNegative, Positive, Reduction, options_of, reduce_queries
from vidkin.metric.losses.score_pairs import (
    LossOnScores,
    ScorePairs,
    gather_marked,
    lowest,
    map_row_blocks,
    score_pairs,
)

CircleForm = Literal["query", "global"]
TripletMining = Literal["all", "hard"]


@check_arguments
def contrastive_loss(
    scores: Tensor,
    relevance: Tensor,
    positive_margin: float = 1.0,
    negative_margin: float = 0.0,
    *,
    active_only: bool = False,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Contrastive loss on scores (Hadsell et al., CVPR 2006, with linear hinges).

    ``mean_{positive pairs} max(0, positive_margin - s) + mean_{negative pairs} max(0, s - negative_margin)``.
    For distances d with margins (0, m), scores ``1 - d`` with margins (1, 1 - m) give the same values.

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        positive_margin: Positives with at least this score cost nothing.
        negative_margin: Negatives with at most this score cost nothing. Use 0 for cosines, about 0.5 if unrelated
            pairs score well above 0.
        active_only: Divide by the number of pairs with a loss above 0 instead of by all pairs, which keeps the gradient
            from vanishing as pairs are learned.
        include_self: Keep the pairs of a query with itself.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" as above, "sum" over all pairs, or "none" for [N, M] with 0 for ignored pairs.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    attraction = (positive_margin - pairs.scores).clamp(min=0.0) * pairs.positive
    repulsion = (pairs.scores - negative_margin).clamp(min=0.0) * pairs.negative
    if reduction == "none":
        return attraction + repulsion
    if reduction == "sum":
        return attraction.sum() + repulsion.sum()
    near = attraction > 0 if active_only else pairs.positive
    far = repulsion > 0 if active_only else pairs.negative
    return attraction.sum() / near.sum().clamp(min=1) + repulsion.sum() / far.sum().clamp(min=1)


class ContrastiveLoss(LossOnScores):
    """`contrastive_loss` as a module."""

    @options_of(contrastive_loss)
    def __init__(self) -> None:
        """Options as in `contrastive_loss`."""


@check_arguments
def score_triplet_loss(
    scores: Tensor,
    relevance: Tensor,
    margin: NotNegative = 0.2,
    *,
    mining: TripletMining = "all",
    include_self: bool = False,
    self_offset: int | None = None,
    max_positives: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Triplet loss on scores: ``max(0, margin + s_kn - s_kp)`` for positives p and negatives n of query k.

    "all" uses the mean over the triplets of a query, "hard" only the triplet of its lowest-scoring positive and
    highest-scoring negative. The loss is the mean over the queries that have both a positive and a negative.

    Args:
        scores: [N, M], higher is more similar (for a triplet loss on distances, pass the negated distances).
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        margin: Target gap in units of the scores, at least 0.
        mining: "all" or "hard".
        include_self: Keep a query in its own list.
        self_offset: Query i is reference ``i + self_offset``.
        max_positives: For "all", an upper bound on the number of positives per query, see `quad_linear_ap_loss`.
        reduction: "mean" or "sum" over queries, or "none" for [N].

    Cost: O(N M P) time for "all", O(N M) for "hard"; O(N M) memory plus a block.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    if mining == "hard":
        low = lowest(pairs.scores)
        farthest = pairs.scores.masked_fill(~pairs.positive, -low).amin(dim=1)
        nearest = pairs.scores.masked_fill(~pairs.negative, low).amax(dim=1)
        values = (margin + nearest - farthest).clamp(min=0.0)
    else:
        values = all_triplets(pairs, margin, max_positives)
    counted = pairs.positive.any(dim=1) & pairs.negative.any(dim=1)
    return reduce_queries(values, counted, reduction)


class ScoreTripletLoss(LossOnScores):
    """`score_triplet_loss` as a module."""

    @options_of(score_triplet_loss)
    def __init__(self) -> None:
        """Options as in `score_triplet_loss`."""


@check_arguments
def circle_loss(
    scores: Tensor,
    relevance: Tensor,
    margin: float = 0.25,
    gamma: Positive = 256.0,
    *,
    form: CircleForm = "query",
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Circle loss (Sun et al., CVPR 2020) in its two published forms.

    ::

        softplus( logsumexp_n gamma a_n (s_n - m) + logsumexp_p -gamma a_p (s_p - 1 + m) )
        a_p = max(0, 1 + m - s_p),  a_n = max(0, s_n + m),  both without gradient

    "query" uses p and n of one query and averages over the queries that have both; "global" uses p and n of the whole
    matrix, like the authors' example. That example counts each unordered pair once; to reproduce it, set the relevance
    of the lower triangle to -1, because otherwise each pair of a symmetric matrix counts twice.

    Args:
        scores: [N, M], cosines.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        margin: m; 0.25 for faces, 0.4 for fine-grained retrieval.
        gamma: Scale; 256 for faces, 80 for fine-grained retrieval.
        form: "query" or "global".
        include_self: Keep the pairs of a query with itself.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: For "query": "mean", "sum", or "none" for [N]. "global" always returns a scalar.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    values = pairs.scores
    attraction = gamma * (1.0 + margin - values.detach()).clamp(min=0.0) * (1.0 - margin - values)
    repulsion = gamma * (values.detach() + margin).clamp(min=0.0) * (values - margin)
    low = lowest(values)
    attraction = attraction.masked_fill(~pairs.positive, low)
    repulsion = repulsion.masked_fill(~pairs.negative, low)
    positive, negative = pairs.positive, pairs.negative
    if form == "global":
        attraction, repulsion = attraction.view(1, -1), repulsion.view(1, -1)
        positive, negative = positive.view(1, -1), negative.view(1, -1)
    counted = positive.any(dim=1) & negative.any(dim=1)
    logits = torch.logsumexp(attraction, dim=1) + torch.logsumexp(repulsion, dim=1)
    # Queries that do not count have extreme logits, which would give NaN gradients in softplus.
    reduced = reduce_queries(softplus(logits.masked_fill(~counted, 0.0), threshold=40.0), counted, reduction)
    return reduced.sum() if form == "global" else reduced


class CircleLoss(LossOnScores):
    """`circle_loss` as a module."""

    @options_of(circle_loss)
    def __init__(self) -> None:
        """Options as in `circle_loss`."""


def all_triplets(pairs: ScorePairs, margin: float, max_positives: int | None) -> Tensor:
    """Compute the mean hinge [N] over the triplets of each query; 0 for queries without triplets."""
    columns, filled = gather_marked(pairs.positive, max_positives)
    return map_row_blocks(
        partial(triplet_hinges, margin=margin),
        pairs.scores.gather(1, columns),
        filled,
        pairs.scores,
        pairs.negative,
        pairs_per_row=columns.shape[1] * pairs.scores.shape[1],
    )


def triplet_hinges(
    positives: Tensor, is_positive: Tensor, scores: Tensor, is_negative: Tensor, *, margin: float
) -> Tensor:
    """Compute the mean hinge [N] of rows of positive scores [N, P] against rows of scores [N, M]."""
    hinges = (margin + scores.unsqueeze(1) - positives.unsqueeze(2)).clamp(min=0.0)
    total = ((hinges * is_negative.unsqueeze(1)).sum(dim=2) * is_positive).sum(dim=1)
    return total / (is_positive.sum(dim=1) * is_negative.sum(dim=1)).clamp(min=1)
