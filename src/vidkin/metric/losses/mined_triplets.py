"""Triplet losses that mine their triplets from a labeled batch: batch-hard, semi-hard, batch-all.

All take ``(embeddings [N, D], labels [N] or [N, L])``; with L label levels, two items have the same class if all levels
agree. Embeddings are not normalized. ``distance`` is "squared" Euclidean (the default of all losses here, d in [0, 4]
for unit vectors) or plain "euclidean" (gradient 0 between equal points).

**Reference set.** With ``reference [M, D]`` and ``reference_labels`` (such as a memory bank, or the batches of all
ranks), positives and negatives are taken from that set instead. If it contains the queries, ``self_offset`` is the row
of the first query, and query i ignores reference ``self_offset + i``. With ``self_offset=None``, no reference counts as
the query, so an equal vector of the same class is a positive.

A query without a positive or without a negative contributes nothing; if no query has both, the loss is 0 with a
gradient.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from vidkin._base.arguments import check_arguments
from vidkin.metric.losses.base import (
    Distance,
    NotNegative,
    Reduction,
    options_of,
    pairwise_distances,
    weighted_mean,
)
from vidkin.metric.losses.label_pairs import LossOnLabels, count_active_hinges, resolve_pairs

Average = Literal["active", "all"]


@check_arguments
def batch_hard_triplet_loss(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    margin: NotNegative | None = None,
    *,
    distance: Distance = "squared",
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compare the farthest positive and the nearest negative of each query; see :class:`BatchHardTripletLoss`."""
    pairs = resolve_pairs(embeddings, labels, reference, reference_labels, self_offset)
    distances = pairwise_distances(pairs.queries, pairs.references, distance)
    positives, negatives = pairs.positives, pairs.negatives
    if distances.shape[1] == 0:
        return weighted_mean(pairs.queries.sum(dim=1) * 0.0, torch.zeros_like(distances[:, :0]), reduction)
    farthest = torch.where(positives, distances, -torch.inf).argmax(dim=1, keepdim=True)
    nearest = torch.where(negatives, distances, torch.inf).argmin(dim=1, keepdim=True)
    gap = (distances.gather(1, farthest) - distances.gather(1, nearest)).squeeze(1)
    usable = positives.any(dim=1) & negatives.any(dim=1)
    values = F.softplus(gap) if margin is None else (gap + margin).relu()
    return weighted_mean(torch.where(usable, values, 0.0), usable, reduction)


@check_arguments
def semi_hard_triplet_loss(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    margin: NotNegative = 0.2,
    *,
    distance: Distance = "squared",
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compare each positive pair with its semi-hard negative; see :class:`SemiHardTripletLoss`."""
    pairs = resolve_pairs(embeddings, labels, reference, reference_labels, self_offset)
    distances = pairwise_distances(pairs.queries, pairs.references, distance)
    if distances.shape[1] == 0:
        return weighted_mean(pairs.queries.sum(dim=1) * 0.0, torch.zeros_like(distances[:, :0]), reduction)
    with torch.no_grad():
        negatives = pairs.negatives
        count = negatives.sum(dim=1, keepdim=True)
        ordered, columns = torch.where(negatives, distances, torch.inf).sort(dim=1)
        # The first negative that is farther than the positive, or the farthest negative if there is none.
        position = torch.searchsorted(ordered, distances, right=True).minimum(count - 1).clamp_min(0)
        chosen = columns.gather(1, position)
        usable = pairs.positives & (count > 0)
    values = (margin + distances - distances.gather(1, chosen)).relu()
    return weighted_mean(torch.where(usable, values, 0.0).sum(dim=1), usable, reduction)


@check_arguments
def batch_all_triplet_loss(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    margin: NotNegative = 0.2,
    *,
    distance: Distance = "squared",
    average: Average = "active",
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the hinges of all valid triplets in the batch; see :class:`BatchAllTripletLoss`."""
    pairs = resolve_pairs(embeddings, labels, reference, reference_labels, self_offset)
    distances = pairwise_distances(pairs.queries, pairs.references, distance)
    counts = count_active_hinges(distances, pairs.positives, pairs.negatives, margin)
    terms = counts.active if average == "active" else counts.valid
    return weighted_mean(counts.row_sums(distances, margin), terms, reduction)


class BatchHardTripletLoss(LossOnLabels):
    """Batch-hard triplet loss.

    For each query a with farthest positive p and nearest negative n: ``softplus(d(a, p) - d(a, n))`` (soft margin)
    or ``max(0, margin + d(a, p) - d(a, n))``. The mean is over the queries that have both, including zeros.

    Args:
        margin: None for the soft margin ``ln(1 + exp(.))``, otherwise the hard margin (0.2 in the two-head recipe).
        distance: "squared" or "euclidean"; Hermans et al. use "euclidean".
        reduction: "mean", "sum", or "none" for one value per query [N].

    Call it with ``(embeddings, labels, reference=None, reference_labels=None, self_offset=None)``; it returns a scalar
    (or [N]), 0 or more. Cost: O(N M). Long training with the soft margin can collapse to a single point; monitor the
    mean distance.

    Source: Hermans, Beyer, Leibe, In defense of the triplet loss for person re-identification, 2017.
    """

    @options_of(batch_hard_triplet_loss)
    def __init__(self) -> None:
        """Options as in `batch_hard_triplet_loss`."""


class SemiHardTripletLoss(LossOnLabels):
    """Semi-hard triplet loss.

    Each ordered positive pair (a, p) gets one negative n: the nearest negative that is farther than p (semi-hard if
    within the margin, else easy with loss 0), or, if there is none, the farthest negative (hard). The loss is
    ``max(0, margin + d(a, p) - d(a, n))``; the mean is over all positive pairs that have a negative, including zeros.

    Args:
        margin: Margin, 0 or more; 0.2 is the published value for squared distances of unit vectors.
        distance: "squared" (as published) or "euclidean".
        reduction: "mean" over pairs, "sum", or "none" for the sum over each query's pairs [N].

    Call it with ``(embeddings, labels, reference=None, reference_labels=None, self_offset=None)``; it returns a scalar
    (or [N]), 0 or more. Cost: O(N M log M).

    Source: Schroff, Kalenichenko, Philbin, FaceNet, CVPR 2015; priority as in In defense of the triplet loss for
    visual recognition (two-head classifier).
    """

    @options_of(semi_hard_triplet_loss)
    def __init__(self) -> None:
        """Options as in `semi_hard_triplet_loss`."""


class BatchAllTripletLoss(LossOnLabels):
    """Batch-all triplet loss: ``max(0, margin + d(a, p) - d(a, n))`` over all valid triplets, exactly.

    Triplets are never enumerated: the distances of each query are sorted and its active hinges counted, so a batch
    takes O(N M log M) time and O(N M) memory instead of O(N^3) each, with the same value and gradient.

    Args:
        margin: Margin, 0 or more.
        distance: "squared" or "euclidean".
        average: "active" divides by the number of triplets with a loss above 0 (which keeps the gradient from vanishing
            late in training), "all" by the number of valid triplets.
        reduction: "mean" according to ``average``, "sum", or "none" for the sum over each query's triplets [N].

    Call it with ``(embeddings, labels, reference=None, reference_labels=None, self_offset=None)``; it returns a scalar
    (or [N]).

    Source: Hermans, Beyer, Leibe, In defense of the triplet loss for person re-identification, 2017.
    """

    @options_of(batch_all_triplet_loss)
    def __init__(self) -> None:
        """Options as in `batch_all_triplet_loss`."""
