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
        places: [N] int64, the place of each image's neighbor in ``squares``; -1 for an image without.

    Raises:
        InvalidArgumentError: A place is not in ``squares``.
    """

    squares: Tensor
    places: Tensor

    def __post_init__(self) -> None:
        if bool((self.places >= len(self.squares)).any() or (self.places < -1).any()):
            raise InvalidArgumentError(
                f"places must be -1 or below {len(self.squares)}, the number of neighbors, "
                f"got {self.places.min()} to {self.places.max()}"
            )

    def of(self, images: Tensor, indices: Tensor) -> Tensor:
        """The neighbors [n, 3, side, side] of the images with these indices; an image without one is its own."""
        chosen, places = images[indices], self.places[indices]
        chosen[places >= 0] = self.squares[places[places >= 0]]
        return chosen

    def select(self, indices: Tensor) -> FrameNeighbors:
        """The neighbors of the images with these indices, in the given order."""
        places = self.places[indices]
        squares = self.squares[places[places >= 0]]
        places[places >= 0] = torch.arange(len(squares))
        return FrameNeighbors(squares, places)
