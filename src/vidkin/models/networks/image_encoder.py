"""Pictures to unit vectors: frame network and fully connected layer."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_frames, unit
from vidkin.models.networks.frame_network import FrameNetwork

__all__ = ["ImageEncoder"]


class ImageEncoder(Encoder):
    """Frame network, fully connected layer (Xavier), L2: the clip encoder without its LSTM.

    ``f(picture) = g / ||g||`` with ``g = W phi(picture) + b``; where ``embedding`` is set, a ReLU and a further linear
    layer follow. B pictures, S pixels a side, F length of the frame network's vectors, D = ``hidden`` or ``embedding``.

    Args:
        config: Of kind ``image``, with mean and std; :func:`vidkin.models.build_model` makes all of it.
        network: The frame network.
    """

    def __init__(self, config: EncoderConfig, network: FrameNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.feature_dimension = network.dimension
        self.fully_connected = nn.Linear(network.dimension, config.hidden)
        nn.init.xavier_uniform_(self.fully_connected.weight)
        nn.init.zeros_(self.fully_connected.bias)
        self.dropout = nn.Dropout(config.dropout)
        self.projection: nn.Module = nn.Identity()
        if config.embedding:
            self.projection = nn.Linear(config.hidden, config.embedding)
            nn.init.xavier_uniform_(self.projection.weight)
            nn.init.zeros_(self.projection.bias)
        self.dimension = config.embedding or config.hidden

    def frame_features(self, frames: torch.Tensor) -> torch.Tensor:
        """Pictures [N, 3, S, S] from 0 to 1 to [N, F]; without gradients where the backbone is frozen."""
        check_frames("frames", frames, 4, "[N, 3, S, S]", 1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.config.trainable == "all"):
            features: torch.Tensor = self.backbone(self.normalised(frames))
        return features

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Features [B, F] to unit vectors [B, D]; ``lengths`` must be None: pictures have none."""
        if features.ndim != 2 or features.shape[1] != self.feature_dimension or lengths is not None:
            raise InvalidArgumentError(
                f"features must be [B, {self.feature_dimension}] without lengths, given is {list(features.shape)}"
                + ("" if lengths is None else " with lengths")
            )
        hidden = self.dropout(self.fully_connected(features))
        if self.config.embedding:
            hidden = torch.relu(hidden)
        return unit(self.projection(hidden))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Pictures [B, 3, S, S] from 0 to 1 to unit vectors [B, D]."""
        return self.head(self.frame_features(frames))

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The same as calling it; ``lengths`` must be None."""
        return self.head(self.frame_features(inputs), lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Fully connected layer and projection."""
        parts = (self.fully_connected, self.projection)
        return [parameter for part in parts for parameter in part.parameters()]
