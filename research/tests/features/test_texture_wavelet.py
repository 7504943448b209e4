"""Wavelet signatures: hand-computed transforms, and plain loops for the transform and the published distance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain

from vidkin_research.features import WaveletSignature
from vidkin_research.features.texture import decompose

WEIGHTS = [(5.00, 19.21, 34.37), (0.83, 1.26, 0.36), (1.01, 0.44, 0.45), (0.52, 0.53, 0.14), (0.47, 0.28, 0.18),
           (0.30, 0.14, 0.27)]  # fmt: skip


def haar_by_hand(row: np.ndarray) -> np.ndarray:
    """Decompose a row as in the paper: averages and differences, divided by sqrt(2) at each level."""
    row = row.astype(float) / np.sqrt(len(row))
    length = len(row)
    while length > 1:
        half = length // 2
        pairs = row[:length].reshape(half, 2)
        row[:length] = np.concatenate([pairs.sum(axis=1), pairs[:, 0] - pairs[:, 1]]) / np.sqrt(2)
        length = half
    return row


def test_transform_equals_the_standard_transform() -> None:
    images = np.random.default_rng(0).random((1, 8, 8, 3)).astype(np.float32)
    # Gray: Y is the gray value, I and Q are 0.
    images[:] = images[..., :1]
    expected = np.apply_along_axis(haar_by_hand, 1, images[0, ..., 0])
    expected = np.apply_along_axis(haar_by_hand, 0, expected)
    found = decompose(images)[0].reshape(3, 8, 8)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert found[0, 0, 0] == pytest.approx(images[0, ..., 0].mean())
    np.testing.assert_allclose(found[1:], 0, atol=1e-6)


def test_image_of_two_halves_has_one_coefficient() -> None:
    picture = plain((255, 255, 255), height=128, width=128)
    picture[:, 64:] = 0
    signature = WaveletSignature(3).describe([picture])[0]
    # The mean of Y is 0.5; the larger left half gives the difference at row 0, column 1.
    assert signature[:3].tolist() == pytest.approx([0.5, 0, 0], abs=1e-6)
    assert signature[3:].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_distance_equals_the_published_sum() -> None:
    feature = WaveletSignature()
    signatures = feature.describe(photographs(24)[::3])
    found = feature.distances(signatures[:3], signatures)
    for one in range(3):
        for other in range(len(signatures)):
            first, second = signatures[one].tolist(), signatures[other].tolist()
            expected = sum(WEIGHTS[0][c] * abs(first[c] - second[c]) for c in range(3))
            for c in range(3):
                mine, theirs = (set(map(int, row[3 + 40 * c : 43 + 40 * c])) - {0} for row in (first, second))
                for signed in mine & theirs:
                    i, j = divmod(abs(signed), 128)
                    expected -= WEIGHTS[min(max(i, j), 5)][c]
            assert float(found[one, other]) == pytest.approx(expected, abs=1e-4)


def test_uniform_image_has_only_means() -> None:
    signature = WaveletSignature().describe([plain((255, 0, 0))])[0]
    assert signature[:3].tolist() == pytest.approx([0.299, 0.5959, 0.2115], abs=1e-3)
    assert not bool(signature[3:].any())


def test_cosines_and_distances_rank_alike_if_only_means_differ() -> None:
    feature = WaveletSignature()
    grays = feature.describe([plain((value, value, value)) for value in (0, 60, 120, 255)])
    embedded = feature.embed(grays)
    assert (embedded @ embedded[0]).diff().max() < 0
    assert torch.equal(feature.distances(grays[:1], grays)[0].argsort(), torch.arange(4))
