"""Patches of Gabor energies, and histograms of the visual words computed from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain, stripes

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import VisualWords, describe_patches
from vidkin_research.features.gabor import PATCH_LENGTH
from vidkin_research.features.words import nearest_center


def test_patches_are_unit_vectors_without_a_large_entry() -> None:
    patches = describe_patches(photographs(2))
    assert patches.shape == (2, 361, PATCH_LENGTH)
    lengths = patches.norm(dim=2)
    assert bool(((lengths - 1).abs() < 1e-5).logical_or(lengths == 0).all())
    # 0.2 before the second normalization, which can enlarge a vector at most by this factor.
    assert float(patches.max()) < 0.5


@pytest.mark.parametrize(("wavelength", "scale"), [(4, 0), (8, 1)])
@pytest.mark.parametrize(("vertical", "orientation"), [(True, 0), (False, 4)])
def test_stripes_respond_at_their_wavelength_and_direction(
    wavelength: int, scale: int, vertical: bool, orientation: int
) -> None:
    patches = describe_patches([stripes(wavelength, vertical=vertical)])[0]
    middle = patches[180].reshape(2, 8, 9).mean(dim=2)
    assert divmod(int(middle.argmax()), 8) == (scale, orientation)


def test_uniform_patches_are_zero() -> None:
    assert not bool(describe_patches([plain()]).any())


def test_patches_are_invariant_to_contrast() -> None:
    picture = photographs(1)[0]
    full, half = describe_patches([picture, (picture // 2).astype(np.uint8)])
    both = (full.abs().amax(1) > 0) & (half.abs().amax(1) > 0)
    cosines = (full * half).sum(dim=1)[both]
    assert float(cosines.median()) > 0.99


def test_histogram_equals_a_plain_loop() -> None:
    pictures = photographs(8)
    feature = VisualWords.fit(pictures, words=6)
    patches = describe_patches(pictures[:1])[0]
    counts = np.zeros(6)
    for patch in patches:
        if bool(patch.any()):
            counts[int((feature.centers - patch).norm(dim=1).argmin())] += 1
    np.testing.assert_allclose(feature.describe(pictures[:1])[0].numpy(), counts / counts.sum(), atol=1e-6)


def test_same_seed_gives_the_same_words() -> None:
    pictures = photographs(4)
    first, again = (VisualWords.fit(pictures, words=5, seed=3) for _ in range(2))
    assert torch.equal(first.centers, again.centers)
    assert not torch.equal(first.centers, VisualWords.fit(pictures, words=5, seed=4).centers)


def test_image_without_texture_has_no_words() -> None:
    feature = VisualWords.fit(photographs(4), words=5)
    descriptors = feature.describe([plain(), *photographs(1)])
    assert not bool(descriptors[0].any())
    assert float(feature.distances(descriptors[:1], descriptors[1:])) == pytest.approx(1)


def test_nearest_center_equals_hand_computed_value() -> None:
    centers = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    assert nearest_center(torch.tensor([[1.4, 5.0], [1.6, -5.0]]), centers).tolist() == [0, 1]


def test_too_few_patches_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="500 centers need at least 500 patches"):
        VisualWords.fit(photographs(2), words=500)
    with pytest.raises(InvalidArgumentError, match="images with content"):
        VisualWords.fit([plain()], words=2)
    with pytest.raises(InvalidArgumentError, match=r"centers must be \[K, 144\], got \[3, 4\]"):
        VisualWords(torch.zeros(3, 4))
