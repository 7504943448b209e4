"""What a training step gets: drawn items as tensors, with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from vidkin.models import Encoder

__all__ = ["Batch", "Draw", "DrawnItems"]

Draw = Literal["quadlets", "quadruplets_a", "quadruplets_b", "batches", "uniform"]
"""How items of a step are drawn, see :func:`vidkin.training.data.streams.index_stream`."""


@dataclass(frozen=True, slots=True)
class DrawnItems:
    """Items of one draw. N items; tuples come member by member: all queries, all positives, ...

    Attributes:
        inputs: [N, T, F] or [N, F] features of a frozen backbone, or pictures [N, (T,) 3, S, S] from 0 to 1.
        lengths: [N] frames of each item, None where all are full.
        labels: [N, 2] int64 (category, subcategory).
        are_features: What ``inputs`` are.
    """

    inputs: Tensor
    lengths: Tensor | None
    labels: Tensor
    are_features: bool

    def embeddings(self, model: Encoder) -> Tensor:
        """Unit vectors [N, D] float32, with gradients."""
        if self.are_features:
            found: Tensor = model.head(self.inputs, self.lengths)  # type: ignore[operator]
        else:
            found = model.embed(self.inputs, self.lengths)
        return found.float()


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one step needs: the items of each draw that the objective asks for."""

    draws: Mapping[Draw, DrawnItems]
