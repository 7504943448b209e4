"""The collision rate of hashes equals histogram overlap; components equal kernel PCA in scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain
from sklearn.decomposition import KernelPCA

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import HashedHistograms, ImageFeature, consistent_samples, hash_agreement


@pytest.fixture
def hashed(features: dict[str, ImageFeature]) -> HashedHistograms:
    feature = features["hash_kpca"]
    assert isinstance(feature, HashedHistograms)
    return feature


@pytest.mark.parametrize("spread", [0.05, 0.5, 2.0])
def test_samples_match_the_probability_of_the_theorem(spread: float) -> None:
    generator = np.random.default_rng(0)
    first = generator.random(60)
    second = first * np.exp(generator.normal(0, spread, 60))
    rows = torch.tensor(np.stack([first / first.sum(), second / second.sum()]), dtype=torch.float32)
    distance = float((rows[0] - rows[1]).abs().sum())
    samples = consistent_samples(rows, 4000)
    found = float(hash_agreement(samples[:1], samples[1:]))
    # The standard deviation of 4,000 samples is at most 0.008.
    assert found == pytest.approx((1 - distance / 2) / (1 + distance / 2), abs=0.025)


def test_samples_equal_hand_computed_values() -> None:
    rows = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    samples = consistent_samples(rows, 50)
    agreement = hash_agreement(samples, samples)
    # Zeros match nothing, not even each other.
    assert agreement.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_seed_determines_the_samples() -> None:
    rows = torch.tensor([[0.2, 0.3, 0.5]])
    assert torch.equal(consistent_samples(rows, 50), consistent_samples(rows, 50))
    assert not torch.equal(consistent_samples(rows, 50), consistent_samples(rows, 50, seed=1))


def test_components_equal_kernel_pca(hashed: HashedHistograms) -> None:
    kernel = hash_agreement(hashed.anchors, hashed.anchors).double().numpy()
    pca = KernelPCA(8, kernel="precomputed").fit(kernel)
    pictures = photographs(40)[30:40:3]
    new = hash_agreement(consistent_samples(hashed.histograms(pictures), 64), hashed.anchors).double().numpy()
    expected, found = pca.transform(new), hashed.describe(pictures).numpy()
    # Components are determined up to their sign.
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-3)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)


def test_histograms_have_equal_weights(hashed: HashedHistograms) -> None:
    rows = hashed.histograms([*photographs(1), plain()])
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(2))
    shares = [part.sum().item() for part in rows[0].split([4096, 24, 1152])]
    assert shares == pytest.approx([1 / 3] * 3, abs=1e-5)
    # A single color has neither words nor gradients.
    assert [part.sum().item() for part in rows[1].split([4096, 24, 1152])] == pytest.approx([1, 0, 0], abs=1e-6)


def test_identical_images_are_rejected(hashed: HashedHistograms) -> None:
    with pytest.raises(InvalidArgumentError, match="the images must differ"):
        HashedHistograms.fit([plain(), plain()], words=hashed.words)
    with pytest.raises(InvalidArgumentError, match="pictures must be at least 2, got 1"):
        HashedHistograms.fit([plain()], words=hashed.words)
    with pytest.raises(InvalidArgumentError, match=r"anchors must be \[A, H\] int64"):
        replace(hashed, anchors=hashed.anchors.float())
    with pytest.raises(InvalidArgumentError, match=r"means must be \[24\] and projection \[24, D\]"):
        replace(hashed, means=hashed.means[:3])
