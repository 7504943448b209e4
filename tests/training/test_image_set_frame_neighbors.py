"""Neighbors of images, which only some of the images have."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.training import FrameNeighbors


def levels(*values: int) -> torch.Tensor:
    """Uniform squares with these levels, [n, 3, 2, 2]."""
    return torch.tensor(values, dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 2, 2).clone()


def test_image_without_a_neighbor_is_its_own_neighbor() -> None:
    images = levels(10, 20, 30, 40)
    neighbors = FrameNeighbors(levels(41, 21), torch.tensor([-1, 1, -1, 0]))
    drawn = neighbors.of(images, torch.tensor([3, 2, 1, 3]))
    assert torch.equal(drawn, levels(41, 30, 21, 41))
    assert torch.equal(images, levels(10, 20, 30, 40))


def test_selected_images_keep_their_neighbors() -> None:
    neighbors = FrameNeighbors(levels(41, 21), torch.tensor([-1, 1, -1, 0]))
    part = neighbors.select(torch.tensor([3, 0, 1]))
    assert part.positions.tolist() == [0, -1, 1]
    assert torch.equal(part.squares, levels(41, 21))
    none = neighbors.select(torch.tensor([0, 2]))
    assert (none.positions.tolist(), len(none.squares)) == ([-1, -1], 0)
    assert neighbors.positions.tolist() == [-1, 1, -1, 0]


@pytest.mark.parametrize("positions", [[0, 2], [-2, 1]])
def test_invalid_positions_are_rejected(positions: list[int]) -> None:
    with pytest.raises(
        InvalidArgumentError, match="positions must be at least -1 and below 2, the number of neighbors"
    ):
        FrameNeighbors(levels(1, 2), torch.tensor(positions))
