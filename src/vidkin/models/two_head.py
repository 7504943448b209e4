"""The two-head classifier: logits and embeddings from the last map of a backbone, on images or frame differences."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork, torchvision_stages
from vidkin.media.frames import LUMINANCE
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import BackboneEncoder, check_frames, linear, unit
from vidkin.models.frame_network import FrameEncoderFeatures, SmallNetwork, open_frame_network


def stack_of_differences(clips: Tensor) -> Tensor:
    """Differences of consecutive gray frames: [B, T - 1, S, S] from -1 to 1 for clips [B, T, 3, S, S] from 0 to 1.

    A still clip gives zeros. Source: Fernando et al., "Self-supervised video representation learning with odd-one-out
    networks", CVPR 2017; "In defense of the triplet loss for visual recognition" uses 6 frames of 2 s.
    """
    luma = torch.tensor(LUMINANCE, dtype=clips.dtype, device=clips.device)
    gray = (clips * luma[:, None, None]).sum(dim=2)
    return gray[:, 1:] - gray[:, :-1]


@torch.no_grad()
def widen_input(network: nn.Module, channels: int) -> None:
    """Give the first convolution of a network this many input channels instead of three.

    Its weights are repeated over the new channels and scaled by 3 / channels, so that the sum of its inputs keeps its
    magnitude and pretrained weights stay useful.

    Args:
        network: The network, changed in place.
        channels: Number of input channels, at least 1.
    """
    first = next(part for part in network.modules() if isinstance(part, nn.Conv2d) and part.in_channels == 3)
    weight = first.weight
    first.weight = nn.Parameter(
        weight[:, torch.arange(channels, device=weight.device) % 3] * (3 / channels),
        requires_grad=weight.requires_grad,
    )
    first.in_channels = channels


# The published length of the embedding.
_DIMENSION = 256


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutputs:
    """Outputs of one forward pass for B inputs.

    Attributes:
        logits: [B, C], one logit per class.
        embeddings: [B, D] unit vectors.
        pooled: [B, F], the penultimate layer: the spatial mean of the map.
    """

    logits: Tensor
    embeddings: Tensor
    pooled: Tensor


@check_constructor
class TwoHeadNetwork(BackboneEncoder):
    """Two-head classifier: logits and unit vectors of images [B, 3, S, S] or of clips as differences, in one pass.

    With h the last map of the backbone, [F, h, w]: ``logits = W pool(h) + b`` and ``embedding = g / ||g||`` with
    ``g = V flatten(h) + c``. The embedding keeps the spatial layout; with ``embedding_from = "pooled"`` it is computed
    from pool(h), and with ``"none"`` it is pool(h) itself, as in a plain classifier. The weights of the embedding have
    Xavier initialization; the classifier and all biases start at zero.

    Args:
        config: Configuration of kind ``two_head``, with mean and std; D is ``embedding``, or 256 if it is 0.
        network: The backbone up to its map (:func:`vidkin.models.two_head.open_map_network`).

    Source: Taha et al., Boosting standard classification architectures through a ranking regularizer, WACV 2020.
    """

    def __init__(self, config: EncoderConfig, network: PooledNetwork) -> None:
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
        # With zeros, all classes are equally likely at first. Xavier weights on unnormalized pooled maps would give a
        # loss far above log C, whose first gradients would destroy the pretrained backbone.
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
        """The outputs for maps [B, F, h, w]."""
        if features.ndim != 4 or tuple(features.shape[1:]) != self._shape:
            raise InvalidArgumentError(
                f"features must be [B, {', '.join(map(str, self._shape))}], got {list(features.shape)}"
            )
        pooled = features.mean(dim=(2, 3))
        inputs = features.flatten(1) if self.config.embedding_from in (None, "map") else pooled
        return HeadOutputs(self.classifier(self.dropout(pooled)), unit(self.projection(inputs)), pooled)

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Unit vectors [B, D] of maps. ``lengths`` is not needed: short clips repeat their last frame, which adds no
        motion."""

        del lengths
        return self.outputs(features).embeddings

    def forward(self, inputs: Tensor) -> HeadOutputs:
        """The outputs for images [B, 3, S, S] or clips [B, T, 3, S, S] from 0 to 1."""
        return self.outputs(self.frame_features(inputs))

    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the classifier and the projection."""
        return [*self.classifier.parameters(), *self.projection.parameters()]


# Input size for tracing torchvision graphs, large enough for the maps of all resolutions to differ in size.
_PROBE = 224


def open_map_network(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None, seed: int
) -> PooledNetwork:
    """Open the backbone of a configuration so that it returns maps [N, C, h, w]; ``dimension`` is C.

    Args:
        config: Configuration as in :func:`vidkin.models.frame_network.open_frame_network`.
        weights: Weights as in that function.
        seed: Seed of random weights.

    Raises:
        InvalidArgumentError: The name is unknown, the network does not accept this size, or it has no map (such as a
            transformer).
    """
    network = open_frame_network(config, weights=weights, seed=seed)
    module = network.module
    if config.backbone.startswith("torchvision:"):
        maps: nn.Module = _LastMap(torchvision_stages(module, config.backbone, None, _PROBE))
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
    """A network whose forward method calls a method of another network."""

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        self.network, self._name = network, name

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = getattr(self.network, self._name)(images)
        return maps


class _LastMap(nn.Module):
    """A network that returns the last of the maps of another network."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = list(self.network(images).values())[-1]
        return maps
