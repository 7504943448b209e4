"""The frame encoder as a model that recipes train and folders store."""

from __future__ import annotations

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_frames
from vidkin.models.networks.frame_encoder import FrameEncoder, FrameEncoderSettings

__all__ = ["FrameEncoderModel"]


class FrameEncoderModel(Encoder):
    """Squares [B, 3, S, S] to unit vectors [B, D] by a :class:`FrameEncoder`, which normalizes its input itself.

    Args:
        config: Of kind ``frame_encoder``, as :func:`vidkin.models.build_model` makes it. S is ``size``, D is
            ``embedding`` (0: 128), and ``network`` holds the other settings of :class:`FrameEncoderSettings`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        settings = FrameEncoderSettings()
        table = {"side": config.size, "dimension": config.embedding or settings.dimension}
        settings = FrameEncoderSettings.from_table({**(config.network or {}), **table})
        # On a CPU convolutions are much faster with the channels last.
        self.network = FrameEncoder(settings).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dimension = settings.dimension

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Squares [B, 3, S, S] from 0 to 1 to unit vectors [B, D]."""
        check_frames("frames", frames, 4, "[B, 3, S, S]", 1)
        vectors: torch.Tensor = self.network(frames.contiguous(memory_format=torch.channels_last))
        return vectors

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The same as calling it; ``lengths`` must be None: images have none."""
        if lengths is not None:
            raise InvalidArgumentError("lengths must be None for single frames")
        return self.forward(inputs)

    def head_parameters(self) -> list[nn.Parameter]:
        """All of them: nothing was pretrained."""
        return list(self.parameters())
