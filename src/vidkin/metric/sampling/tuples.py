"""Quadlets and triplets: what every sampler of them returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError

__all__ = ["Quadlets", "Triplets", "checked_labels", "epoch_generator", "generator_of", "uniform_below"]


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


# Seeded random draws shared by all samplers.


def generator_of(seed: int | torch.Generator) -> torch.Generator:
    """A generator on the CPU: the given one (its state advances), or a new one from a seed."""
    return seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)


def epoch_generator(seed: int, epoch: int, rank: int = 0) -> torch.Generator:
    """A generator of its own for every (seed, epoch, rank)."""
    # Sums of small multiples would let (seed 0, epoch 1) and (seed 1, epoch 0) meet.
    mixed = ((seed * 1_000_003 + epoch) * 1_000_003 + rank) % (1 << 63)
    return torch.Generator().manual_seed(mixed)


def uniform_below(limits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One integer per limit [B] int64, uniform in 0..limit-1 (limits of 1 or more, below 2^53)."""
    share = torch.rand(limits.shape, generator=generator, dtype=torch.float64)
    # A share just under 1 times a large limit can round up to the limit itself.
    return (share * limits).long().minimum(limits - 1)


def checked_labels(labels: torch.Tensor, levels: int) -> torch.Tensor:
    """Labels as [N, levels] int64 on the CPU; [N] stands for one level.

    Raises:
        InvalidArgumentError: Labels are not integers of that many levels.
    """
    table = labels.unsqueeze(1) if labels.ndim == 1 else labels
    if table.ndim != 2 or table.shape[1] != levels or table.is_floating_point():
        raise InvalidArgumentError(
            f"labels must be [N, {levels}] integers, the coarsest level first, "
            f"got {list(labels.shape)} {labels.dtype}"
        )
    return table.detach().long().cpu()
