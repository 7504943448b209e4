"""Rows for classical features fitted to the training images, and for OASIS learned from their labels."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import (
    BilinearSimilarity,
    ColorHistogram,
    FisherVectors,
    GradientHistogram,
    HashedHistograms,
    ImageFeature,
    TextonPyramid,
    VisualWords,
    WaveletSignature,
)
from vidkin_research.images.contract import ImageRow, ImageTask

__all__ = ["CLASSICAL_ROWS", "ClassicalRow", "draw_label_triplets", "fit_feature"]

# Number of images for fitting a codebook, and number of triplets for OASIS.
_IMAGES = 700
_TRIPLETS = 50_000


class ClassicalRow:
    """A classical feature with its published distance."""

    def __init__(self, feature: ImageFeature) -> None:
        self.feature = feature

    def describe(self, images: NDArray[np.uint8]) -> Tensor:
        """Compute descriptors [N, D]."""
        return self.feature.describe(list(images))

    def distances(self, queries: Tensor, gallery: Tensor) -> Tensor:
        """Compute distances [Q, G]; lower is more similar, and values can be negative."""
        return self.feature.distances(queries, gallery)


def fit_feature(name: str, images: NDArray[np.uint8], labels: Tensor, seed: int) -> ImageFeature:
    """Fit a feature to at most 700 of the images, or OASIS to 50,000 triplets sampled from all of them.

    Args:
        name: One of :func:`vidkin_research.features.available_features`.
        images: [N, S, S, 3] RGB.
        labels: [N] int64 class indices, used only by OASIS.
        seed: Random seed for image sampling, codebooks and triplets.

    Raises:
        InvalidArgumentError: OASIS needs at least two classes, one of them with two images.
    """
    order = np.random.default_rng(seed).permutation(len(images))[:_IMAGES]
    pictures = list(images[order])
    # Limit the codebook to about a tenth of the number of patches that it is fitted to.
    most = max(8, len(pictures) * 6)
    if name == "words":
        return VisualWords.fit(pictures, words=min(2048, most), seed=seed)
    if name == "fisher":
        return FisherVectors.fit(pictures, gaussians=min(128, most), seed=seed)
    if name == "textons":
        return TextonPyramid.fit(pictures, textons=min(1024, most), seed=seed)
    if name in ("hash_kpca", "oasis"):
        words = VisualWords.fit(pictures, words=min(512, most), seed=seed)
        hashed = HashedHistograms.fit(pictures, words=words, seed=seed)
        if name == "hash_kpca":
            return hashed
        triplets = draw_label_triplets(labels, _TRIPLETS, seed=seed)
        if not triplets:
            raise InvalidArgumentError(
                f"oasis needs at least two classes, one of them with two images; got {len(images)} images of "
                f"{len(set(labels.tolist()))} classes"
            )
        return BilinearSimilarity.fit(hashed, hashed.describe(list(images)), triplets)
    plain: dict[str, ImageFeature] = {
        "wavelet": WaveletSignature(),
        "color": ColorHistogram(),
        "hog": GradientHistogram(),
    }
    return plain[name]


def draw_label_triplets(labels: Tensor, count: int, *, seed: int = 0) -> list[tuple[int, int, int]]:
    """Sample triplets of rows (query, same class, other class), uniformly over all queries that have both.

    Args:
        labels: [N] int64 class indices.
        count: Number of triplets.
        seed: Random seed.
    """
    generator = torch.Generator().manual_seed(seed)
    same = labels[:, None] == labels[None]
    other = ~same
    same.fill_diagonal_(False)
    able = (same.any(dim=1) & other.any(dim=1)).nonzero()[:, 0]
    if not len(able):
        return []
    queries = able[torch.randint(len(able), (count,), generator=generator)]
    drawn = [torch.multinomial(allowed[queries].float(), 1, generator=generator)[:, 0] for allowed in (same, other)]
    return list(zip(queries.tolist(), drawn[0].tolist(), drawn[1].tolist(), strict=True))


def _fit_row(task: ImageTask, seed: int, *, name: str) -> ClassicalRow:
    return ClassicalRow(fit_feature(name, task.train.images, task.train.labels[:, 1], seed))


# In the order of the published table. Rows without a codebook do not depend on the seed.
CLASSICAL_ROWS: tuple[ImageRow, ...] = tuple(
    ImageRow(f"classical: {title}", partial(_fit_row, name=name), group="classical", is_seeded=seeded)
    for title, name, seeded in (
        ("wavelet", "wavelet", False),
        ("color", "color", False),
        ("SIFT-like words", "words", True),
        ("SIFT-like Fisher", "fisher", True),
        ("HOG", "hog", False),
        ("SPMK textons", "textons", True),
        ("L1HashKPCA", "hash_kpca", True),
        ("OASIS", "oasis", True),
    )
)
"""The seven features and OASIS, each with its published distance."""
