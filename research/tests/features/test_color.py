"""Color histograms: hand-computed bins, and a comparison with a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain
from skimage.color import rgb2lab

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import ColorHistogram


def test_rgb_bins_equal_hand_computed_values() -> None:
    histogram = ColorHistogram("rgb", 2).describe([np.array([[[0, 0, 255], [255, 200, 0]]], dtype=np.uint8)])[0]
    # 001 and 110
    assert histogram.tolist() == [0, 0.5, 0, 0, 0, 0, 0.5, 0]


def test_distance_of_images_without_a_common_color_is_two() -> None:
    feature = ColorHistogram()
    red, blue = plain((255, 0, 0)), plain((0, 0, 255))
    both = np.concatenate([red, blue])
    descriptors = feature.describe([red, blue, both])
    torch.testing.assert_close(
        feature.distances(descriptors, descriptors), torch.tensor([[0, 2, 1], [2, 0, 1], [1, 1, 0.0]])
    )


def test_lab_histogram_equals_a_plain_loop() -> None:
    picture = photographs(1)[0][::8, ::8]
    counts = np.zeros(4096)
    for lightness, a, b in rgb2lab(picture).reshape(-1, 3):
        place = [min(int(lightness / 100 * 16), 15), int((a + 128) / 255 * 16), int((b + 128) / 255 * 16)]
        counts[place[0] * 256 + place[1] * 16 + place[2]] += 1
    found = ColorHistogram().describe([picture])[0]
    np.testing.assert_allclose(found.numpy(), counts / counts.sum(), atol=1e-7)


def test_histogram_is_independent_of_size_and_hue_space_differs() -> None:
    for space in ("lab", "hsv", "rgb"):
        feature = ColorHistogram(space)
        small, large = feature.describe([plain(height=3, width=5), plain(height=90, width=50)])
        assert torch.equal(small, large)
        assert float(small.sum()) == 1
    saturated, pale = (ColorHistogram("hsv", 4).describe([plain(color)]) for color in ((255, 0, 0), (255, 200, 200)))
    assert float((saturated - pale).abs().sum()) == 2


def test_cosine_of_embeddings_is_the_bhattacharyya_coefficient() -> None:
    feature = ColorHistogram(bins=8)
    first, second = feature.describe(photographs(12)[::6])
    embedded = feature.embed(torch.stack([first, second]))
    assert float(embedded[0] @ embedded[1]) == pytest.approx(float((first * second).sqrt().sum()), abs=1e-5)


def test_settings_are_validated() -> None:
    with pytest.raises(InvalidArgumentError, match="space must be one of 'lab', 'hsv', 'rgb', got 'cmyk'"):
        ColorHistogram("cmyk")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="bins must be at least 1, got 0"):
        ColorHistogram(bins=0)
