"""The frame network of an encoder by its name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.features import open_pooled_network
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.small_network import SmallNetwork

__all__ = ["FrameNetwork", "open_frame_network"]

PathLike = str | os.PathLike[str]
Triple = tuple[float, float, float]

_ALIASES = {"alexnet": "torchvision:alexnet"}
_PLAIN_MEAN: Triple = (0.5, 0.5, 0.5)
_PLAIN_STD: Triple = (0.25, 0.25, 0.25)


@dataclass(frozen=True, slots=True, eq=False)
class FrameNetwork:
    """A frame network and what its input looks like.

    Attributes:
        module: [N, 3, S, S], normalised, to [N, dimension].
        dimension: F.
        mean: Of the input in units of full scale.
        std: Likewise.
    """

    module: nn.Module
    dimension: int
    mean: Triple
    std: Triple


def open_frame_network(
    config: EncoderConfig, *, weights: PathLike | Literal["random"] | None, seed: int
) -> FrameNetwork:
    """The backbone of a configuration, its parameters frozen where only the head is trained.

    Args:
        config: Its ``backbone``, ``width``, ``size`` and ``trainable`` count.
        weights: As of :func:`vidkin.features.open_pooled_network`; ``small`` has none to be loaded but takes a
            safetensors file of its own.
        seed: Of random weights.

    Raises:
        InvalidArgumentError: The name is none of those allowed, or the network does not take this size.
        WeightsUnavailableError: As there.
    """
    name = _ALIASES.get(config.backbone, config.backbone)
    if name == "small":
        network = _small(config, weights, seed)
    elif name.startswith(("timm:", "torchvision:")):
        pooled = open_pooled_network(name, weights=weights, seed=seed)
        network = FrameNetwork(pooled.module, pooled.dimension, pooled.mean, pooled.std)
    else:
        raise InvalidArgumentError(
            f"backbone is {config.backbone!r}, allowed are small, alexnet, timm:<model> and torchvision:<model>"
        )
    _probe(network, config)
    network.module.requires_grad_(config.trainable == "all")
    return network


def _small(config: EncoderConfig, weights: PathLike | None, seed: int) -> FrameNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = SmallNetwork(config.width)
    if weights is not None and weights != "random":
        from vidkin.models.store import load_state

        load_state(module, weights, label="backbone 'small'")
    return FrameNetwork(module, module.dimension, _PLAIN_MEAN, _PLAIN_STD)


def _probe(network: FrameNetwork, config: EncoderConfig) -> None:
    """Tell at once, and not in the middle of a training, that a network does not take this size."""
    training = network.module.training
    try:
        with torch.no_grad():
            network.module.eval()(torch.zeros(1, 3, config.size, config.size))
    except (AssertionError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"backbone {config.backbone} does not take pictures of {config.size} x {config.size} pixels: {error}"
        ) from error
    finally:
        network.module.train(training)
