"""Batches, assertions and slow reference implementations for tests of embedding losses."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

# Degenerate batches that sampling does not always avoid; labels are (category, subcategory).
UNEQUAL = torch.tensor(
    [[0, 0], [1, 2], [0, 1], [0, 0], [2, 3], [0, 1], [1, 4], [0, 0], [1, 2], [2, 3], [0, 1], [1, 4], [0, 5]]
)
DEGENERATE = {
    "one class": torch.zeros(6, 2, dtype=torch.long),
    "all distinct": torch.stack([torch.arange(6), torch.arange(6)], dim=1),
    "one category, all distinct": torch.stack([torch.zeros(6, dtype=torch.long), torch.arange(6)], dim=1),
    "one item": torch.zeros(1, 2, dtype=torch.long),
    "no item": torch.zeros(0, 2, dtype=torch.long),
}


def anchor_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings x[i, j] = sin(0.7 i + 1.3 j + 0.1 i j), 12 x 8 (not normalized), with labels i // 3 and i // 6."""
    i, j = torch.arange(12.0)[:, None], torch.arange(8.0)[None, :]
    fine = torch.arange(12) // 3
    return torch.sin(0.7 * i + 1.3 * j + 0.1 * i * j), fine, fine // 2


def points(count: int, dimensions: int = 5, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(count, dimensions, generator=generator, dtype=torch.float64), dim=1).to(dtype)


def value_and_gradient(loss: Callable[[Tensor], Tensor], embeddings: Tensor) -> tuple[float, Tensor]:
    leaf = embeddings.detach().clone().requires_grad_()
    value = loss(leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    return float(value.detach()), gradient


def assert_same(first: tuple[float, Tensor], second: tuple[float, Tensor], tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(torch.tensor(first[0]), torch.tensor(second[0]), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(first[1], second[1], rtol=tolerance, atol=tolerance)


def slow_distance(a: Tensor, b: Tensor, distance: str = "squared") -> Tensor:
    squared = ((a - b) ** 2).sum()
    return squared if distance == "squared" else squared.sqrt()


def same(first: Tensor, second: Tensor) -> bool:
    return bool((first == second).all())


class Slow:
    """Enumerates the tuples of a batch item by item, with or without a reference set."""

    def __init__(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
        self_offset: int | None = None,
    ) -> None:
        self.x, self.y = embeddings, labels.reshape(len(labels), -1)
        self.offset = 0 if reference is None else self_offset
        self.r = embeddings if reference is None else reference
        self.z = self.y if reference_labels is None else reference_labels.reshape(len(reference_labels), -1)

    def is_self(self, query: int, reference: int) -> bool:
        return self.offset is not None and reference == query + self.offset

    def positives(self, query: int) -> list[int]:
        return [j for j in range(len(self.r)) if same(self.y[query], self.z[j]) and not self.is_self(query, j)]

    def negatives(self, query: int) -> list[int]:
        return [j for j in range(len(self.r)) if not same(self.y[query], self.z[j])]

    def intermediates(self, query: int) -> list[int]:
        return [
            j for j in range(len(self.r)) if self.y[query, 0] == self.z[j, 0] and not same(self.y[query], self.z[j])
        ]

    def others(self, query: int) -> list[int]:
        return [j for j in range(len(self.r)) if self.y[query, 0] != self.z[j, 0]]

    def distance(self, query: int, reference: int, distance: str = "squared") -> Tensor:
        return slow_distance(self.x[query], self.r[reference], distance)

    def quadlets(self) -> list[tuple[int, int, int, int]]:
        return [
            (q, p, i, n)
            for q in range(len(self.x))
            for p in self.positives(q)
            for i in self.intermediates(q)
            for n in self.others(q)
        ]


def mean_of(values: list[Tensor], attached_to: Tensor) -> Tensor:
    return torch.stack(values).mean() if values else attached_to.sum() * 0.0
