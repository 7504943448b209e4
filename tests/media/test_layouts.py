"""Placement of boxes in a larger canvas, and perspective transforms between sets of four points."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vidkin.media.layouts import Rectangle, Size, center_box, homographies, split_parts


def test_homographies_map_each_corner_in_numpy_and_torch() -> None:
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    moved = corners + np.random.default_rng(0).uniform(-0.2, 0.2, (5, 4, 2))
    source = np.broadcast_to(corners, moved.shape)
    matrices = homographies(source, moved)
    places = np.concatenate([source, np.ones((5, 4, 1))], axis=2) @ matrices.transpose(0, 2, 1)
    np.testing.assert_allclose(places[..., :2] / places[..., 2:], moved, atol=1e-12)
    of_torch = homographies(torch.from_numpy(source.copy()), torch.from_numpy(moved))
    np.testing.assert_allclose(of_torch.numpy(), matrices, atol=1e-12)


@pytest.mark.parametrize(
    ("part", "canvas", "columns", "rows", "places"),
    [
        ((4, 6), (8, 6), 2, 1, [(0, 0, 4, 6), (4, 0, 8, 6)]),
        ((4, 6), (4, 12), 1, 2, [(0, 0, 4, 6), (0, 6, 4, 12)]),
        ((4, 4), (9, 9), 2, 2, [(0, 0, 4, 4), (5, 0, 9, 4), (0, 5, 4, 9), (5, 5, 9, 9)]),
        ((4, 4), (12, 4), 3, 1, [(0, 0, 4, 4), (4, 0, 8, 4), (8, 0, 12, 4)]),
    ],
)
def test_parts_of_a_split_screen_reach_the_edges_of_the_canvas(
    part: Size, canvas: Size, columns: int, rows: int, places: list[Rectangle]
) -> None:
    assert split_parts(part, canvas, columns, rows) == places


def test_a_centered_box_has_equal_margins() -> None:
    assert center_box((4, 6), (10, 6)) == (3, 0, 7, 6)
