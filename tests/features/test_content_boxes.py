"""Boxes that are found in frames whose truth is known by construction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vidkin.features import find_content_boxes
from vidkin.features.content_boxes import overlap

FRAMES = 16


def moving(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """[16, H, W, 3] of smooth shapes that move, as video does."""
    generator = np.random.default_rng(seed)
    wide = generator.normal(128, 60, (height // 8 + 2, width // 8 + 2 + 4 * FRAMES, 3))
    image = np.kron(wide, np.ones((8, 8, 1)))
    steps = [image[4 : 4 + height, 8 + 2 * step : 8 + 2 * step + width] for step in range(FRAMES)]
    return np.clip(np.stack(steps), 0, 255).astype(np.uint8)


def best(images: NDArray[np.uint8], truth: tuple[float, float, float, float]) -> float:
    return max((overlap(tuple(box), truth) for box in find_content_boxes(images).tolist()), default=0.0)


def test_borders_of_one_color() -> None:
    images = np.full((FRAMES, 160, 90, 3), (200, 30, 60), np.uint8)
    images[:, 50:110] = moving(60, 90, 1)
    assert best(images, (0, 50 / 160, 1, 110 / 160)) > 0.9


@pytest.mark.parametrize("place", [(0.1, 0.5), (0.6, 0.55), (0.35, 0.05)])
def test_an_inset_of_any_place(place: tuple[float, float]) -> None:
    images = moving(120, 160, 2)
    left, top = round(place[0] * 160), round(place[1] * 120)
    images[:, top : top + 42, left : left + 56] = moving(42, 56, 3)
    truth = (left / 160, top / 120, (left + 56) / 160, (top + 42) / 120)
    assert best(images, truth) > 0.85


def test_both_halves_of_a_split_screen() -> None:
    images = np.concatenate([moving(120, 80, 4), moving(120, 80, 5)], axis=2)
    assert best(images, (0, 0, 0.5, 1)) > 0.9
    assert best(images, (0.5, 0, 1, 1)) > 0.9


def test_plain_footage_has_no_box() -> None:
    assert find_content_boxes(moving(120, 160, 6)).shape == (0, 4)
    assert find_content_boxes(np.zeros((FRAMES, 64, 64, 3), np.uint8)).shape == (0, 4)
    assert find_content_boxes(moving(64, 64, 7)[:1]).shape == (
        0,
        4,
    )  # one frame says nothing about what stays


def test_never_more_than_four() -> None:
    tiles = np.concatenate(
        [np.concatenate([moving(40, 40, 10 * row + column) for column in range(4)], 2) for row in range(4)], 1
    )
    boxes = find_content_boxes(tiles)
    assert 1 <= len(boxes) <= 4
    assert bool((boxes[:, 2:] > boxes[:, :2]).all())


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 1, 1), (0, 0, 1, 1)) == 1.0
    assert overlap((0, 0, 1, 1), (0.5, 0, 1.5, 1)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0
    assert torch.is_tensor(find_content_boxes(moving(64, 64, 1)))
