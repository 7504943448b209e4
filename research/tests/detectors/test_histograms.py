"""Histograms of images with known colors, and compared with a plain Python implementation."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from vidkin_research.detectors.histograms import HSV_BINS, hsv_histogram


@pytest.mark.parametrize(
    ("color", "bins"),
    [
        ((255, 0, 0), (0, 11, 7)),
        ((0, 255, 0), (6, 11, 7)),  # 120 degrees / 20
        ((0, 0, 255), (12, 11, 7)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (0, 0, 7)),
        ((128, 128, 128), (0, 0, 4)),
        ((255, 0, 10), (17, 11, 7)),
    ],
)
def test_pure_colors_are_in_the_expected_bins(color: tuple[int, int, int], bins: tuple[int, int, int]) -> None:
    histogram = hsv_histogram(np.full((4, 6, 3), color, np.uint8)).reshape(HSV_BINS)
    assert histogram[bins] == 1.0
    assert histogram.sum() == 1.0


def test_random_colors_match_the_standard_library() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    expected = np.zeros(HSV_BINS)
    for pixel in image.reshape(-1, 3).tolist():
        values = colorsys.rgb_to_hsv(*(part / 255 for part in pixel))
        place = tuple(min(int(value * count + 1e-9), count - 1) for value, count in zip(values, HSV_BINS, strict=True))
        expected[place] += 1 / 600
    # Pixels on the border of two bins can fall into either because of rounding.
    assert np.abs(hsv_histogram(image).reshape(HSV_BINS) - expected).sum() <= 2 * 3 / 600
