"""Cross entropy over the subcategories, an objective besides those that compare embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepSBDNetwork, Encoder, VideoNetwork
from vidkin.training.data.batch import DrawnItems

__all__ = ["Classification"]


class Classification(nn.Module):
    """Cross entropy over the subcategories.

    A network that classifies (``c3d``, ``deep_sbd``, ``two_head``) returns its own logits; an encoder gets a layer of
    class directions w_k on its unit vectors: ``logit_k = scale <f, w_k / ||w_k||>``.

    Args:
        scale: Factor applied to the cosines of the directions, above 0.
        smoothing: Share of the target spread over all classes, in [0, 1).

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    def __init__(self, scale: float = 16.0, smoothing: float = 0.0) -> None:
        super().__init__()
        if not scale > 0 or not 0 <= smoothing < 1:
            raise InvalidArgumentError(
                f"scale must be above 0 and smoothing at least 0 and below 1, got {scale} and {smoothing}"
            )
        self.scale, self.smoothing = scale, smoothing
        self.directions: nn.Parameter | None = None

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the directions, unless the model has its own classifier."""
        if not model.config.is_classifier:
            generator = torch.Generator().manual_seed(seed)
            self.directions = nn.Parameter(torch.randn(classes, model.dimension, generator=generator))

    def of_network(self, model: Encoder, items: DrawnItems) -> tuple[Tensor, Tensor, Tensor]:
        """(loss, share of items classified correctly, unit vectors of the logits) for a network's own classes."""
        assert isinstance(model, VideoNetwork | DeepSBDNetwork)
        logits = items.computed_by(model.classify)
        # Logits and embeddings in one pass would need the network's inner layer; a collapse shows in the logits, too.
        return *self.of_logits(logits, items.labels), nn.functional.normalize(logits.detach(), dim=1)

    def of_embeddings(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """(loss, share of items classified correctly) for unit vectors [N, D] and labels [N, 2]."""
        assert self.directions is not None
        directions = nn.functional.normalize(self.directions, dim=1)
        return self.of_logits(self.scale * embeddings @ directions.T, labels)

    def of_logits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """(loss, share of items classified correctly) for logits [N, C] and labels [N, 2]."""
        target = labels[:, 1]
        loss = nn.functional.cross_entropy(logits, target, label_smoothing=self.smoothing)
        return loss, (logits.detach().argmax(dim=1) == target).float().mean()
