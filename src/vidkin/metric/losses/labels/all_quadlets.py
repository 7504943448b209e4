"""The quadlet and the radial loss summed over *every* valid quadlet of a batch, exactly.

Labels have two levels or more, [N, L]: column 0 is the category; positives agree in every column, intermediates in
the category but not in every column, negatives differ in the category. Distances are squared Euclidean, embeddings
are used as they are. Given which hinges are active, every loss here is linear in the squared distances, so it
is computed as (coefficients * distances).sum() with coefficients found by counting, without gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.distances import squared_distances
from vidkin.metric.losses.labels.hinge_sums import count_active_hinges
from vidkin.metric.losses.labels.pairs import LossOnLabels, resolve_pairs
from vidkin.metric.losses.labels.radial_sums import radial_coefficients
from vidkin.metric.losses.loss import NotNegative, Positive, options_of
from vidkin.metric.losses.tuples.quadlets import check_gaps, warn_without_guarantee

__all__ = ["AllQuadletsLoss", "all_quadlets_loss", "all_quadlets_radial_loss"]

Form = Literal["quadlet", "radial"]
TotalReduction = Literal["mean", "sum"]


def all_quadlets_loss(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    g1: float = 0.7,
    g2: float = 0.3,
    g3: float = 0.5,
    self_offset: int | None = None,
    reduction: TotalReduction = "mean",
) -> Tensor:
    """The quadlet loss over all quadlets, O(N M log M + M^2 log M). See :class:`AllQuadletsLoss`."""
    batch = _Batch.prepare(embeddings, labels, reference, reference_labels, self_offset, reduction)

    # A hinge of (q, p, n) is part of as many quadlets as q has intermediates, one of (q, p, i) of as many as q has
    # negatives, one of (p, i, n) of as many as there are queries of the class of p.
    first = count_active_hinges(batch.distances, batch.positives, batch.negatives, g1)
    second = count_active_hinges(batch.distances, batch.positives, batch.intermediates, g2)
    loss = (first.row_sums(batch.distances, g1) * batch.intermediate_weights).sum()
    loss = loss + (second.row_sums(batch.distances, g2) * batch.negative_weights).sum()

    third = count_active_hinges(batch.among, batch.among_intermediates, batch.among_negatives, g3)
    queries_of = batch.positives.sum(dim=0).to(batch.distances.dtype)
    return loss + (third.row_sums(batch.among, g3) * (queries_of * batch.scale)).sum()


def all_quadlets_radial_loss(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    c: float = 3.0,
    margin: float = 0.3,
    detach_radius: bool = False,
    self_offset: int | None = None,
    reduction: TotalReduction = "mean",
) -> Tensor:
    """The radial loss over all quadlets, O(T M) for T triplets (q, p, i). See :class:`AllQuadletsLoss`."""
    batch = _Batch.prepare(embeddings, labels, reference, reference_labels, self_offset, reduction)
    distances = batch.distances
    triplets = count_active_hinges(distances, batch.positives, batch.intermediates, margin)
    loss = (triplets.row_sums(distances, margin) * batch.negative_weights).sum()

    among = batch.among
    coefficients = radial_coefficients(
        distances, among, batch.positives, batch.intermediates, batch.negatives, c=c
    )
    from_radius, among_radius = distances, among
    if detach_radius:
        from_radius, among_radius = distances.detach(), among.detach()
    for weights, values in (
        (coefficients.negative_query, distances),
        (coefficients.negative_reference, among),
        (coefficients.radius_query, from_radius),
        (coefficients.radius_reference, among_radius),
    ):
        loss = loss + (weights * batch.scale * values).sum()
    return loss


def _all_quadlets(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    form: Form = "quadlet",
    *,
    g1: float = 0.7,
    g2: float = 0.3,
    g3: float = 0.5,
    c: Positive = 3.0,
    margin: NotNegative = 0.3,
    detach_radius: bool = False,
    self_offset: int | None = None,
    reduction: TotalReduction = "mean",
) -> Tensor:
    """One of the two losses."""
    tensors = (embeddings, labels, reference, reference_labels)
    if form == "quadlet":
        return all_quadlets_loss(*tensors, g1=g1, g2=g2, g3=g3, self_offset=self_offset, reduction=reduction)
    return all_quadlets_radial_loss(
        *tensors,
        c=c,
        margin=margin,
        detach_radius=detach_radius,
        self_offset=self_offset,
        reduction=reduction,
    )


class AllQuadletsLoss(LossOnLabels):
    """Quadlet or radial loss over every valid quadlet of a batch: no sampling noise, exact value and gradient.

    ``form="quadlet"``: the mean of :class:`QuadletLoss` over all (q, p, i, n). Each of its three hinges concerns
    three of the four items, so the sum over all O(N^4) quadlets takes three sorts: O(N^2 log N) time, O(N^2)
    memory.

    ``form="radial"``: the mean of :class:`RadialLoss` over all (q, p, i, n). Its hinge concerns all four items, so
    the T triplets (q, p, i) are processed in blocks, each against all M references: O(T M) time, O(M^2) memory.
    With k items per subcategory and s subcategories per category T is N k^2 s: small for P x K batches, cubic when a
    batch has a single category with many items. Listing the triplets reads their number from the device.

    Args:
        form: "quadlet" or "radial".
        g1, g2, g3: Gaps of the quadlet form, ``0 <= g2 <= g3 <= g1``.
        c, margin, detach_radius: Settings of the radial form, see :class:`RadialLoss`; where points tie for R the
            whole subgradient goes to one of them.
        reduction: "mean" over all valid quadlets or "sum".

    Called with ``(embeddings [N, D], labels [N, L >= 2], reference=None, reference_labels=None, self_offset=None)``.
    With a reference set q is a query and p, i, n are references; ``self_offset`` is the reference row of the first
    query if the queries are among them, else None. Returns a scalar, 0 with a gradient if there is no quadlet.

    Raises:
        InvalidArgumentError: Labels have one level, shapes do not fit, gaps are out of order.

    Source: Radial loss for learning fine-grained video similarity metric (losses); sums over all tuples are ours.
    """

    compute = staticmethod(_all_quadlets)

    @options_of(_all_quadlets)
    def __init__(self) -> None:
        check_gaps(self.g1, self.g2, self.g3)
        warn_without_guarantee(self.c)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """The parts of a batch used by both losses.

    Attributes:
        distances: [N, M], squared distances from query to reference.
        positives, intermediates, negatives: [N, M] bool, relation of each reference to the query.
        among: [M, M], squared distances among the references.
        among_intermediates, among_negatives: [M, M] bool, the same relations among the references.
        scale: Scalar, 1 over the number of quadlets, or 1 for a sum.
        intermediate_weights, negative_weights: [N], the number of intermediates and of negatives of each query, scaled.
    """

    distances: Tensor
    positives: Tensor
    intermediates: Tensor
    negatives: Tensor
    among: Tensor
    among_intermediates: Tensor
    among_negatives: Tensor
    scale: Tensor
    intermediate_weights: Tensor
    negative_weights: Tensor

    @classmethod
    def prepare(
        cls,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None,
        reference_labels: Tensor | None,
        self_offset: int | None,
        reduction: TotalReduction,
    ) -> _Batch:
        check_choice("reduction", reduction, get_args(TotalReduction))
        if labels.ndim != 2 or labels.shape[1] < 2:
            raise InvalidArgumentError(
                "labels must have two levels or more, (category, subcategory), shape [N, L], "
                f"got {tuple(labels.shape)}"
            )
        pairs = resolve_pairs(embeddings, labels, reference, reference_labels, self_offset)
        masks = pairs.positives, pairs.same_category & ~pairs.same_class, ~pairs.same_category
        distances = squared_distances(pairs.queries, pairs.references)
        positives, intermediates, negatives = (mask.sum(dim=1).to(distances.dtype) for mask in masks)
        total = (positives * intermediates * negatives).sum()
        scale = 1.0 / total.clamp_min(1.0) if reduction == "mean" else torch.ones_like(total)
        among, among_distances = pairs, distances
        if reference is not None and reference_labels is not None:
            among = resolve_pairs(pairs.references, reference_labels, None, None, None)
            among_distances = squared_distances(among.queries, among.references)
        return cls(
            distances,
            *masks,
            among=among_distances,
            among_intermediates=among.same_category & ~among.same_class,
            among_negatives=~among.same_category,
            scale=scale,
            intermediate_weights=intermediates * scale,
            negative_weights=negatives * scale,
        )
