"""Texton pyramids: levels, kernel, and a comparison with a plain loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain
from scipy.fft import dctn
from skimage.color import rgb2yiq

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import ImageFeature, TextonPyramid
from vidkin_research.features.feature import squares


@pytest.fixture
def pyramid(features: dict[str, ImageFeature]) -> TextonPyramid:
    feature = features["textons"]
    assert isinstance(feature, TextonPyramid)
    return feature


def test_descriptor_equals_a_plain_loop(pyramid: TextonPyramid) -> None:
    picture = photographs(7)[6]
    channels = np.pad(rgb2yiq(squares([picture], 128)[0]), ((1, 1), (1, 1), (0, 0)), mode="reflect")
    strengths = np.zeros((32, 32, 32))
    for row in range(32):
        for column in range(32):
            window = channels[4 * row : 4 * row + 3, 4 * column : 4 * column + 3]
            response = np.concatenate([dctn(window[..., c], norm="ortho").ravel() for c in range(3)])
            squared = ((response / pyramid.scale.numpy() - pyramid.textons.numpy()) ** 2).sum(axis=1)
            near = np.argsort(squared)[:5]
            weight = np.exp(-pyramid.sharpness * (squared[near] - squared[near[0]]))
            strengths[row, column, near] = weight / weight.sum()
    levels = []
    for cells, share in ((1, 0.25), (2, 0.25), (4, 0.5)):
        side = 32 // cells
        pooled = strengths.reshape(cells, side, cells, side, 32).max(axis=(1, 3))  # [cells, cells, K]
        levels.append(share * pooled.transpose(2, 0, 1).ravel() / pooled.sum())
    np.testing.assert_allclose(pyramid.describe([picture])[0].numpy(), np.concatenate(levels), atol=2e-4)


def test_distance_is_one_minus_the_intersection(pyramid: TextonPyramid) -> None:
    descriptors = pyramid.describe(photographs(12)[::4])
    torch.testing.assert_close(descriptors.sum(dim=1), torch.ones(3))
    minima = torch.minimum(descriptors[:, None], descriptors[None]).sum(dim=2)
    torch.testing.assert_close(pyramid.distances(descriptors, descriptors), 1 - minima, rtol=1e-4, atol=1e-5)


def test_position_of_a_texton_matters(pyramid: TextonPyramid) -> None:
    picture = plain((20, 20, 20), height=128, width=128)
    picture[48:80, 16:48] = 250
    left, right = pyramid.describe([picture, np.roll(picture, 64, axis=1)])
    count = len(pyramid.textons)
    # The whole image has the same textons; their positions only matter at the finer levels.
    torch.testing.assert_close(left[:count], right[:count], rtol=0.02, atol=1e-3)
    assert float((left - right)[count:].abs().sum()) > 0.5


def test_values_are_validated(pyramid: TextonPyramid) -> None:
    with pytest.raises(InvalidArgumentError, match=r"textons must be \[K, 27\] with K at least 5, got \[4, 27\]"):
        replace(pyramid, textons=pyramid.textons[:4])
    with pytest.raises(InvalidArgumentError, match="sharpness must be above 0"):
        replace(pyramid, sharpness=0.0)
    with pytest.raises(InvalidArgumentError, match=r"scale must be \[27\] numbers above 0"):
        replace(pyramid, scale=torch.zeros(27))
