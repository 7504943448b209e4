"""Matrices of geometric edits match hand-computed ones, and warp images as expected."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.datasets.augmentation import WarpSettings, random_warp, warp
from vidkin.datasets.augmentation.geometry import (
    aspect_matrices,
    crop_matrices,
    mirror_matrices,
    perspective_matrices,
    rotation_matrices,
)
from vidkin.errors import InvalidArgumentError


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ramp(side: int = 8) -> torch.Tensor:
    """An image that counts 0, 1, 2, ... from left to right, [1, 3, side, side]."""
    return torch.arange(side, dtype=torch.float32).expand(1, 3, side, side).clone()


def corners(matrices: torch.Tensor) -> torch.Tensor:
    """Map the output corners to positions in the input, [N, 4, 2]."""
    places = torch.tensor([[-1.0, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]) @ matrices.transpose(1, 2)
    return places[..., :2] / places[..., 2:]


@given(st.integers(min_value=0, max_value=500))
def test_crops_stay_inside_and_respect_the_scale_range(seed: int) -> None:
    boxes = corners(crop_matrices(20, (0.3, 0.8), make_generator(seed)))
    assert float(boxes.abs().max()) <= 1 + 1e-6
    sides = (boxes[:, 1, 0] - boxes[:, 0, 0]) / 2
    assert float(sides.min()) >= 0.3
    assert float(sides.max()) <= 0.8 + 1e-6
    assert torch.allclose(sides, (boxes[:, 3, 1] - boxes[:, 0, 1]) / 2, atol=1e-6)


def test_crop_larger_than_the_image_contains_it() -> None:
    boxes = corners(crop_matrices(50, (1.5, 2.0), make_generator()))
    assert bool((boxes[:, 0] <= -1).all())
    assert bool((boxes[:, 2] >= 1).all())


def test_aspect_shortens_one_side_by_at_most_the_given_factor() -> None:
    boxes = corners(aspect_matrices(400, 4.0, make_generator()))
    width, height = boxes[:, 1, 0], boxes[:, 3, 1]
    # The longer side keeps its length; the shorter one is scaled by 1/4 to 1.
    assert torch.allclose(torch.maximum(width, height), torch.ones(400))
    shorter = torch.minimum(width, height)
    assert 0.25 <= float(shorter.min()) < 0.3
    wide = width > height
    assert 150 < int(wide.sum()) < 250


def test_rotations_preserve_lengths_and_angles() -> None:
    matrices = rotation_matrices(30, 90.0, make_generator())
    assert torch.allclose(matrices @ matrices.transpose(1, 2), torch.eye(3).expand(30, 3, 3), atol=1e-6)
    angles = torch.atan2(matrices[:, 1, 0], matrices[:, 0, 0])
    assert float(angles.abs().max()) <= math.pi / 2 + 1e-6
    assert float(angles.min()) < 0 < float(angles.max())


def test_perspective_moves_each_corner_by_at_most_the_given_fraction() -> None:
    boxes = corners(perspective_matrices(200, 0.1, make_generator()))
    square = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    # A tenth of the side, which is 2 in normalized coordinates.
    moved = (boxes - square).abs()
    assert 0.19 < float(moved.max()) <= 0.2 + 1e-5
    assert torch.allclose(corners(perspective_matrices(5, 0.0, make_generator())), square.expand(5, 4, 2), atol=1e-5)


def test_mirrors_only_swap_left_and_right() -> None:
    matrices = mirror_matrices(300, 0.5, make_generator())
    signs = matrices[:, 0, 0]
    assert sorted(set(signs.tolist())) == [-1, 1]
    assert 110 < int((signs < 0).sum()) < 190
    assert torch.equal(matrices[:, 1, 1], torch.ones(300))


def test_identity_changes_nothing_and_a_mirror_reverses_rows() -> None:
    image = ramp()
    assert torch.allclose(warp(image, torch.eye(3)[None], 8), image, atol=1e-5)
    mirror = torch.diag(torch.tensor([-1.0, 1.0, 1.0]))[None]
    assert torch.allclose(warp(image, mirror, 8), image.flip(3), atol=1e-5)


def test_crop_of_the_left_half_doubles_its_width() -> None:
    left_half = torch.tensor([[[0.5, 0, -0.5], [0, 0.5, 0], [0, 0, 1]]])
    row = warp(ramp(), left_half, 8)[0, 0, 3]
    # Pixel centers: the first output center is a quarter of a pixel left of the first input center, so it is clamped.
    assert torch.allclose(row, torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.25]), atol=1e-5)


@pytest.mark.parametrize(("padding", "outside"), [("border", 7.0), ("zeros", 0.0), ("reflection", 4.0)])
def test_padding_fills_the_outside(padding: str, outside: float) -> None:
    # Four pixels beyond the right edge there is the last column, black, or the reflection.
    shifted = torch.tensor([[[1.0, 0, 1.0], [0, 1, 0], [0, 0, 1]]])
    row = warp(ramp(), shifted, 8, padding=padding)[0, 0, 0]
    assert row[:4].tolist() == pytest.approx([4, 5, 6, 7])
    assert float(row[7]) == pytest.approx(outside)


def test_warp_can_change_the_output_size() -> None:
    small = warp(ramp(), torch.eye(3)[None], 4)
    assert torch.allclose(small[0, 0, 0], torch.tensor([0.5, 2.5, 4.5, 6.5]), atol=1e-5)


def test_only_the_given_fraction_is_distorted() -> None:
    images = torch.rand(60, 3, 16, 16, generator=make_generator(3))
    settings = WarpSettings(rotation=20.0, distorted=0.5)
    moved = (random_warp(images, make_generator(), settings=settings) - images).abs().amax((1, 2, 3)) > 1e-3
    assert 18 <= int(moved.sum()) <= 42


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": (0.0, 1.0)}, r"scale must be \(low, high\) with 0.01 <= low <= high"),
        ({"scale": (0.9, 0.5)}, "scale must be"),
        ({"aspect": 0.5}, "aspect must be at least 1, got 0.5"),
        ({"rotation": 181.0}, "rotation must be between 0 and 180 degrees, got 181.0"),
        ({"perspective": 0.5}, "perspective must be at least 0 and below 0.5, got 0.5"),
        ({"mirror": 2.0}, "mirror must be .* got 2.0"),
        ({"distorted": -1.0}, "distorted must be .* got -1.0"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        WarpSettings(**settings)  # type: ignore[arg-type]


def test_images_that_are_not_square_need_an_output_size() -> None:
    wide = torch.zeros(1, 3, 4, 6)
    with pytest.raises(InvalidArgumentError, match=r"images must be square when side is None, got \[4, 6\]"):
        random_warp(wide, make_generator(), settings=WarpSettings())
    assert random_warp(wide, make_generator(), settings=WarpSettings(), side=5).shape == (1, 3, 5, 5)
