"""Images to unit vectors: frame network and fully connected layer."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_features, linear, unit
from vidkin.models.networks.frame_network import FrameNetwork

__all__ = ["ImageEncoder"]


class ImageEncoder(Encoder):
    """Frame network, fully connected layer (Xavier), L2: the clip encoder without its LSTM.

    ``f(image) = g / ||g||`` with ``g = W phi(image) + b``; if ``embedding`` is set, a ReLU and a further linear layer
    follow. B images, S pixels a side, F length of the frame network's vectors, D = ``hidden`` or ``embedding``.

    Args:
        config: Of kind ``image``, with mean and std, as :func:`vidkin.models.build_model` makes it.
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
        """Images [N, 3, S, S] from 0 to 1 to [N, F]; without gradients if the backbone is frozen."""
        return self.backbone_features(frames)

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Features [B, F] to unit vectors [B, D]; ``lengths`` must be None: images have none."""
        check_features(features, self.feature_dimension, lengths)
        hidden = self.dropout(self.fully_connected(features))
        if self.config.embedding:
            hidden = torch.relu(hidden)
        return unit(self.projection(hidden))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Images [B, 3, S, S] from 0 to 1 to unit vectors [B, D]."""
        return self.head(self.frame_features(frames))

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The same as calling it; ``lengths`` must be None."""
        return self.head(self.frame_features(inputs), lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Fully connected layer and projection."""
        return [*self.fully_connected.parameters(), *self.projection.parameters()]
