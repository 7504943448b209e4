"""Histograms compared by hashes whose collision rate reflects the overlap of the histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.color import ColorHistogram
from vidkin_research.features.feature import CHUNK, Image
from vidkin_research.features.hog import GradientHistogram
from vidkin_research.features.words import VisualWords

__all__ = ["HashedHistograms", "consistent_samples", "hash_agreement"]

# A sample encodes its column and its quantization step; this range is reserved for the step.
_STEPS = 1 << 32
# Components with less than this fraction of the largest variance contain only rounding errors.
_RANK = 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HashedHistograms:
    """L1HashKPCA: kernel PCA of hashed color, word and gradient histograms, [T, D]; the distance is L2.

    Source: Wang et al., "Learning fine-grained image similarity with deep ranking" (L1HashKPCA); Ioffe, "Improved
    consistent sampling, weighted minhash and L1 sketching", ICDM 2010. The three histograms, each scaled to sum 1, are
    concatenated and divided by 3. Two such rows have equal hashes with probability ``(1 - L1 / 2) / (1 + L1 / 2)``; the
    fraction of equal hashes is the kernel, which kernel PCA on anchor images turns into vectors.

    Attributes:
        color, words, gradients: The features that provide the histograms.
        anchors: [A, H] int64, hashes of the images that it was fitted to.
        means: [A] float32, mean kernel of each anchor with all anchors.
        projection: [A, D] float32, maps centered kernels to components.
        seed: Seed of the hashes.
    """

    name: ClassVar[str] = "hash_kpca"
    color: ColorHistogram
    words: VisualWords
    gradients: GradientHistogram
    anchors: torch.Tensor
    means: torch.Tensor
    projection: torch.Tensor
    seed: int = 0

    def __post_init__(self) -> None:
        if self.anchors.ndim != 2 or self.anchors.dtype != torch.int64:
            raise InvalidArgumentError(
                f"anchors must be [A, H] int64, got {list(self.anchors.shape)} {self.anchors.dtype}"
            )
        count = len(self.anchors)
        if tuple(self.means.shape) != (count,) or self.projection.shape[:1] != (count,):
            raise InvalidArgumentError(
                f"means must be [{count}] and projection [{count}, D] for {count} anchors, got "
                f"{list(self.means.shape)} and {list(self.projection.shape)}"
            )

    @classmethod
    def fit(
        cls,
        images: Iterable[Image],
        *,
        words: VisualWords | None = None,
        hashes: int = 256,
        length: int = 128,
        anchors: int = 512,
        seed: int = 0,
    ) -> Self:
        """Fit components to the first ``anchors`` images.

        Args:
            images: Images in random order.
            words: Visual words; default: fitted to the same images.
            hashes: H, number of hashes per image.
            length: Maximum D; there are fewer components if the images vary in fewer directions.
            anchors: Maximum A.
            seed: Random seed for hashes and words.

        Raises:
            InvalidArgumentError: There are fewer than two images, or too few for the words.
        """
        check_at_least(1, hashes=hashes, length=length)
        pictures = tuple(islice(images, anchors))
        check_at_least(2, pictures=len(pictures))
        fitted = VisualWords.fit(pictures, seed=seed) if words is None else words
        nothing = torch.zeros(1, hashes, dtype=torch.int64), torch.zeros(1), torch.zeros(1, 1)
        unfitted = cls(ColorHistogram(), fitted, GradientHistogram(), *nothing, seed=seed)
        samples = consistent_samples(unfitted.histograms(pictures), hashes, seed=seed)
        kernel = hash_agreement(samples, samples).double()
        means = kernel.mean(dim=0)
        values, vectors = torch.linalg.eigh(kernel - means - means[:, None] + means.mean())
        kept = (values > _RANK * values[-1]).nonzero()[:, 0].flip(0)[:length]
        if not len(kept):
            raise InvalidArgumentError("the images must differ, but all have the same histograms")
        projection = vectors[:, kept] / values[kept].sqrt()
        return cls(
            ColorHistogram(),
            fitted,
            GradientHistogram(),
            samples,
            means.float(),
            projection.float(),
            seed=seed,
        )

    def histograms(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the three histograms concatenated, [T, D'], with sum 1; an empty histogram is all zeros."""
        parts = [feature.describe(images) for feature in (self.color, self.words, self.gradients)]
        return functional.normalize(torch.cat([functional.normalize(p, p=1, dim=1) for p in parts], 1), p=1, dim=1)

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return components [T, D] float32."""
        parts = [torch.zeros(0, self.projection.shape[1])]
        for first in range(0, len(images), CHUNK):
            rows = self.histograms(images[first : first + CHUNK])
            samples = consistent_samples(rows, self.anchors.shape[1], seed=self.seed)
            kernel = hash_agreement(samples, self.anchors)
            centered = kernel - kernel.mean(dim=1, keepdim=True) - self.means + self.means.mean()
            parts.append(centered @ self.projection)
        return torch.cat(parts)

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return L2 distances [N, M], at least 0."""
        return torch.cdist(first, second)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the components scaled to length 1."""
        return functional.normalize(descriptors, dim=1)


def consistent_samples(rows: torch.Tensor, hashes: int, *, seed: int = 0) -> torch.Tensor:
    """Return consistent weighted samples [N, hashes] int64 of rows [N, D] of nonnegative weights; -1 for zero rows.

    A sample of two rows is equal with probability sum(min) / sum(max) of their weights.
    """
    decay, offset, level = _random_parameters(rows.shape[1], hashes, seed)
    result = np.full((len(rows), hashes), -1, dtype=np.int64)
    for number, row in enumerate(rows.numpy()):
        columns = np.flatnonzero(row > 0)
        if not len(columns):
            continue
        rate, shift = decay[:, columns], offset[:, columns]
        steps = np.floor(np.log(row[columns]) / rate + shift)
        chosen = (level[:, columns] - rate * (steps - shift + 1)).argmin(axis=1)
        step = np.take_along_axis(steps, chosen[:, None], axis=1)[:, 0]
        result[number] = columns[chosen] * _STEPS + step.astype(np.int64) + _STEPS // 2
    return torch.from_numpy(result)


def hash_agreement(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the fraction of equal hashes [N, M] between rows [N, H] and [M, H]; 0 for rows without content."""
    fractions = [((row == second) & (row >= 0)).float().mean(dim=1) for row in first]
    return torch.stack(fractions) if fractions else torch.zeros(0, len(second))


@cache
def _random_parameters(columns: int, hashes: int, seed: int) -> tuple[NDArray[np.float32], ...]:
    """Sample Gamma(2, 1), uniform, and log Gamma(2, 1) values, each [hashes, columns]."""
    uniform = np.random.default_rng(seed).random((5, hashes, columns), dtype=np.float32)
    # The sum of two exponentials is Gamma(2, 1). log1p(-u) is finite, because u is below 1.
    decay = -np.log1p(-uniform[0]) - np.log1p(-uniform[1])
    level = np.log(np.maximum(-np.log1p(-uniform[2]) - np.log1p(-uniform[3]), 1e-12))
    return np.maximum(decay, 1e-6), uniform[4], level
