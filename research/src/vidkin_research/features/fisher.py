"""Fisher vectors: gradients of a patch model's log-likelihood for an image's patches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch.nn import functional

from vidkin._base.registry import import_part
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.feature import Image, sample_rows
from vidkin_research.features.gabor import PATCH_LENGTH, patches_of

__all__ = ["FisherVectors", "improved_fisher_vector"]

_EACH, _MOST = 32, 60_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FisherVectors:
    """SIFT-like Fisher: improved Fisher vectors of an image's patches, [T, 2 K D']; the distance is L2, from 0 to 2.

    Source: Wang et al., deep ranking, supplement, section 4 (128, 512 and 2,048 Gaussians; best with 128); Perronnin,
    Sanchez and Mensink, "Improving the Fisher kernel for large-scale image classification", ECCV 2010. The patches of
    :func:`~vidkin_research.features.gabor.describe_patches` are projected onto D' principal components and modeled by a
    mixture of K Gaussians with diagonal covariances. An image without texture has a zero vector.

    Attributes:
        mean: [144] float32, mean of the patches.
        components: [144, D'] float32, principal components of the patches.
        weights: [K] float32, weights of the Gaussians; they sum to 1.
        means: [K, D'] float32, means of the Gaussians.
        variances: [K, D'] float32, variances of the Gaussians, above 0.
    """

    name: ClassVar[str] = "fisher"
    mean: torch.Tensor
    components: torch.Tensor
    weights: torch.Tensor
    means: torch.Tensor
    variances: torch.Tensor

    def __post_init__(self) -> None:
        count, length = len(self.weights), self.components.shape[-1]
        expected = {
            "mean": (PATCH_LENGTH,),
            "components": (PATCH_LENGTH, length),
            "means": (count, length),
            "variances": (count, length),
        }
        for field, shape in expected.items():
            given = tuple(getattr(self, field).shape)
            if given != shape:
                raise InvalidArgumentError(f"{field} must be {list(shape)}, got {list(given)}")
        if bool((self.variances <= 0).any()) or bool((self.weights <= 0).any()):
            raise InvalidArgumentError("variances and weights must be above 0")

    @classmethod
    def fit(cls, images: Iterable[Image], *, gaussians: int = 128, length: int = 64, seed: int = 0) -> Self:
        """Fit a model to up to 60,000 patches from a few hundred images.

        Args:
            images: Images of any size.
            gaussians: K, number of Gaussians.
            length: D', number of components.
            seed: Random seed for patch sampling and the fit.

        Raises:
            InvalidArgumentError: There are fewer patches with texture than Gaussians or components.
        """
        decomposition = import_part("sklearn.decomposition", extra="train")
        mixtures = import_part("sklearn.mixture", extra="train")
        warning = import_part("sklearn.exceptions", extra="train").ConvergenceWarning
        patches = sample_rows(patches_of(images), each=_EACH, most=_MOST, seed=seed).double().numpy()
        if len(patches) < max(gaussians, length):
            raise InvalidArgumentError(
                f"{gaussians} Gaussians with {length} components need at least {max(gaussians, length)} patches with "
                f"texture, got {len(patches)}; use more images, or fewer Gaussians and components"
            )
        pca = decomposition.PCA(length, random_state=seed)
        projected = pca.fit_transform(patches)
        mixture = mixtures.GaussianMixture(gaussians, covariance_type="diag", max_iter=40, random_state=seed)
        with warnings.catch_warnings():
            # A codebook does not need convergence; 40 iterations are enough.
            warnings.simplefilter("ignore", warning)
            mixture.fit(projected)
        fitted = (pca.mean_, pca.components_.T, mixture.weights_, mixture.means_, mixture.covariances_)
        return cls(*(torch.tensor(values, dtype=torch.float32) for values in fitted))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return Fisher vectors [T, 2 K D'] float32 of length 1, or zeros."""
        result = torch.zeros(len(images), 2 * self.means.numel())
        for row, patches in zip(result, patches_of(images), strict=True):
            content = patches[patches.abs().amax(dim=1) > 0]
            projected = (content - self.mean) @ self.components
            row[:] = improved_fisher_vector(projected, self.weights, self.means, self.variances)
        return result

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return L2 distances [N, M] in [0, 2]."""
        return torch.cdist(first, second)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the vectors unchanged: cosine and distance give the same ranking."""
        return descriptors


def improved_fisher_vector(
    rows: torch.Tensor, weights: torch.Tensor, means: torch.Tensor, variances: torch.Tensor
) -> torch.Tensor:
    """Return the gradients [2 K D] of the log-likelihood of rows [N, D] with respect to means and standard deviations.

    With g_nk the responsibility of Gaussian k for row n and z = (x - mu) / sigma: ``mu: sum_n g z / (N sqrt(w))``,
    ``sigma: sum_n g (z^2 - 1) / (N sqrt(2 w))``, all means first; then sign(v) sqrt(|v|), scaled to length 1.
    The result is zero without rows and wherever the gradient is zero. (``skimage.feature.fisher_vector`` has the
    opposite sign for sigma, starts with gradients of the weights, and divides by zero there.)
    """
    if not len(rows):
        return rows.new_zeros(2 * means.numel())
    count = len(rows)
    inverse = 1 / variances
    # log N(x; mu, sigma) up to a constant that is the same for all Gaussians.
    log = rows.square() @ inverse.T * -0.5 + rows @ (means * inverse).T
    log = log + weights.log() - 0.5 * (means.square() * inverse + variances.log()).sum(dim=1)
    shares = log.softmax(dim=1)
    total, first, second = shares.sum(dim=0)[:, None], shares.T @ rows, shares.T @ rows.square()
    centered = first - total * means
    squared = second - 2 * means * first + total * means.square()
    of_means = centered * inverse.sqrt() / (count * weights.sqrt()[:, None])
    of_deviations = (squared * inverse - total) / (count * (2 * weights).sqrt()[:, None])
    gradient = torch.cat([of_means.flatten(), of_deviations.flatten()])
    return functional.normalize(gradient.sign() * gradient.abs().sqrt(), dim=0)
