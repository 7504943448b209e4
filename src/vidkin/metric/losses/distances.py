"""Euclidean distances of rows and of all pairs, in single precision or better."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from vidkin._base.checks import check_choice

__all__ = [
    "Distance",
    "in_full_precision",
    "pairwise_distances",
    "squared_distance",
    "squared_distances",
]

Distance = Literal["squared", "euclidean"]


def in_full_precision(tensor: Tensor) -> Tensor:
    """The tensor, in float32 if it is in half precision: hinges subtract nearly equal numbers."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """||first - second||_2^2 row by row: [B, D] and [B, D] to [B]."""
    return (first - second).square().sum(dim=-1)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """||first_i - second_j||_2^2 of every pair: [N, D] and [M, D] to [N, M], at least 0.

    One matrix product in float32 or better, also under autocast. Both sets are first moved to the mean of the second,
    which changes no distance but keeps sets far from the origin from losing digits.
    """
    first, second = in_full_precision(first), in_full_precision(second)
    with torch.autocast(device_type=first.device.type, enabled=False):
        origin = second.detach().sum(dim=0) / max(second.shape[0], 1)
        first, second = first - origin, second - origin
        norms = first.square().sum(dim=1)[:, None] + second.square().sum(dim=1)[None, :]
        return (norms - 2.0 * first @ second.T).clamp_min(0.0)


def pairwise_distances(first: Tensor, second: Tensor, distance: Distance) -> Tensor:
    """Squared or plain Euclidean distance of every pair, [N, M]; the plain one has gradient 0 at distance 0."""
    check_choice("distance", distance, get_args(Distance))
    squared = squared_distances(first, second)
    if distance == "squared":
        return squared
    apart = squared > 0.0
    # The inner where keeps the infinite slope of the root at 0 out of the graph; masking afterwards gives NaN.
    return torch.where(apart, torch.where(apart, squared, 1.0).sqrt(), 0.0)
