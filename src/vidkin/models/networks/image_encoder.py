"""Images to unit vectors: frame network and fully connected layer."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_features, linear, unit
from vidkin.models.networks.frame_network import FrameNetwork

__all__ = ["ImageEncoder"]


class ImageEncoder(Encoder):
    """Frame network and fully connected layer (Xavier), scaled to length 1: the clip encoder without its LSTM.

    ``f(image) = g / ||g||`` with ``g = W phi(image) + b``; if ``embedding`` is set, a ReLU and another linear layer
    follow. B images, S pixels per side, F length of the frame network's vectors, D = ``hidden`` or ``embedding``.

    Args:
        config: Configuration of kind ``image``, with mean and std, as :func:`vidkin.models.build_model` completes it.
        network: The frame network.
    """

    def __init__(self, config: EncoderConfig, network: FrameNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.feature_dimension = network.dimension
        self.fully_connected = linear(network.dimension, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.projection = linear(config.hidden, config.embedding) if config.embedding else nn.Identity()
        self.dimension = config.embedding or config.hidden

    def frame_features(self, frames: torch.Tensor) -> torch.Tensor:
        """Features [N, F] of images [N, 3, S, S] from 0 to 1; without gradients if the backbone is frozen."""
        return self.backbone_features(frames)

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Unit vectors [B, D] of features [B, F]; ``lengths`` must be None, as images have none."""
        check_features(features, self.feature_dimension, lengths)
        hidden = self.dropout(self.fully_connected(features))
        if self.config.embedding:
            hidden = torch.relu(hidden)
        return unit(self.projection(hidden))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Unit vectors [B, D] of images [B, 3, S, S] from 0 to 1."""
        return self.head(self.frame_features(frames))

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model; ``lengths`` must be None."""
        return self.head(self.frame_features(inputs), lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the fully connected layer and the projection."""
        return [*self.fully_connected.parameters(), *self.projection.parameters()]
