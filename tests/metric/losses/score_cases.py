"""Scores and relevance shared by tests of losses on scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Shuffled classes of unequal size; class 3 has one member and therefore no positives.
LABELS = (2, 0, 1, 0, 0, 2, 3, 1, 0)

# The worked example of the specification: two blocks of two videos.
EXAMPLE_SCORES = (
    (1.0, 0.8, 0.3, 0.6),
    (0.8, 1.0, 0.2, 0.75),
    (0.3, 0.2, 1.0, 0.9),
    (0.6, 0.75, 0.9, 1.0),
)


def example() -> tuple[Tensor, Tensor]:
    """Scores [4, 4] and relevance [4, 4] of the worked example."""
    return torch.tensor(EXAMPLE_SCORES, dtype=torch.float64), torch.block_diag(torch.ones(2, 2), torch.ones(2, 2))


def anchor_embeddings() -> Tensor:
    """Normalized embeddings sin(0.7 i + 1.3 j + 0.1 i j), [12, 8], for which reference values are stored."""
    i = torch.arange(12.0, dtype=torch.float64).unsqueeze(1)
    j = torch.arange(8.0, dtype=torch.float64).unsqueeze(0)
    return normalize(torch.sin(0.7 * i + 1.3 * j + 0.1 * i * j), dim=1)


def anchor_relevance() -> Tensor:
    """Relevance of four consecutive classes of three, [12, 12]."""
    return same_label(torch.arange(12) // 3)


def same_label(labels: Tensor) -> Tensor:
    """Matrix with 1 where two labels are equal, and 0 elsewhere."""
    return (labels.unsqueeze(1) == labels.unsqueeze(0)).double()


def anchor_value_and_gradient(loss: Callable[[Tensor], Tensor]) -> tuple[float, float]:
    """Loss of the anchor embeddings, and the norm of its gradient."""
    embeddings = anchor_embeddings().requires_grad_()
    value = loss(embeddings)
    (gradient,) = torch.autograd.grad(value, embeddings)
    return value.item(), gradient.norm().item()


def random_case(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Asymmetric scores [9, 9] in (-1, 1) without ties, and the relevance of `LABELS`."""
    generator = torch.Generator().manual_seed(seed)
    scores = 2.0 * torch.rand(9, 9, generator=generator, dtype=torch.float64) - 1.0
    return scores, same_label(torch.tensor(LABELS))


def lists(relevance: Tensor, *, include_self: bool = False) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield each query with the columns of its positives and of its negatives."""
    for query, row in enumerate(relevance.tolist()):
        columns = [j for j in range(len(row)) if include_self or j != query]
        yield query, [j for j in columns if row[j] > 0], [j for j in columns if row[j] == 0]


def assert_same_with_gradient(
    fast: Callable[[Tensor], Tensor], slow: Callable[[Tensor], Tensor], scores: Tensor
) -> None:
    """Assert that two losses have equal values and gradients in double precision."""
    left, right = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    fast_value, slow_value = fast(left), slow(right)
    torch.testing.assert_close(fast_value, slow_value, rtol=1e-10, atol=1e-12)
    (fast_gradient,) = torch.autograd.grad(fast_value, left)
    (slow_gradient,) = torch.autograd.grad(slow_value, right)
    torch.testing.assert_close(fast_gradient, slow_gradient, rtol=1e-9, atol=1e-10)
    assert fast_gradient.abs().sum() > 0


def assert_gradcheck(loss: Callable[[Tensor], Tensor], scores: Tensor) -> None:
    """Assert that the gradient equals finite differences."""
    assert torch.autograd.gradcheck(loss, (scores.clone().requires_grad_(),), eps=1e-6, atol=1e-6)
