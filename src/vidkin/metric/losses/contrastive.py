"""Contrastive losses with a softmax or a logarithm: InfoNCE, and self-similarity with hard negatives."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Positive, Reduction, options_of, reduce_queries
from vidkin.metric.losses.score_pairs import LossOnScores, check_scores, lowest, score_pairs, self_pair_mask

Denominator = Literal["negatives", "all"]


@check_arguments
def info_nce_loss(
    scores: Tensor,
    relevance: Tensor,
    tau: Positive = 0.03,
    *,
    denominator: Denominator = "negatives",
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """InfoNCE with any number of positives.

    ::

        "negatives"  loss_k = 1/|P| sum_{i in P} -log( e^{s_ki/tau} / (e^{s_ki/tau} + sum_{j in Ng} e^{s_kj/tau}) )
        "all"        loss_k = 1/|P| sum_{i in P} -log( e^{s_ki/tau} / sum_{j in P u Ng} e^{s_kj/tau} )

    The first form is used by S2VS and HAP-VR, and is NT-Xent (Chen et al., ICML 2020); the second is SupCon (Khosla et
    al., NeurIPS 2020), in which positives compete with each other. The loss is the mean over the queries that have a
    positive; 0 with a gradient if there are none. (Packages that average over positive pairs instead give more weight
    to large classes; for classes of equal size, the values agree.)

    Args:
        scores: [N, M], higher is more similar.
        relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
        tau: Temperature in units of the scores, above 0.
        denominator: "negatives" or "all".
        include_self: Keep a query in its own list, as a positive.
        self_offset: Query i is reference ``i + self_offset``.
        reduction: "mean" or "sum" over queries, or "none" for [N].
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    logits = pairs.scores / tau
    rivals = pairs.negative if denominator == "negatives" else pairs.negative | pairs.positive
    partition = torch.logsumexp(logits.masked_fill(~rivals, lowest(logits)), dim=1, keepdim=True)
    # log(1 + e^(partition - logit)) stays exact where e^logit overflows. The default threshold of softplus, 20, is too
    # low for double precision.
    costs = softplus(partition - logits, threshold=40.0) if denominator == "negatives" else partition - logits
    total = pairs.positive.sum(dim=1)
    values = costs.masked_fill(~pairs.positive, 0.0).sum(dim=1) / total.clamp(min=1)
    return reduce_queries(values, total > 0, reduction)


class InfoNCELoss(LossOnScores):
    """`info_nce_loss` as a module."""

    @options_of(info_nce_loss)
    def __init__(self) -> None:
        """Options as in `info_nce_loss`."""


@check_arguments
def self_hard_negative_loss(
    scores: Tensor,
    relevance: Tensor,
    floor: Positive = 1e-3,
    *,
    self_weight: float = 1.0,
    negative_weight: float = 1.0,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """SSHN from S2VS: weighted sum of `self_similarity_loss` and `hard_negative_loss`.

    Args:
        scores: [N, M] in [0, 1]; every query is one of the references.
        relevance: [N, M], 0 negative, above 0 positive, below 0 ignored.
        floor: Minimum argument of a logarithm, above 0; below it, the cost is constant and the gradient 0.
        self_weight: Weight of the self-similarity term.
        negative_weight: Weight of the hardest-negative term.
        self_offset: Query i is reference ``i + self_offset``; 0 for a square matrix.
        reduction: "mean" or "sum" over queries, or "none" for [N].
    """
    itself = self_similarity_loss(scores, relevance, floor=floor, self_offset=self_offset, reduction=reduction)
    hardest = hard_negative_loss(scores, relevance, floor=floor, self_offset=self_offset, reduction=reduction)
    return self_weight * itself + negative_weight * hardest


@check_arguments
def self_similarity_loss(
    scores: Tensor,
    relevance: Tensor,
    *,
    floor: Positive = 1e-3,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute ``-log max(s_kk, floor)``: a learned similarity of a video with itself should stay 1.

    Arguments are as for `self_hard_negative_loss`. The loss is 0 with a gradient for queries whose self-pair is
    ignored.
    """
    values = check_scores(scores, relevance)
    queries, references = values.shape
    if self_offset is None and queries != references:
        raise InvalidArgumentError(
            f"scores must be square unless self_offset says which reference each query is, got {tuple(scores.shape)}"
        )
    offset = self_offset or 0
    self_pair_mask(values, include_self=True, self_offset=offset)
    rows = torch.arange(queries, device=values.device)
    own = values[rows, rows + offset]
    counted = relevance[rows, rows + offset] >= 0
    return reduce_queries(-own.clamp(min=floor).log(), counted, reduction)


@check_arguments
def hard_negative_loss(
    scores: Tensor,
    relevance: Tensor,
    *,
    floor: Positive = 1e-3,
    include_self: bool = False,
    self_offset: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute ``-log max(1 - max_{j in Ng} s_kj, floor)``, which penalizes the most similar negative of each query.

    Arguments are as for `self_hard_negative_loss`; queries without a negative do not count.
    """
    pairs = score_pairs(scores, relevance, include_self=include_self, self_offset=self_offset)
    counted = pairs.negative.any(dim=1)
    hardest = pairs.scores.masked_fill(~pairs.negative, lowest(pairs.scores)).amax(dim=1)
    room = (1.0 - hardest.masked_fill(~counted, 0.0)).clamp(min=floor)
    return reduce_queries(-room.log(), counted, reduction)


class SelfHardNegativeLoss(LossOnScores):
    """`self_hard_negative_loss` as a module."""

    @options_of(self_hard_negative_loss)
    def __init__(self) -> None:
        """Options as in `self_hard_negative_loss`."""
