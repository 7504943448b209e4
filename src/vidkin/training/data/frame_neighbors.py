"""Neighbors of frames: other frames of the same video a moment earlier or later."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError

__all__ = ["FrameNeighbors"]


@dataclass(frozen=True, eq=False)
class FrameNeighbors:
    """The neighbors of M of N images; photographs have none, and take no memory.

    Attributes:
        squares: [M, 3, side, side] uint8 RGB.
        positions: [N] int64, the position of each image's neighbor in ``squares``; -1 for an image without.

    Raises:
        InvalidArgumentError: A place is not in ``squares``.
    """

    squares: Tensor
    positions: Tensor

    def __post_init__(self) -> None:
        if bool((self.positions >= len(self.squares)).any() or (self.positions < -1).any()):
            raise InvalidArgumentError(
                f"places must be -1 or below {len(self.squares)}, the number of neighbors, "
                f"got {self.positions.min()} to {self.positions.max()}"
            )

    def of(self, images: Tensor, indices: Tensor) -> Tensor:
        """The neighbors [n, 3, side, side] of the images with these indices; an image without one is its own."""
        chosen, positions = images[indices], self.positions[indices]
        chosen[positions >= 0] = self.squares[positions[positions >= 0]]
        return chosen

    def select(self, indices: Tensor) -> FrameNeighbors:
        """The neighbors of the images with these indices, in the given order."""
        positions = self.positions[indices]
        squares = self.squares[positions[positions >= 0]]
        positions[positions >= 0] = torch.arange(len(squares))
        return FrameNeighbors(squares, positions)
