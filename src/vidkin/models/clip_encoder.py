"""Clips to unit vectors: frame network, fully connected layer, LSTM."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import BackboneEncoder, check_frames, linear, unit


class ClipEncoder(BackboneEncoder):
    """Frame network, fully connected layer (Xavier), LSTM over the frames; the last state, scaled to length 1.

    ``f(clip) = h_T / ||h_T||`` with ``h_t = LSTM(relu(W phi(frame_t) + b), h_{t-1})`` and phi the frame network: the
    clip encoder of Radial loss (ICIP), with any frame network. The last state of each clip is taken at its own length,
    so padding in the batch has no effect.

    B clips, T frames, S pixels per side, F length of the frame network's vectors, D = ``lstm`` or ``embedding``.

    Args:
        config: Configuration of kind ``clip``, with mean and std, as :func:`vidkin.models.build_model` completes it.
        network: The frame network.
    """

    def __init__(self, config: EncoderConfig, network: PooledNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.feature_dimension = network.dimension
        self.fully_connected = linear(network.dimension, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(config.hidden, config.lstm, batch_first=True)
        self.projection = linear(config.lstm, config.embedding) if config.embedding else nn.Identity()
        self.dimension = config.embedding or config.lstm

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Unit vectors [B, D] of frame features [B, T, F].

        Args:
            features: Output of :meth:`frame_features`; frames beyond a clip's length are ignored.
            lengths: [B] int64 in [1, T], frames of each clip; None: T for all.

        Raises:
            InvalidArgumentError: A shape or a length is wrong.
        """
        if features.ndim != 3 or features.shape[1] == 0 or features.shape[2] != self.feature_dimension:
            raise InvalidArgumentError(
                f"features must be [B, T, {self.feature_dimension}] with at least one frame, got {list(features.shape)}"
            )
        hidden = self.fully_connected(features)
        if self.config.activation == "relu":
            hidden = torch.relu(hidden)
        states, _ = self.lstm(self.dropout(hidden))
        if lengths is None:
            last = states[:, -1]
        else:
            clips, frames = features.shape[:2]
            if tuple(lengths.shape) != (clips,) or lengths.is_floating_point():
                raise InvalidArgumentError(
                    f"lengths must be [{clips}] whole numbers, got {list(lengths.shape)} {lengths.dtype}"
                )
            if not torch.compiler.is_compiling():  # an exported program cannot branch on values
                least, most = int(lengths.min()), int(lengths.max())
                if least < 1 or most > frames:
                    raise InvalidArgumentError(f"lengths must be from 1 to {frames}, got {least} to {most}")
            # An LSTM only looks back: its state at a clip's own end does not depend on the padding.
            position = (lengths.to(states.device) - 1)[:, None, None].expand(-1, 1, states.shape[2])
            last = states.gather(1, position)[:, 0]
        return unit(self.projection(last))

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Unit vectors [B, D] of clips [B, T, 3, S, S] from 0 to 1; ``lengths`` as in :meth:`head`."""
        check_frames("frames", frames, 5, "[B, T, 3, S, S]", 2)
        features = self.frame_features(frames.flatten(0, 1))
        return self.head(features.reshape(frames.shape[0], frames.shape[1], -1), lengths)

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model."""
        return self.forward(inputs, lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the fully connected layer, the LSTM and the projection."""
        parts = (self.fully_connected, self.lstm, self.projection)
        return [parameter for part in parts for parameter in part.parameters()]
