"""The frame encoder as a model that recipes can train and folders can store."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.features.frame_encoder import FrameEncoder, FrameEncoderSettings
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import Encoder, check_frames


class FrameEncoderModel(Encoder):
    """Unit vectors [B, D] of squares [B, 3, S, S] by a :class:`FrameEncoder`, which normalizes its input itself.

    Args:
        config: Configuration of kind ``frame_encoder``, as :func:`vidkin.models.build_model` completes it. S is
            ``size``, D is ``embedding`` (0: 128), and ``network`` holds the other settings of
            :class:`FrameEncoderSettings`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        settings = FrameEncoderSettings()
        table = {"side": config.size, "dimension": config.embedding or settings.dimension}
        settings = FrameEncoderSettings.from_table({**(config.network or {}), **table})
        # On a CPU, convolutions are much faster with channels last.
        self.network = FrameEncoder(settings).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dimension = settings.dimension

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Unit vectors [B, D] of squares [B, 3, S, S] from 0 to 1."""
        check_frames("frames", frames, 4, "[B, 3, S, S]", 1)
        vectors: torch.Tensor = self.network(frames.contiguous(memory_format=torch.channels_last))
        return vectors

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model; ``lengths`` must be None, as images have none."""
        if lengths is not None:
            raise InvalidArgumentError("lengths must be None for single frames")
        return self.forward(inputs)

    @property
    def square_digest(self) -> str:
        """The digest of the network alone, as for vidkin's own encoder."""
        return str(self.network.digest())

    def head_parameters(self) -> list[nn.Parameter]:
        """All parameters, since none is pretrained."""
        return list(self.parameters())
