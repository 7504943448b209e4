"""Losses on class centers as terms of a recipe: the centers are created once model and classes are known."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vidkin.metric import losses
from vidkin.metric.losses.reductions import Reduction
from vidkin.models import Encoder

__all__ = ["CenterTerm", "TripletCenterTerm"]


class CenterTerm(nn.Module):
    """:class:`vidkin.metric.losses.CenterLoss` with centers of the length of the model's embeddings.

    Args:
        alpha: Rate at which centers follow, in [0, 1].
    """

    loss: nn.Module

    def __init__(self, alpha: float = 0.5, reduction: Reduction = "sum") -> None:
        super().__init__()
        # Created now, so that an invalid value is refused before the data are read; `prepare` replaces it.
        self.loss = losses.CenterLoss(1, 1, alpha=alpha, reduction=reduction)
        self._options = {"alpha": alpha, "reduction": reduction}

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the centers at 0."""
        del seed
        self.loss = losses.CenterLoss(classes, model.dimension, **self._options)  # type: ignore[arg-type]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of unit vectors [N, D] and class numbers [N]."""
        value: Tensor = self.loss(embeddings, labels)
        return value


class TripletCenterTerm(CenterTerm):
    """:class:`vidkin.metric.losses.TripletCenterLoss`, whose centers learn with the model.

    Args:
        margin: Margin of the hinge, 0 or more; distances of unit vectors in it are at most 2.
    """

    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean") -> None:
        nn.Module.__init__(self)
        self.loss = losses.TripletCenterLoss(1, 1, margin=margin, reduction=reduction)
        self._options = {"margin": margin, "reduction": reduction}

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the centers as random unit vectors."""
        generator = torch.Generator().manual_seed(seed)
        start = nn.functional.normalize(torch.randn(classes, model.dimension, generator=generator), dim=1)
        self.loss = losses.TripletCenterLoss(classes, model.dimension, centers=start, **self._options)  # type: ignore[arg-type]
