"""Fisher vectors compared with scikit-image, with their definition and with hand-computed values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain
from skimage.feature import fisher_vector
from sklearn.mixture import GaussianMixture

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import FisherVectors, ImageFeature, describe_patches, improved_fisher_vector


def mixture(count: int = 3, length: int = 4) -> GaussianMixture:
    rows = np.random.default_rng(0).normal(size=(300, length)) * [1, 2, 0.5, 1] + [0, 1, 0, -1]
    return GaussianMixture(count, covariance_type="diag", random_state=0).fit(rows)


def tensors(gmm: GaussianMixture) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(values) for values in (gmm.weights_, gmm.means_, gmm.covariances_))


def test_vector_equals_scikit_image_except_for_the_sign_of_sigma() -> None:
    gmm = mixture()
    rows = np.random.default_rng(1).normal(size=(50, 4))
    theirs = fisher_vector(rows, gmm)[3:]
    theirs[12:] *= -1
    theirs = np.sign(theirs) * np.sqrt(np.abs(theirs))
    ours = improved_fisher_vector(torch.from_numpy(rows), *tensors(gmm))
    np.testing.assert_allclose(ours.numpy(), theirs / np.linalg.norm(theirs), atol=1e-9)


def test_vector_is_the_gradient_of_the_log_likelihood() -> None:
    weights, means, variances = tensors(mixture())
    rows = torch.from_numpy(np.random.default_rng(2).normal(size=(20, 4)))
    means.requires_grad_()
    deviations = variances.sqrt().requires_grad_()
    log = torch.distributions.Normal(means, deviations).log_prob(rows[:, None]).sum(dim=2) + weights.log()
    of_means, of_deviations = torch.autograd.grad(log.logsumexp(dim=1).mean(), (means, deviations))
    # Scaled by the square root of the diagonal of the Fisher information: sigma / sqrt(w), and sigma / sqrt(2 w).
    scale = variances.sqrt() / weights.sqrt()[:, None]
    gradient = torch.cat([(of_means * scale).flatten(), (of_deviations * scale / 2**0.5).flatten()])
    expected = torch.nn.functional.normalize(gradient.sign() * gradient.abs().sqrt(), dim=0)
    found = improved_fisher_vector(rows, weights, means.detach(), variances)
    torch.testing.assert_close(found, expected)


def test_vector_of_one_gaussian_equals_hand_computed_values() -> None:
    one = torch.ones(1, 1)
    # z = 3: gradients 3 and (9 - 1) / sqrt(2), then square roots.
    found = improved_fisher_vector(torch.tensor([[5.0]]), torch.ones(1), 2 * one, one)
    expected = torch.tensor([3.0, 8 / 2**0.5]).sqrt()
    torch.testing.assert_close(found, expected / expected.norm())


def test_vector_is_zero_without_rows_or_gradient() -> None:
    one = torch.ones(1, 1)
    assert improved_fisher_vector(torch.zeros(0, 1), torch.ones(1), one, one).tolist() == [0, 0]
    # Two rows, one standard deviation on either side, are a perfect fit.
    assert improved_fisher_vector(torch.tensor([[0.0], [2.0]]), torch.ones(1), one, one).tolist() == [0, 0]


def test_descriptors_are_fisher_vectors_of_projected_patches(features: dict[str, ImageFeature]) -> None:
    feature = features["fisher"]
    assert isinstance(feature, FisherVectors)
    picture = photographs(1)[0]
    patches = describe_patches([picture])[0]
    rows = (patches[patches.abs().amax(1) > 0] - feature.mean) @ feature.components
    expected = improved_fisher_vector(rows, feature.weights, feature.means, feature.variances)
    found = feature.describe([picture, plain()])
    torch.testing.assert_close(found[0], expected)
    assert not bool(found[1].any())


def test_incompatible_models_are_rejected(features: dict[str, ImageFeature]) -> None:
    feature = features["fisher"]
    assert isinstance(feature, FisherVectors)
    with pytest.raises(InvalidArgumentError, match=r"means must be \[4, 8\], got \[3, 8\]"):
        replace(feature, means=feature.means[:3])
    with pytest.raises(InvalidArgumentError, match="variances and weights must be above 0"):
        replace(feature, variances=-feature.variances)
    with pytest.raises(InvalidArgumentError, match="500 Gaussians with 64 components need at least 500 patches"):
        FisherVectors.fit(photographs(2), gaussians=500)
