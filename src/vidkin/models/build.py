"""Build the network of a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from vidkin.models.classifier.map_network import open_map_network
from vidkin.models.classifier.two_head import TwoHeadNetwork
from vidkin.models.config import PLAIN_MEAN, PLAIN_STD, EncoderConfig
from vidkin.models.networks.clip_encoder import ClipEncoder
from vidkin.models.networks.deep_ranking import DeepRankingNetwork
from vidkin.models.networks.encoder import Encoder
from vidkin.models.networks.frame_model import FrameEncoderModel
from vidkin.models.networks.frame_network import FrameNetwork, open_frame_network
from vidkin.models.networks.image_encoder import ImageEncoder
from vidkin.models.networks.segment_classifier import DeepSBDNetwork
from vidkin.models.networks.video_network import VideoNetwork
from vidkin.models.randomness import seeded
from vidkin.models.weights import load_weights

__all__ = ["build_model"]

_WITH_BACKBONE: dict[str, Callable[[EncoderConfig, FrameNetwork], Encoder]] = {
    "clip": ClipEncoder,
    "image": ImageEncoder,
    "deep_ranking": DeepRankingNetwork,
    "two_head": TwoHeadNetwork,
}
_WITHOUT_BACKBONE: dict[str, Callable[[EncoderConfig], Encoder]] = {
    "c3d": VideoNetwork,
    "deep_sbd": DeepSBDNetwork,
    "frame_encoder": FrameEncoderModel,
}


def build_model(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None = None, seed: int = 0
) -> Encoder:
    """Build the network of a configuration, in training mode, on the CPU.

    Args:
        config: Settings of the network. Where mean and std are None, the model's ``config`` gets the backbone's own.
        weights: A safetensors file with the backbone's weights (with all weights, for a kind without a backbone).
            None: a named network (``timm:``, ``torchvision:``, ``alexnet``) gets its published weights from the hub or
            the local cache, any other network random ones. ``"random"``: random weights for a named network, too.
        seed: Seed of all random weights. The same seed gives the same network; the caller's random state is not
            touched.

    Raises:
        InvalidArgumentError: A setting is not allowed, or the file does not fit.
        UnknownExtractorError: No network has this name.
        WeightsUnavailableError: The backbone's weights are not given and cannot be downloaded.
    """
    model: Encoder
    if config.kind in _WITHOUT_BACKBONE:
        if config.kind != "frame_encoder":
            config = replace(config, mean=config.mean or PLAIN_MEAN, std=config.std or PLAIN_STD)
        with seeded(seed):
            model = _WITHOUT_BACKBONE[config.kind](config)
        if weights is not None and weights != "random":
            load_weights(model, weights, label=f"a {config.kind} network")
        return model.train()
    open_network = open_map_network if config.kind == "two_head" else open_frame_network
    network = open_network(config, weights=weights, seed=seed)
    settled = replace(config, mean=config.mean or network.mean, std=config.std or network.std)
    with seeded(seed + 1):
        model = _WITH_BACKBONE[config.kind](settled, network)
    return model.train()
