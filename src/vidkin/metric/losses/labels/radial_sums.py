"""The radial hinge over all quadlets as coefficients of squared distances.

With X the centroid of q, p, i and s = d(q, p) + d(q, i) + d(p, i), in squared distances d:
``||n - X||^2 = (d(q, n) + d(p, n) + d(i, n)) / 3 - s / 9`` and ``||q - X||^2 = (2 d(q, p) + 2 d(q, i) - d(p, i)) / 9``,
likewise for p and i. Given which hinges are active and which point attains R, their sum is linear in d.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["RadialCoefficients", "radial_coefficients"]

# Elements of one block of (triplets x references): a few dozen MiB of scratch, whatever the batch.
BLOCK_ELEMENTS = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class RadialCoefficients:
    """How often each squared distance occurs in the active radial hinges; constants for the gradient.

    Attributes:
        negative_query: [N, M], coefficients of the distances between query and reference in -||n - X||^2.
        negative_reference: [M, M], coefficients of the distances among references in the same part.
        radius_query: [N, M], coefficients of the distances between query and reference in (c R)^2.
        radius_reference: [M, M], coefficients of the distances among references in the same part.
    """

    negative_query: Tensor
    negative_reference: Tensor
    radius_query: Tensor
    radius_reference: Tensor


@torch.no_grad()
def radial_coefficients(
    distances: Tensor, among: Tensor, positives: Tensor, intermediates: Tensor, negatives: Tensor, *, c: float
) -> RadialCoefficients:
    """Coefficients of ``sum of max(0, (c R)^2 - ||n - X||^2)`` over all (q, p, i, n).

    Args:
        distances: [N, M] squared distances, query to reference.
        among: [M, M] squared distances among the references.
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
    # Queries without a negative have no quadlet.
    listed = (positives & negatives.any(dim=1, keepdim=True)).nonzero()
    block = max(1, BLOCK_ELEMENTS // max(references, 1))
    for pairs in torch.split(listed, block):
        rows, third = intermediates[pairs[:, 0]].nonzero().unbind(dim=1)
        triplets = torch.stack([pairs[rows, 0], pairs[rows, 1], third], dim=1)
        for part in torch.split(triplets, block):
            q, p, i = part.unbind(dim=1)
            qp, qi, pi = distances[q, p], distances[q, i], among[p, i]
            # From X to q, p, i: the twice counted distances are those at the point itself.
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
