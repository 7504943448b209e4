"""The quadlet and the radial loss summed over *every* valid quadlet of a batch, exactly.

Labels have two levels or more, [N, L]: column 0 is the category; positives agree in every column, intermediates in
the category but not in every column, negatives differ in the category. Distances are squared Euclidean, embeddings
are used as they are. Every loss here is linear in the squared distances once it is known which hinges are active, so
it is computed as (coefficients * distances).sum() with coefficients found by counting, without gradient.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses._common import Pairs, check_choice, resolve_pairs, squared_distances
from vidkin.metric.losses._hinge_sums import count_active_hinges
from vidkin.metric.losses._radial_sums import radial_coefficients
from vidkin.metric.losses.tuples import check_gaps, check_radial

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
    pairs = _resolve(embeddings, labels, reference, reference_labels, self_offset, reduction)
    positives, intermediates, negatives = _masks(pairs)
    distances = squared_distances(pairs.queries, pairs.references)
    per_query = [mask.sum(dim=1).to(distances.dtype) for mask in (positives, intermediates, negatives)]
    total = (per_query[0] * per_query[1] * per_query[2]).sum()
    scale = _scale(total, reduction)

    # A hinge of (q, p, n) stands in as many quadlets as q has intermediates, one of (q, p, i) in as many as q has
    # negatives, one of (p, i, n) in as many as there are queries of p's class.
    first = count_active_hinges(distances, positives, negatives, g1)
    second = count_active_hinges(distances, positives, intermediates, g2)
    loss = (first.row_sums(distances, g1) * (per_query[1] * scale)).sum()
    loss = loss + (second.row_sums(distances, g2) * (per_query[2] * scale)).sum()

    among, same_class, same_category = _among_references(pairs, distances, reference_labels)
    third = count_active_hinges(among, same_category & ~same_class, ~same_category, g3)
    queries_of = positives.sum(dim=0).to(distances.dtype)
    return loss + (third.row_sums(among, g3) * (queries_of * scale)).sum()


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
    pairs = _resolve(embeddings, labels, reference, reference_labels, self_offset, reduction)
    positives, intermediates, negatives = _masks(pairs)
    distances = squared_distances(pairs.queries, pairs.references)
    per_query = [mask.sum(dim=1).to(distances.dtype) for mask in (positives, intermediates, negatives)]
    total = (per_query[0] * per_query[1] * per_query[2]).sum()
    scale = _scale(total, reduction)

    triplets = count_active_hinges(distances, positives, intermediates, margin)
    loss = (triplets.row_sums(distances, margin) * (per_query[2] * scale)).sum()

    among, _, _ = _among_references(pairs, distances, reference_labels)
    coefficients = radial_coefficients(distances, among, positives, intermediates, negatives, c=c)
    from_radius, among_radius = distances, among
    if detach_radius:
        from_radius, among_radius = distances.detach(), among.detach()
    for weights, values in (
        (coefficients.negative_query, distances),
        (coefficients.negative_reference, among),
        (coefficients.radius_query, from_radius),
        (coefficients.radius_reference, among_radius),
    ):
        loss = loss + (weights * scale * values).sum()
    return loss


class AllQuadletsLoss(nn.Module):
    """Quadlet or radial loss over every valid quadlet of a batch: no sampling noise, exact value and gradient.

    ``form="quadlet"``: the mean of :class:`QuadletLoss` over all (q, p, i, n). Each of its three hinges concerns
    three of the four items, so the sum over all O(N^4) quadlets takes three sorts: O(N^2 log N) time, O(N^2)
    memory.

    ``form="radial"``: the mean of :class:`RadialLoss` over all (q, p, i, n). Its hinge concerns all four items, so
    the T triplets (q, p, i) are gone through in blocks, each against all M references: O(T M) time, O(M^2) memory.
    With k items a subcategory and s subcategories a category T is N k^2 s: small for P x K batches, cubic when a
    batch has a single category with many items. Listing the triplets reads their number from the device.

    Args:
        form: "quadlet" or "radial".
        g1, g2, g3: Gaps of the quadlet form, ``0 <= g2 <= g3 <= g1``.
        c, margin, detach_radius: Settings of the radial form, see :class:`RadialLoss`; where points tie for R the
            whole subgradient goes to one of them.
        reduction: "mean" over all valid quadlets or "sum".

    Called with ``(embeddings [N, D], labels [N, L >= 2], reference=None, reference_labels=None, self_offset=None)``.
    With a reference set q is a query and p, i, n are references; ``self_offset`` is the reference row of the first
    query when the queries stand among them, None when they do not. Returns a scalar, 0 with a gradient attached when
    there is no quadlet.

    Raises:
        InvalidArgumentError: Labels have one level, shapes do not fit, gaps are out of order.

    Source: Radial loss for learning fine-grained video similarity metric (losses); sums over all tuples are ours.
    """

    def __init__(
        self,
        form: Form = "quadlet",
        *,
        g1: float = 0.7,
        g2: float = 0.3,
        g3: float = 0.5,
        c: float = 3.0,
        margin: float = 0.3,
        detach_radius: bool = False,
        reduction: TotalReduction = "mean",
    ) -> None:
        super().__init__()
        check_choice("form", form, get_args(Form))
        check_choice("reduction", reduction, get_args(TotalReduction))
        check_gaps(g1, g2, g3)
        check_radial(c, margin)
        self.form: Form = form
        self.g1, self.g2, self.g3 = g1, g2, g3
        self.c, self.margin, self.detach_radius = c, margin, detach_radius
        self.reduction: TotalReduction = reduction

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        self_offset: int | None = None,
    ) -> Tensor:
        if self.form == "quadlet":
            return all_quadlets_loss(
                embeddings,
                labels,
                reference,
                reference_labels,
                g1=self.g1,
                g2=self.g2,
                g3=self.g3,
                self_offset=self_offset,
                reduction=self.reduction,
            )
        return all_quadlets_radial_loss(
            embeddings,
            labels,
            reference,
            reference_labels,
            c=self.c,
            margin=self.margin,
            detach_radius=self.detach_radius,
            self_offset=self_offset,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        if self.form == "quadlet":
            return f"form='quadlet', g1={self.g1}, g2={self.g2}, g3={self.g3}"
        return f"form='radial', c={self.c}, margin={self.margin}, detach_radius={self.detach_radius}"


def _resolve(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None,
    reference_labels: Tensor | None,
    self_offset: int | None,
    reduction: TotalReduction,
) -> Pairs:
    check_choice("reduction", reduction, get_args(TotalReduction))
    if labels.ndim != 2 or labels.shape[1] < 2:
        raise InvalidArgumentError(
            f"labels have shape {tuple(labels.shape)}, quadlets need [N, 2] or more levels: (category, subcategory)"
        )
    return resolve_pairs(embeddings, labels, reference, reference_labels, self_offset)


def _masks(pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
    return pairs.positives, pairs.same_category & ~pairs.same_class, ~pairs.same_category


def _scale(total: Tensor, reduction: TotalReduction) -> Tensor:
    return 1.0 / total.clamp_min(1.0) if reduction == "mean" else torch.ones_like(total)


def _among_references(
    pairs: Pairs, distances: Tensor, reference_labels: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Distances [M, M] among the references, and which of them share the class and the category."""
    if pairs.within or reference_labels is None:
        return distances, pairs.same_class, pairs.same_category
    among = resolve_pairs(pairs.references, reference_labels, None, None, None)
    return squared_distances(among.queries, among.references), among.same_class, among.same_category
