"""Images of any aspect ratio are fitted to squares."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from vidkin.media.frames import Fit, fit_to_square


def half_and_half() -> Image.Image:
    """A 40 x 20 image whose left half is black and right half white."""
    pixels = np.zeros((20, 40, 3), dtype=np.uint8)
    pixels[:, 20:] = 255
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    ("fit", "top", "middle"),
    [
        ("letterbox", [0, 0], [0, 255]),  # bars above and below
        ("crop", [0, 255], [0, 255]),
        ("stretch", [0, 255], [0, 255]),
    ],
)
def test_a_wide_image_is_fitted_in_each_way(fit: Fit, top: list[int], middle: list[int]) -> None:
    square = fit_to_square(half_and_half(), 10, fit)
    assert square.shape == (10, 10, 3)
    assert square[0, [1, 8], 0].tolist() == top
    assert square[5, [1, 8], 0].tolist() == middle


def test_crop_keeps_proportions_and_stretch_does_not() -> None:
    image = half_and_half().crop((10, 0, 40, 20))  # 10 of 30 columns are black
    assert (fit_to_square(image, 20, "crop")[10, :, 0] > 127).sum() == 15
    assert 12 <= (fit_to_square(image, 20, "stretch")[10, :, 0] > 127).sum() <= 14


def test_a_square_of_the_right_size_is_unchanged() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for fit in ("letterbox", "crop", "stretch"):
        assert np.array_equal(fit_to_square(Image.fromarray(pixels), 8, fit), pixels)  # type: ignore[arg-type]
        assert fit_to_square(pixels, 8, fit) is pixels  # type: ignore[arg-type]


def test_an_array_is_treated_like_an_image() -> None:
    image = half_and_half()
    for fit in ("letterbox", "crop", "stretch"):
        both = [fit_to_square(given, 6, fit) for given in (image, np.asarray(image))]  # type: ignore[arg-type]
        assert np.array_equal(*both)
