"""Masks of query-reference pairs from labels, counts of active hinges, and the base class for losses on labels.

Shapes: N queries, M references, D dimensions, L label levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Loss, to_full_precision


class LossOnLabels(Loss):
    """Base class for losses on (embeddings [N, D], labels [N] or [N, L]), within a batch or against a reference set."""

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        self_offset: int | None = None,
    ) -> Tensor:
        """Compute the loss of a batch: a scalar, or [N] for reduction "none".

        Args:
            embeddings: [N, D] embeddings of the queries.
            labels: [N] or [N, L]; two items have the same class if all levels agree.
            reference: [M, D], a set (such as a memory bank, or the batches of all processes) from which positives and
                negatives are taken instead of from the batch.
            reference_labels: [M] or [M, L].
            self_offset: Query i is reference ``self_offset + i`` and ignores it; None if no query is among the
                references.
        """
        arguments = {"self_offset": self_offset, **self.options}
        return self.compute(embeddings, labels, reference, reference_labels, **arguments)

    if TYPE_CHECKING:
        __call__ = forward


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Queries and references, with masks of the pairs that share a label.

    Attributes:
        queries: [N, D], float32 or better.
        references: [M, D]; the queries themselves if no reference set was given.
        same_class: [N, M] bool, equal at every label level (including the pair of an item with itself).
        same_category: [N, M] bool, equal at the first (coarsest) level.
        is_self: [N, M] bool, True where the reference is the query itself.
        within: Whether the references are the queries.
    """

    queries: Tensor
    references: Tensor
    same_class: Tensor
    same_category: Tensor
    is_self: Tensor
    within: bool

    @property
    def positives(self) -> Tensor:
        """[N, M] bool, True for other items of the query's class."""
        return self.same_class & ~self.is_self

    @property
    def negatives(self) -> Tensor:
        """[N, M] bool, True for items of other classes."""
        return ~self.same_class


def resolve_pairs(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None,
    reference_labels: Tensor | None,
    self_offset: int | None,
) -> Pairs:
    """Build the masks of all pairs from the arguments of a loss on (embeddings, labels).

    Without a reference set, the queries are their own references, excluding self-pairs. With a reference set, query i
    is reference ``self_offset + i``; with ``self_offset=None``, no reference is a query.

    Raises:
        InvalidArgumentError: Shapes do not match, or ``self_offset`` is out of range.
    """
    if embeddings.ndim != 2 or not embeddings.is_floating_point():
        raise InvalidArgumentError(
            f"embeddings must be [N, D] floating point, got {tuple(embeddings.shape)} {embeddings.dtype}"
        )
    if (reference is None) != (reference_labels is None):
        raise InvalidArgumentError("reference and reference_labels must be given together, or neither")
    levels = label_levels(labels, embeddings.shape[0], "labels")
    queries = to_full_precision(embeddings)
    if reference is None or reference_labels is None:
        if self_offset is not None:
            raise InvalidArgumentError("self_offset needs a reference set: it is the position of the queries in it")
        references, reference_levels, within = queries, levels, True
        offset: int | None = 0
    else:
        if reference.ndim != 2 or reference.shape[1] != embeddings.shape[1]:
            raise InvalidArgumentError(
                f"reference must have shape [M, {embeddings.shape[1]}] like the embeddings, "
                f"got {tuple(reference.shape)}"
            )
        reference_levels = label_levels(reference_labels, reference.shape[0], "reference_labels")
        if reference_levels.shape[1] != levels.shape[1]:
            raise InvalidArgumentError(
                f"labels and reference_labels must have the same levels, got {levels.shape[1]} and "
                f"{reference_levels.shape[1]}"
            )
        references, offset, within = to_full_precision(reference), self_offset, False
        if offset is not None and not 0 <= offset <= references.shape[0] - queries.shape[0]:
            raise InvalidArgumentError(
                f"self_offset must be from 0 to {references.shape[0] - queries.shape[0]} for {queries.shape[0]} "
                f"queries among {references.shape[0]} references, got {offset}"
            )
    equal = levels[:, None, :] == reference_levels[None, :, :]
    is_self = torch.zeros(equal.shape[:2], dtype=torch.bool, device=equal.device)
    if offset is not None:
        rows = torch.arange(queries.shape[0], device=equal.device)
        is_self[rows, rows + offset] = True
    return Pairs(queries, references, equal.all(dim=2), equal[:, :, 0], is_self, within)


def label_levels(labels: Tensor, count: int, name: str) -> Tensor:
    """Reshape labels [N] or [N, L] to [N, L], after checking that there is one row for each of ``count`` embeddings."""
    if labels.ndim not in (1, 2) or labels.shape[0] != count:
        raise InvalidArgumentError(
            f"{name} must have one row for each embedding, shape ({count},) or ({count}, levels), "
            f"got {tuple(labels.shape)}"
        )
    return labels[:, None] if labels.ndim == 1 else labels


# Sums of max(0, margin + d(a, p) - d(a, n)) over all p and n of each row, without enumerating the triplets.
#
# Once the active hinges are known, such a sum is linear in the distances: each distance times the signed number of
# hinges in which it occurs. The counts are obtained by sorting each side once and a binary search, in O(N M log M); the
# value and its exact gradient then follow from one product with the distances. Shapes: N rows, M columns.


@dataclass(frozen=True, slots=True, eq=False)
class HingeCounts:
    """Numbers of times that the active hinges of each row use each distance; constants in the backward pass.

    Attributes:
        coefficients: [N, M], (active hinges with this column as p) - (active hinges with it as n); rows sum to 0.
        active: [N], number of active hinges per row.
        valid: [N], number of pairs (p, n) per row.
    """

    coefficients: Tensor
    active: Tensor
    valid: Tensor

    def row_sums(self, distances: Tensor, margin: float) -> Tensor:
        """Compute the sum of the hinges in each row, [N]."""
        # The coefficients of a row sum to 0, so centering its distances changes nothing but reduces rounding errors.
        centered = distances - distances.detach().mean(dim=1, keepdim=True)
        return (self.coefficients * centered).sum(dim=1) + margin * self.active


@torch.no_grad()
def count_active_hinges(distances: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> HingeCounts:
    """Count where ``margin + d(a, p) > d(a, n)``, for distances [N, M] and two masks [N, M]."""
    # Both searches compare the same rounded thresholds and distances; otherwise, a tie could be counted on one side
    # only.
    thresholds = torch.where(positives, distances + margin, -torch.inf)
    others = torch.where(negatives, distances, torch.inf)
    as_positive = torch.searchsorted(others.sort(dim=1).values, thresholds)
    not_above = torch.searchsorted(thresholds.sort(dim=1).values, others, right=True)
    as_negative = distances.shape[1] - not_above
    return HingeCounts(
        coefficients=(as_positive - as_negative).to(distances.dtype),
        active=as_positive.sum(dim=1).to(distances.dtype),
        valid=positives.sum(dim=1).to(distances.dtype) * negatives.sum(dim=1).to(distances.dtype),
    )
