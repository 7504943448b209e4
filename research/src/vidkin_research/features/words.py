"""Visual word histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch.nn import functional

from vidkin._base.registry import import_part
from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.feature import Image, l1_distances, sample_rows
from vidkin_research.features.gabor import PATCH_LENGTH, patches_of

__all__ = ["VisualWords", "cluster", "nearest_center"]

_EACH, _MOST = 64, 200_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VisualWords:
    """SIFT-like: histogram of an image's patches over K visual words, [T, K]; the distance is L1, from 0 to 2.

    Source: Wang et al., deep ranking, supplement, section 4 (128, 512 and 2,048 words; best with 2,048). Patches are
    those of :func:`~vidkin_research.features.gabor.describe_patches`; words are k-means centers. An image without
    texture has an all-zero histogram. The cosine of two embeddings is the Bhattacharyya coefficient of the histograms.

    Attributes:
        centers: [K, 144] float32, the visual words.
    """

    name: ClassVar[str] = "words"
    centers: torch.Tensor

    def __post_init__(self) -> None:
        if self.centers.ndim != 2 or self.centers.shape[1] != PATCH_LENGTH:
            raise InvalidArgumentError(f"centers must be [K, {PATCH_LENGTH}], got {list(self.centers.shape)}")

    @classmethod
    def fit(cls, images: Iterable[Image], *, words: int = 2048, seed: int = 0) -> Self:
        """Fit words to up to 200,000 patches from a few hundred images.

        Raises:
            InvalidArgumentError: There are fewer patches with texture than words.
        """
        return cls(cluster(sample_rows(patches_of(images), each=_EACH, most=_MOST, seed=seed), words, seed=seed))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return histograms [T, K] float32, each with sum 1 or 0."""
        result = torch.zeros(len(images), len(self.centers))
        for row, patches in zip(result, patches_of(images), strict=True):
            content = patches[patches.abs().amax(dim=1) > 0]
            counts = nearest_center(content, self.centers).bincount(minlength=len(row))
            row[:] = counts / max(len(content), 1)
        return result

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return L1 distances [N, M] in [0, 2]."""
        return l1_distances(first, second)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the square roots of the histograms, [T, K]."""
        return functional.normalize(descriptors.sqrt(), dim=1)


def cluster(rows: torch.Tensor, count: int, *, seed: int) -> torch.Tensor:
    """Cluster rows [N, D] with mini-batch k-means and return the centers [count, D].

    Raises:
        InvalidArgumentError: There are fewer rows than centers.
    """
    clustering = import_part("sklearn.cluster", extra="train")
    check_at_least(1, count=count)
    if len(rows) < count:
        raise InvalidArgumentError(
            f"{count} centers need at least {count} patches with content, got {len(rows)}; "
            "use more images or fewer centers"
        )
    # A batch must contain enough rows for all centers.
    means = clustering.MiniBatchKMeans(count, batch_size=max(4096, 2 * count), n_init=1, random_state=seed)
    return torch.from_numpy(means.fit(rows.numpy()).cluster_centers_).float()


def nearest_center(rows: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return [N] int64, the index of the nearest center [K, D] for each row [N, D]."""
    return (rows @ centers.T - centers.square().sum(dim=1) / 2).argmax(dim=1)
