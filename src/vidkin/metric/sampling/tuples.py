"""Quadlets and triplets: what every sampler of them returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError

__all__ = ["Quadlets", "Triplets"]


@dataclass(frozen=True, slots=True)
class Quadlets:
    """Indices of items; every part is [B] int64 on the CPU.

    Attributes:
        query: Any item.
        positive: Another item of the query's subcategory.
        intermediate: An item of the query's category and another subcategory.
        negative: An item of another category.
    """

    query: torch.Tensor
    positive: torch.Tensor
    intermediate: torch.Tensor
    negative: torch.Tensor

    def __post_init__(self) -> None:
        _check_parts(self.query, self.positive, self.intermediate, self.negative)

    def __len__(self) -> int:
        return len(self.query)

    def stacked(self) -> torch.Tensor:
        """[B, 4] int64: one row per quadlet (query, positive, intermediate, negative)."""
        return torch.stack([self.query, self.positive, self.intermediate, self.negative], dim=1)


@dataclass(frozen=True, slots=True)
class Triplets:
    """Indices of items; every part is [B] int64.

    Attributes:
        query: Any item.
        positive: An item like the query.
        negative: An item less like the query.
    """

    query: torch.Tensor
    positive: torch.Tensor
    negative: torch.Tensor

    def __post_init__(self) -> None:
        _check_parts(self.query, self.positive, self.negative)

    def __len__(self) -> int:
        return len(self.query)

    def stacked(self) -> torch.Tensor:
        """[B, 3] int64: one row per triplet (query, positive, negative)."""
        return torch.stack([self.query, self.positive, self.negative], dim=1)


def _check_parts(*parts: torch.Tensor) -> None:
    shapes = [list(part.shape) for part in parts]
    if (
        any(part.ndim != 1 or part.dtype != torch.int64 for part in parts)
        or len({len(part) for part in parts}) != 1
    ):
        raise InvalidArgumentError(
            f"the parts must be [B] int64 with one B, got {shapes} {[str(part.dtype) for part in parts]}"
        )
