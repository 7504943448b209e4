"""Sums of max(0, margin + d(a, p) - d(a, n)) over all p and n of every row, without a list of them.

Given which hinges are active, such a sum is linear in the distances: each distance times how often it occurs,
with its sign. The counts come from one sort of each side and a binary search, O(N M log M); the value and its exact
gradient follow from one product with the distances. N rows, M columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["HingeCounts", "count_active_hinges"]


@dataclass(frozen=True, slots=True, eq=False)
class HingeCounts:
    """How the active hinges of each row use its distances; constants for the gradient.

    Attributes:
        coefficients: [N, M], (active hinges with this column as p) - (those with it as n); rows sum to 0.
        active: [N], active hinges of the row.
        valid: [N], all (p, n) of the row.
    """

    coefficients: Tensor
    active: Tensor
    valid: Tensor

    def row_sums(self, distances: Tensor, margin: float) -> Tensor:
        """[N]: the sum of the row's hinges."""
        # Coefficients of a row sum to 0, so moving its distances to their mean changes nothing but rounding.
        centered = distances - distances.detach().mean(dim=1, keepdim=True)
        return (self.coefficients * centered).sum(dim=1) + margin * self.active


@torch.no_grad()
def count_active_hinges(
    distances: Tensor, positives: Tensor, negatives: Tensor, margin: float
) -> HingeCounts:
    """Count, for distances [N, M] and two masks [N, M], where ``margin + d(a, p) > d(a, n)``."""
    # Both sides compare the same rounded threshold with the same distance, or a tie would be counted on one side only.
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
