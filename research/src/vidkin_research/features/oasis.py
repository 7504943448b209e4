"""A bilinear similarity learned online from triplets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch.nn import functional

from vidkin._base.values import check_positive
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.feature import Image, ImageFeature

__all__ = ["BilinearSimilarity", "learn_bilinear"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BilinearSimilarity:
    """OASIS: the vectors [T, D] of another feature, compared by p^T W q; the distance is -p^T W q.

    Source: Chechik, Sharma, Shalit and Bengio, "Large scale online learning of image similarity through ranking", JMLR
    2010; Wang et al., deep ranking, learn it on L1HashKPCA. W need not be symmetric. In an index the similarity is
    symmetric: embeddings use the positive part of (W + W^T) / 2.

    Attributes:
        base: The feature whose embeddings are compared.
        matrix: The matrix W, [D, D] float32.
    """

    name: ClassVar[str] = "oasis"
    base: ImageFeature
    matrix: torch.Tensor

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise InvalidArgumentError(f"matrix must be [D, D], got {list(self.matrix.shape)}")

    @classmethod
    def fit(
        cls,
        base: ImageFeature,
        descriptors: torch.Tensor,
        triplets: Iterable[tuple[int, int, int]],
        *,
        aggressiveness: float = 0.1,
    ) -> Self:
        """Learn W.

        Args:
            base: The feature whose embeddings are compared.
            descriptors: [N, D'] descriptors of the training pictures by ``base``.
            triplets: Rows of query, positive and negative, in the order of training.
            aggressiveness: Limit of a step; see :func:`learn_bilinear`.
        """
        return cls(base, learn_bilinear(base.embed(descriptors), triplets, aggressiveness=aggressiveness))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Vectors [T, D] of the base, of length 1 or 0."""
        return self.base.embed(self.base.describe(images))

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """-p^T W q, [N, M]; queries come first, as W may differ from its transpose."""
        return -(first @ self.matrix @ second.T)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """``L p`` with L^T L the positive part of the symmetric part of W, scaled to length 1."""
        values, vectors = torch.linalg.eigh(((self.matrix + self.matrix.T) / 2).double())
        root = (vectors * values.clamp_min(0).sqrt()).float()
        return functional.normalize(descriptors @ root, dim=1)


def learn_bilinear(
    vectors: torch.Tensor, triplets: Iterable[tuple[int, int, int]], *, aggressiveness: float = 0.1
) -> torch.Tensor:
    """W [D, D] by passive-aggressive steps from the identity (OASIS).

    For each triplet of rows (p, p+, p-): ``l = max(0, 1 - p^T W p+ + p^T W p-)``, ``V = p (p+ - p-)^T``,
    ``tau = min(C, l / ||V||^2)``, ``W += tau V``. So a step changes W just enough to bring the loss to 0, and no more
    than C allows.

    Args:
        vectors: [N, D] vectors of length 1.
        triplets: Row numbers of query, positive and negative.
        aggressiveness: The constant C, above 0.

    Raises:
        InvalidArgumentError: C is not above 0.
    """
    check_positive(aggressiveness=aggressiveness)
    rows = vectors.double()
    matrix = torch.eye(rows.shape[1], dtype=torch.float64)
    for query, positive, negative in triplets:
        difference = rows[positive] - rows[negative]
        loss = 1 - float(rows[query] @ matrix @ difference)
        # ||p d^T||^2 = ||p||^2 ||d||^2
        size = float(rows[query].square().sum() * difference.square().sum())
        if loss > 0 and size > 0:
            matrix.addr_(rows[query], difference, alpha=min(aggressiveness, loss / size))
    return matrix.float()
