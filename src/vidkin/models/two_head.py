"""The two-head classifier: logits and embeddings from a backbone's last map, for images or frame differences."""

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
    """Compute gray frame differences [B, T - 1, S, S] from -1 to 1 of clips [B, T, 3, S, S] from 0 to 1.

    The differences of a still clip are zero. Source: Fernando et al., "Self-supervised video representation learning
    with odd-one-out networks", CVPR 2017; "In defense of the triplet loss for visual recognition" uses 6 frames from
    2 s of video.
    """
    luma = torch.tensor(LUMINANCE, dtype=clips.dtype, device=clips.device)
    gray = (clips * luma[:, None, None]).sum(dim=2)
    return gray[:, 1:] - gray[:, :-1]


@torch.no_grad()
def widen_input(network: nn.Module, channels: int) -> None:
    """Change the number of input channels of a network's first convolution from three to ``channels``.

    The weights are repeated over the new channels and scaled by 3 / channels, so that the output keeps its magnitude
    and pretrained weights stay useful.

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


# Embedding dimension in the publication.
_DIMENSION = 256


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutputs:
    """Outputs of a forward pass on B inputs.

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
    """Two-head classifier: logits and unit vectors of images [B, 3, S, S] or clips (frame differences) in one pass.

    With the backbone's last map h, [F, h, w]: ``logits = W pool(h) + b`` and ``embedding = g / ||g||`` with
    ``g = V flatten(h) + c``. The embedding preserves the spatial layout; with ``embedding_from = "pooled"`` it is
    computed from pool(h), and with ``"none"`` it is the normalized pool(h), as in a plain classifier. The embedding
    layer is Xavier-initialized; the classifier and all biases are initialized to zero.

    Args:
        config: Configuration of kind ``two_head``, with mean and std; D is ``embedding``, or 256 if that is 0.
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
        # With zero weights, all classes are equally likely at first. Xavier weights on unnormalized pooled maps would
        # give a loss far above log C, whose first gradients would destroy the pretrained backbone.
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
        """Compute maps [B, F, h, w] of inputs from 0 to 1; no gradients if the backbone is frozen."""
        if self.config.motion is None:
            return self.backbone_features(frames)
        check_frames("clips", frames, 5, "[B, T, 3, S, S]", 2)
        maps: Tensor = self.backbone(stack_of_differences(frames))
        return maps

    def outputs(self, features: Tensor) -> HeadOutputs:
        """Compute the outputs from maps [B, F, h, w]."""
        if features.ndim != 4 or tuple(features.shape[1:]) != self._shape:
            raise InvalidArgumentError(
                f"features must be [B, {', '.join(map(str, self._shape))}], got {list(features.shape)}"
            )
        pooled = features.mean(dim=(2, 3))
        inputs = features.flatten(1) if self.config.embedding_from in (None, "map") else pooled
        return HeadOutputs(self.classifier(self.dropout(pooled)), unit(self.projection(inputs)), pooled)

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute unit vectors [B, D] from maps. ``lengths`` is ignored: short clips repeat their last frame, which
        adds no motion."""

        del lengths
        return self.outputs(features).embeddings

    def forward(self, inputs: Tensor) -> HeadOutputs:
        """Compute the outputs for images [B, 3, S, S] or clips [B, T, 3, S, S] from 0 to 1."""
        return self.outputs(self.frame_features(inputs))

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the classifier and the projection."""
        return [*self.classifier.parameters(), *self.projection.parameters()]


# Input size for tracing torchvision graphs, large enough that the stages' maps differ in size.
_PROBE = 224


def open_map_network(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None, seed: int
) -> PooledNetwork:
    """Open the backbone named in a configuration so that it returns maps [N, C, h, w]; ``dimension`` is C.

    Args:
        config, weights: As in :func:`vidkin.models.frame_network.open_frame_network`.
        seed: Seed for random weights.

    Raises:
        InvalidArgumentError: The name is unknown, the network does not accept this size, or it has no feature map (for
            example, a transformer).
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
    """A module whose ``forward`` calls another method of a network."""

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        self.network, self._name = network, name

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = getattr(self.network, self._name)(images)
        return maps


class _LastMap(nn.Module):
    """A module that returns the last of a network's maps."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = list(self.network(images).values())[-1]
        return maps
