"""A frame network up to its last feature map, before pooling."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.features import torchvision_stages
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.frame_network import FrameEncoderFeatures, FrameNetwork, open_frame_network
from vidkin.models.networks.small_network import SmallNetwork

__all__ = ["open_map_network"]

# Input size for tracing torchvision graphs: large enough for maps of every resolution to differ.
_PROBE = 224


def open_map_network(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None, seed: int
) -> FrameNetwork:
    """Open the backbone of a configuration so that it returns maps [N, C, h, w]; ``dimension`` is C.

    Args:
        config: Configuration as in :func:`vidkin.models.networks.frame_network.open_frame_network`.
        weights: Weights as in that function.
        seed: Seed of random weights.

    Raises:
        InvalidArgumentError: The name is unknown, the network does not take this size, or it has no map (a
            transformer).
    """
    network = open_frame_network(config, weights=weights, seed=seed)
    module = network.module
    if config.backbone.startswith("torchvision:") or config.backbone == "alexnet":
        maps: nn.Module = _LastOf(torchvision_stages(module, config.backbone, None, _PROBE))
    elif isinstance(module, SmallNetwork | FrameEncoderFeatures):
        maps = _Method(module, "maps")
    else:
        maps = _Method(module, "forward_features")
    maps.eval()
    with torch.no_grad():
        output = maps(torch.zeros(1, 3, config.size, config.size))
    if output.ndim != 4 or output.shape[2] != output.shape[3]:
        raise InvalidArgumentError(
            f"backbone {config.backbone} must end in a square feature map for kind 'two_head', got "
            f"{list(output.shape)}; choose a convolutional network"
        )
    return replace(network, module=maps, dimension=int(output.shape[1]))


class _Method(nn.Module):
    """Calls one method of a network."""

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        self.network, self._name = network, name

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = getattr(self.network, self._name)(images)
        return maps


class _LastOf(nn.Module):
    """The last of the maps that a network returns by name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = list(self.network(images).values())[-1]
        return maps
