"""Quadlets and triplets in the form that samplers return, and the seeded random sampling that samplers share."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError


class _Tuples:
    """B tuples, stored by part: each field is one part of all tuples, [B] int64."""

    query: torch.Tensor

    __slots__ = ()

    def __post_init__(self) -> None:
        parts = self._parts()
        if len({part.shape for part in parts}) != 1 or any(
            part.ndim != 1 or part.dtype != torch.int64 for part in parts
        ):
            raise InvalidArgumentError(
                f"the parts must be [B] int64 of the same length, got {[list(part.shape) for part in parts]} "
                f"{[str(part.dtype) for part in parts]}"
            )

    def __len__(self) -> int:
        return len(self.query)

    def stacked(self) -> torch.Tensor:
        """Stack the parts to [B, P] int64: one row per tuple, with its P parts in the order of the fields."""
        return torch.stack(self._parts(), dim=1)

    def _parts(self) -> list[torch.Tensor]:
        return [getattr(self, entry.name) for entry in fields(self)]  # type: ignore[arg-type]


@check_constructor
@dataclass(frozen=True, slots=True)
class Quadlets(_Tuples):
    """Indices of items; every part is [B] int64 on the CPU.

    Attributes:
        query: Any item.
        positive: Another item of the query's subcategory.
        intermediate: An item of the query's category but of another subcategory.
        negative: An item of another category.
    """

    query: torch.Tensor
    positive: torch.Tensor
    intermediate: torch.Tensor
    negative: torch.Tensor


@check_constructor
@dataclass(frozen=True, slots=True)
class Triplets(_Tuples):
    """Indices of items; every part is [B] int64.

    Attributes:
        query: Any item.
        positive: An item similar to the query.
        negative: An item less similar to the query than the positive.
    """

    query: torch.Tensor
    positive: torch.Tensor
    negative: torch.Tensor


def generator_of(seed: int | torch.Generator) -> torch.Generator:
    """Return the given generator, whose state will advance, or a new CPU generator for a seed."""
    return seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)


def epoch_generator(seed: int, epoch: int, rank: int = 0) -> torch.Generator:
    """Return a separate generator for each (seed, epoch, rank)."""
    # With a plain sum, (seed 0, epoch 1) and (seed 1, epoch 0) would coincide.
    mixed = ((seed * 1_000_003 + epoch) * 1_000_003 + rank) % (1 << 63)
    return torch.Generator().manual_seed(mixed)


def uniform_below(limits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Sample one integer per limit [B] int64, uniformly in 0..limit-1 (limits of 1 or more, below 2^53)."""
    share = torch.rand(limits.shape, generator=generator, dtype=torch.float64)
    # A fraction just below 1 times a large limit can round up to the limit itself.
    return (share * limits).long().minimum(limits - 1)


def check_labels(labels: torch.Tensor, levels: int) -> torch.Tensor:
    """Return labels as [N, levels] int64 on the CPU; [N] means one level.

    Raises:
        InvalidArgumentError: The labels are not integers with this number of levels.
    """
    table = labels.unsqueeze(1) if labels.ndim == 1 else labels
    if table.ndim != 2 or table.shape[1] != levels or table.is_floating_point():
        raise InvalidArgumentError(
            f"labels must be [N, {levels}] integers, the coarsest level first, got {list(labels.shape)} {labels.dtype}"
        )
    return table.detach().long().cpu()
