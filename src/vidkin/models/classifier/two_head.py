"""A classifier with an embedding head: one network for classification and retrieval."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.models.classifier.differences import stack_of_differences, widen_input
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_frames, linear, unit
from vidkin.models.networks.frame_network import FrameNetwork

__all__ = ["HeadOutputs", "TwoHeadNetwork"]

_DIMENSION = 256


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutputs:
    """Outputs of one forward pass for B inputs.

    Attributes:
        logits: [B, C], one logit for each class.
        embeddings: [B, D] unit vectors.
        pooled: [B, F], the penultimate layer: the map's mean over the picture.
    """

    logits: Tensor
    embeddings: Tensor
    pooled: Tensor


class TwoHeadNetwork(Encoder):
    """Logits and unit vectors of images [B, 3, S, S], or of clips as stacks of differences, in one pass.

    With h the last map of the backbone, [F, h, w]: ``logits = W pool(h) + b`` and ``embedding = g / ||g||`` with
    ``g = V flatten(h) + c``. The embedding keeps the spatial layout; with ``embedding_from = "pooled"`` it is computed
    from pool(h), and with ``"none"`` it is pool(h) itself, as in a plain classifier. The embedding's weights start as
    Xavier's; the classifier and all biases start at zero.

    Args:
        config: Configuration of kind ``two_head``, with mean and std; D is ``embedding``, or 256 if that is 0.
        network: The backbone up to its map (:func:`vidkin.models.classifier.map_network.open_map_network`).

    Source: Taha et al., Boosting standard classification architectures through a ranking regularizer, WACV 2020.
    """

    def __init__(self, config: EncoderConfig, network: FrameNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        channels = 3
        if config.motion is not None:
            channels = config.frames - 1
            widen_input(self.backbone, channels)
        with torch.no_grad():
            shape = self.backbone.eval()(torch.zeros(1, channels, config.size, config.size)).shape[1:]
        self._shape = tuple(shape)
        features = int(shape[0])
        self.dropout = nn.Dropout(config.dropout)
        # All classes are equally likely at first. Xavier's weights on pooled maps without normalization give a loss far
        # above log C, whose first gradients ruin what the backbone has learned.
        self.classifier = linear(features, config.classes)
        nn.init.zeros_(self.classifier.weight)
        self.dimension = config.embedding or _DIMENSION
        self.projection: nn.Module
        if config.embedding_from == "none":
            self.projection, self.dimension = nn.Identity(), features
        elif config.embedding_from == "pooled":
            self.projection = linear(features, self.dimension)
        else:
            self.projection = linear(shape.numel(), self.dimension)

    def frame_features(self, frames: Tensor) -> Tensor:
        """Maps [B, F, h, w] of inputs from 0 to 1; without gradients if the backbone is frozen."""
        if self.config.motion is None:
            return self.backbone_features(frames)
        check_frames("clips", frames, 5, "[B, T, 3, S, S]", 2)
        maps: Tensor = self.backbone(stack_of_differences(frames))
        return maps

    def outputs(self, features: Tensor) -> HeadOutputs:
        """All outputs for maps [B, F, h, w]."""
        if features.ndim != 4 or tuple(features.shape[1:]) != self._shape:
            raise InvalidArgumentError(
                f"features must be [B, {', '.join(map(str, self._shape))}], got {list(features.shape)}"
            )
        pooled = features.mean(dim=(2, 3))
        seen = features.flatten(1) if self.config.embedding_from in (None, "map") else pooled
        return HeadOutputs(self.classifier(self.dropout(pooled)), unit(self.projection(seen)), pooled)

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Unit vectors [B, D] of maps; ``lengths`` is not used: a short clip repeats its last frame, without
        motion."""

        del lengths
        return self.outputs(features).embeddings

    def forward(self, inputs: Tensor) -> HeadOutputs:
        """All outputs for images [B, 3, S, S] or clips [B, T, 3, S, S] from 0 to 1."""
        return self.outputs(self.frame_features(inputs))

    def embed(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Unit vectors [B, D] of inputs, as :meth:`forward` gives them."""
        return self.head(self.frame_features(inputs), lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the classifier and the projection."""
        return [*self.classifier.parameters(), *self.projection.parameters()]
