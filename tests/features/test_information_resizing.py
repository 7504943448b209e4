"""Resizing by matrix products matches torch to the gray level."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from tests.support.videos import photograph
from vidkin.features.information import pool_plane, resize_parts, resize_planes


def by_torch(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize images [T, H, W, 3] to [T, side, side, 3] with torch."""
    tensor = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)
    tensor = tensor.contiguous(memory_format=torch.channels_last)
    resized = functional.interpolate(tensor, (side, side), mode="bilinear", antialias=True, align_corners=False)
    return resized.permute(0, 2, 3, 1).numpy()


def planes_of(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(images.transpose(1, 0, 3, 2), dtype=np.float32)


@pytest.mark.parametrize("shape", [(160, 284), (240, 160), (128, 300), (100, 128), (33, 47), (20, 700), (128, 128)])
def test_resized_squares_match_torch(shape: tuple[int, int]) -> None:
    image = photograph("coffee")[: shape[0], : shape[1]]
    noise = np.random.default_rng(0).integers(0, 256, (2, *shape, 3), np.uint8)
    noise[0, : image.shape[0], : image.shape[1]] = image
    resized = resize_planes(planes_of(noise), 128).transpose(1, 0, 3, 2)
    difference = np.abs(resized - by_torch(noise, 128))
    # Above a scale of four, the products of the weights exceed float32 precision.
    assert difference.max() <= (1 if max(shape) > 512 else 0)
    assert (difference > 0).mean() < 1e-3


def test_parts_are_cropped_and_resized() -> None:
    canvas = np.stack([by_torch(photograph(name)[None], 128)[0] for name in ("coffee", "chelsea", "astronaut")])
    parts = [(0, 0, 128, 128), (10, 3, 118, 127), (0, 40, 43, 128), (64, 0, 128, 64), (10, 0, 118, 30), (5, 5, 6, 7)]
    squares = np.empty((3, len(parts), 3, 64, 64), np.float32)
    assert resize_parts(planes_of(canvas), parts, 64, out=squares) is squares
    for view, (left, top, right, bottom) in enumerate(parts):
        expected = by_torch(canvas[:, top:bottom, left:right], 64).transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(squares[:, view], expected, err_msg=str(parts[view]))


@pytest.mark.parametrize("shape", [(160, 284), (128, 128), (50, 90), (1, 1), (300, 129)])
def test_pooled_plane_matches_torch(shape: tuple[int, int]) -> None:
    plane = np.random.default_rng(0).random(shape, dtype=np.float32) * 255
    expected = functional.adaptive_avg_pool2d(torch.from_numpy(plane)[None], 128)[0].numpy()
    np.testing.assert_allclose(pool_plane(plane, 128), expected, rtol=1e-5)
