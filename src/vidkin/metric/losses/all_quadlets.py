"""Quadlet and radial losses over all valid quadlets of a batch, without enumerating the quadlets.

The radial hinges are summed using coefficients of squared distances d. With X the centroid of q, p, i and
s = d(q, p) + d(q, i) + d(p, i): ``||n - X||^2 = (d(q, n) + d(p, n) + d(i, n)) / 3 - s / 9`` and
``||q - X||^2 = (2 d(q, p) + 2 d(q, i) - d(p, i)) / 9``, likewise for p and i. Once it is known which hinges are active
and which point attains R, the sum of the hinges is linear in d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import NotNegative, Positive, options_of, squared_distances
from vidkin.metric.losses.label_pairs import LossOnLabels, count_active_hinges, resolve_pairs
from vidkin.metric.losses.quadlets import check_gaps, warn_without_guarantee

# Elements per block of (triplets x references); limits the temporary memory to a few dozen MiB.
BLOCK_ELEMENTS = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class RadialCoefficients:
    """Coefficients of each squared distance in the active radial hinges; treated as constants in the backward pass.

    Attributes:
        negative_query: [N, M], coefficients of the query-reference distances in -||n - X||^2.
        negative_reference: [M, M], coefficients of the distances between references in the same term.
        radius_query: [N, M], coefficients of the query-reference distances in (c R)^2.
        radius_reference: [M, M], coefficients of the distances between references in the same term.
    """

    negative_query: Tensor
    negative_reference: Tensor
    radius_query: Tensor
    radius_reference: Tensor


@torch.no_grad()
def radial_coefficients(
    distances: Tensor, among: Tensor, positives: Tensor, intermediates: Tensor, negatives: Tensor, *, c: float
) -> RadialCoefficients:
    """Compute the coefficients of ``sum of max(0, (c R)^2 - ||n - X||^2)`` over all (q, p, i, n).

    Args:
        distances: [N, M] squared distances from queries to references.
        among: [M, M] squared distances between references.
        positives, intermediates, negatives: [N, M] bool, relation of each reference to the query.
        c: Multiplier of the radius.
    """
    sums = RadialCoefficients(
        torch.zeros_like(distances),
        torch.zeros_like(among),
        torch.zeros_like(distances),
        torch.zeros_like(among),
    )
    references = distances.shape[1]
    # Queries without a negative are part of no quadlet.
    listed = (positives & negatives.any(dim=1, keepdim=True)).nonzero()
    block = max(1, BLOCK_ELEMENTS // max(references, 1))
    for pairs in torch.split(listed, block):
        rows, third = intermediates[pairs[:, 0]].nonzero().unbind(dim=1)
        triplets = torch.stack([pairs[rows, 0], pairs[rows, 1], third], dim=1)
        for part in torch.split(triplets, block):
            q, p, i = part.unbind(dim=1)
            qp, qi, pi = distances[q, p], distances[q, i], among[p, i]
            # Squared distances of q, p and i to X; in each, the distances from the point itself count twice.
            to_center = torch.stack([2 * qp + 2 * qi - pi, 2 * qp + 2 * pi - qi, 2 * qi + 2 * pi - qp]) / 9.0
            radius, attained = to_center.max(dim=0)
            negative_to_center = (distances[q] + among[p] + among[i]) / 3.0 - ((qp + qi + pi) / 9.0)[:, None]
            active = (c * c * radius[:, None] > negative_to_center) & negatives[q]

            used = active.to(distances.dtype)
            count = used.sum(dim=1)
            others = used / -3.0
            sums.negative_query.index_add_(0, q, others)
            sums.negative_reference.index_add_(0, p, others)
            sums.negative_reference.index_add_(0, i, others)
            _add_pairs(sums.negative_query, q, p, count / 9.0)
            _add_pairs(sums.negative_query, q, i, count / 9.0)
            _add_pairs(sums.negative_reference, p, i, count / 9.0)

            weight = c * c / 9.0 * count
            _add_pairs(sums.radius_query, q, p, torch.where(attained == 2, -weight, 2 * weight))
            _add_pairs(sums.radius_query, q, i, torch.where(attained == 1, -weight, 2 * weight))
            _add_pairs(sums.radius_reference, p, i, torch.where(attained == 0, -weight, 2 * weight))
    return sums


def _add_pairs(matrix: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> None:
    matrix.view(-1).index_add_(0, rows * matrix.shape[1] + columns, values)


# Labels have two or more levels, [N, L]: column 0 is the category; positives agree in every column, intermediates in
# the category but not in every column, negatives differ in the category. Distances are squared Euclidean, and
# embeddings are not normalized. Once the active hinges are known, each loss is linear in the squared distances, so it
# is computed as (coefficients * distances).sum(), with coefficients obtained by counting, without gradient.


Form = Literal["quadlet", "radial"]

TotalReduction = Literal["mean", "sum"]


@check_arguments
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
    """Compute the quadlet loss over all quadlets in O(N M log M + M^2 log M); see :class:`AllQuadletsLoss`."""
    batch = _Batch.prepare(embeddings, labels, reference, reference_labels, self_offset, reduction)

    # A hinge of (q, p, n) occurs in one quadlet per intermediate of q, a hinge of (q, p, i) in one per negative of q,
    # and a hinge of (p, i, n) in one per query in the class of p.
    first = count_active_hinges(batch.distances, batch.positives, batch.negatives, g1)
    second = count_active_hinges(batch.distances, batch.positives, batch.intermediates, g2)
    loss = (first.row_sums(batch.distances, g1) * batch.intermediate_weights).sum()
    loss = loss + (second.row_sums(batch.distances, g2) * batch.negative_weights).sum()

    third = count_active_hinges(batch.among, batch.among_intermediates, batch.among_negatives, g3)
    queries_of = batch.positives.sum(dim=0).to(batch.distances.dtype)
    return loss + (third.row_sums(batch.among, g3) * (queries_of * batch.scale)).sum()


@check_arguments
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
    """Compute the radial loss over all quadlets in O(T M) for T triplets (q, p, i); see :class:`AllQuadletsLoss`."""
    batch = _Batch.prepare(embeddings, labels, reference, reference_labels, self_offset, reduction)
    distances = batch.distances
    triplets = count_active_hinges(distances, batch.positives, batch.intermediates, margin)
    loss = (triplets.row_sums(distances, margin) * batch.negative_weights).sum()

    among = batch.among
    coefficients = radial_coefficients(distances, among, batch.positives, batch.intermediates, batch.negatives, c=c)
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
    """Compute the quadlet or the radial loss, depending on ``form``."""
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
    """Quadlet or radial loss over every valid quadlet of a batch: exact value and gradient, without sampling noise.

    ``form="quadlet"``: the mean of :class:`QuadletLoss` over all (q, p, i, n). Each of the three hinges involves
    three of the four items, so the sum over all O(N^4) quadlets takes three sorts: O(N^2 log N) time and O(N^2)
    memory.

    ``form="radial"``: the mean of :class:`RadialLoss` over all (q, p, i, n). Its hinge involves all four items, so
    the T triplets (q, p, i) are processed in blocks, each against all M references: O(T M) time and O(M^2) memory.
    With k items per subcategory and s subcategories per category, T is N k^2 s: small for P x K batches, cubic if a
    batch has a single category with many items. Listing the triplets synchronizes with an accelerator.

    Args:
        form: "quadlet" or "radial".
        g1, g2, g3: Gaps of the quadlet form, ``0 <= g2 <= g3 <= g1``.
        c, margin, detach_radius: Settings of the radial form, see :class:`RadialLoss`; if points tie for R, one of
            them gets the whole subgradient.
        reduction: "mean" over all valid quadlets, or "sum".

    Call it with ``(embeddings [N, D], labels [N, L >= 2], reference=None, reference_labels=None, self_offset=None)``.
    With a reference set, q is a query and p, i, n are references; ``self_offset`` is the reference row of the first
    query if the queries are among the references, else None. Returns a scalar; 0 with a gradient if there is no
    quadlet.

    Raises:
        InvalidArgumentError: Labels have one level, shapes do not match, or gaps are out of order.

    Source: Radial loss for learning fine-grained video similarity metric (losses); the sums over all tuples are new.
    """

    @options_of(_all_quadlets)
    def __init__(self) -> None:
        check_gaps(self.g1, self.g2, self.g3)
        warn_without_guarantee(self.c)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Distances, masks and weights of a batch, which both losses use.

    Attributes:
        distances: [N, M], squared distances from queries to references.
        positives, intermediates, negatives: [N, M] bool, relation of each reference to the query.
        among: [M, M], squared distances between references.
        among_intermediates, among_negatives: [M, M] bool, the same relations between references.
        scale: Scalar: 1 over the number of quadlets, or 1 for a sum.
        intermediate_weights, negative_weights: [N], scaled numbers of intermediates and negatives of each query.
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
                f"labels must have two levels or more, (category, subcategory), shape [N, L], got {tuple(labels.shape)}"
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
