"""What a training step gets: drawn items as tensors, with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from vidkin.models import Encoder, HeadOutputs, TwoHeadNetwork

__all__ = ["Batch", "Draw", "DrawnItems"]

Draw = Literal[
    "quadlets",
    "quadruplets_a",
    "quadruplets_b",
    "batches",
    "online_triplets",
    "uniform",
    "mined",
    "clusters",
    "views",
    "clips",
]
"""How items of a step are drawn, see :func:`vidkin.training.data.streams.index_stream`; ``mined``: triplets (a, p, n)
of random items that the model confuses; ``clusters``: items of clusters that are near each other; ``views`` of
unlabeled data: the first views of N / 2 images, then their second views; ``clips`` the same of videos, for a
comparator."""


@dataclass(frozen=True, slots=True)
class DrawnItems:
    """N items of one draw; tuples are stored member by member: all queries, all positives, ...

    Attributes:
        inputs: [N, T, F] or [N, F] features of a frozen backbone, or images [N, (T,) 3, S, S] from 0 to 1.
        lengths: [N] frames of each item; None if all are full.
        labels: [N, 2] int64 (category, subcategory); of views (image, image).
        are_features: Whether ``inputs`` are features.
        clusters: [N] numbers of clusters inside their classes, of the draw ``clusters``.
    """

    inputs: Tensor
    lengths: Tensor | None
    labels: Tensor
    are_features: bool
    clusters: Tensor | None = None

    def outputs(self, model: TwoHeadNetwork) -> HeadOutputs:
        """Logits and unit vectors in one pass, float32, with gradients."""
        found: HeadOutputs = model.outputs(self.inputs) if self.are_features else model(self.inputs)
        return HeadOutputs(found.logits.float(), found.embeddings.float(), found.pooled.float())

    def embeddings(self, model: Encoder) -> Tensor:
        """Unit vectors [N, D] float32, with gradients."""
        if self.are_features:
            vectors: Tensor = model.head(self.inputs, self.lengths)  # type: ignore[operator]
        else:
            vectors = model.embed(self.inputs, self.lengths)
        return vectors.float()


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of one step, for each draw of its objective."""

    draws: Mapping[Draw, DrawnItems]
