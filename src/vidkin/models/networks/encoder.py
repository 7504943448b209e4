"""What all networks of this room have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.models.config import EncoderConfig

__all__ = ["Encoder", "check_frames", "unit"]


class Encoder(nn.Module, ABC):
    """A network that makes unit vectors of pictures or clips.

    Inputs are pictures with values from 0 to 1; the normalisation by mean and standard deviation happens inside.

    Attributes:
        config: What it is made of; mean and std are filled in.
        dimension: D, length of the embedding.
        class_names: Names of the classes or labels that it was trained with, if they are known.
    """

    config: EncoderConfig
    dimension: int

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        if config.mean is None or config.std is None:
            raise InvalidArgumentError("mean and std of the input are not settled; use build_model")
        self.config = config
        self.class_names: tuple[str, ...] = ()
        # Not part of the state: the configuration holds them.
        self.register_buffer("_mean", torch.tensor(config.mean)[:, None, None], persistent=False)
        self.register_buffer("_std", torch.tensor(config.std)[:, None, None], persistent=False)

    @abstractmethod
    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Unit vectors [B, D] of pictures [B, 3, S, S] or of clips [B, T, 3, S, S], values from 0 to 1.

        Args:
            inputs: Which of the two it takes says ``config.takes_clips``.
            lengths: [B] int64, frames of each clip; what follows in a shorter clip is padding. None: all are full.
        """

    @abstractmethod
    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the new layers, which learn faster than a pretrained backbone."""

    def parameter_groups(self, learning_rate: float, *, head_factor: float = 10.0) -> list[dict[str, Any]]:
        """Parameters and learning rates for an optimiser.

        Where the backbone is trained, too, it gets ``learning_rate`` and everything after it ``head_factor`` times that
        (10 in the paper); a head alone, or a network without a backbone, gets ``learning_rate``.

        Returns:
            One or two dictionaries with ``params``, ``lr`` and ``name`` (``backbone``, ``head``).
        """
        head = [parameter for parameter in self.head_parameters() if parameter.requires_grad]
        known = {id(parameter) for parameter in head}
        rest = [
            parameter
            for parameter in self.parameters()
            if parameter.requires_grad and id(parameter) not in known
        ]
        if not rest:
            return [{"params": head, "lr": learning_rate, "name": "head"}]
        return [
            {"params": rest, "lr": learning_rate, "name": "backbone"},
            {"params": head, "lr": learning_rate * head_factor, "name": "head"},
        ]

    def normalised(self, pictures: torch.Tensor) -> torch.Tensor:
        """[..., 3, S, S] from 0 to 1 to what the network takes."""
        mean, std = self.get_buffer("_mean"), self.get_buffer("_std")
        return (pictures - mean) / std

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.get_buffer("_mean").device

    def train(self, mode: bool = True) -> Self:
        """Training or eval mode; a frozen backbone and frozen batch norms stay in eval mode."""
        super().train(mode)
        backbone = getattr(self, "backbone", None)
        if mode and isinstance(backbone, nn.Module):
            if self.config.trainable == "head":
                backbone.eval()
            elif self.config.frozen_batch_norm:
                for part in backbone.modules():
                    # timm's batch norms with activation are subclasses.
                    if isinstance(part, nn.modules.batchnorm._BatchNorm):
                        part.eval()
        return self


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """[..., D] brought to length 1."""
    return nn.functional.normalize(vectors, dim=-1, eps=1e-12)


def check_frames(name: str, given: torch.Tensor, dimensions: int, layout: str, channel: int) -> None:
    """:class:`InvalidArgumentError` unless ``given`` is floating point and has this layout."""
    if given.ndim != dimensions or given.shape[channel] != 3 or not given.is_floating_point():
        raise InvalidArgumentError(
            f"{name} must be {layout} floating point from 0 to 1, given is {list(given.shape)} {given.dtype}"
        )
