"""From a configuration to a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.clip_encoder import ClipEncoder
from vidkin.models.networks.deep_ranking import DeepRankingNetwork
from vidkin.models.networks.encoder import Encoder
from vidkin.models.networks.frame_network import FrameNetwork, open_frame_network
from vidkin.models.networks.image_encoder import ImageEncoder
from vidkin.models.networks.segment_classifier import DeepSBDNetwork
from vidkin.models.networks.video_network import VideoNetwork

__all__ = ["build_model"]

_WITH_BACKBONE: dict[str, Callable[[EncoderConfig, FrameNetwork], Encoder]] = {
    "clip": ClipEncoder,
    "image": ImageEncoder,
    "deep_ranking": DeepRankingNetwork,
}
_ALONE: dict[str, Callable[[EncoderConfig], Encoder]] = {"c3d": VideoNetwork, "deep_sbd": DeepSBDNetwork}
_PLAIN_MEAN = (0.5, 0.5, 0.5)
_PLAIN_STD = (0.25, 0.25, 0.25)


def build_model(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None = None, seed: int = 0
) -> Encoder:
    """The network of a configuration, in training mode, on the CPU.

    Args:
        config: Its mean and std are filled in from the backbone where they are None; see ``model.config``.
        weights: Of the backbone: a safetensors file; None: from the hub's cache or the hub for a named network
            (``timm:``, ``torchvision:``, ``alexnet``), fresh ones for what is made here (``small``, 3-D networks);
            ``"random"``: fresh ones for a named network, too, which has to be said.
        seed: Of all fresh weights; the same seed gives the same network, and the caller's own random numbers go on
            undisturbed.

    Raises:
        InvalidArgumentError: A setting is not allowed.
        UnknownExtractorError: There is no such network.
        WeightsUnavailableError: The backbone's weights are neither given nor to be had.
    """
    model: Encoder
    if config.kind in _ALONE:
        settled = _settled(config, _PLAIN_MEAN, _PLAIN_STD)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _ALONE[config.kind](settled)
        if weights is not None and weights != "random":
            from vidkin.models.store import load_state

            load_state(model, weights, label=f"a {config.kind} network")
        return model.train()
    network = open_frame_network(config, weights=weights, seed=seed)
    settled = _settled(config, network.mean, network.std)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        model = _WITH_BACKBONE[config.kind](settled, network)
    return model.train()


def _settled(
    config: EncoderConfig, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> EncoderConfig:
    return replace(config, mean=config.mean or mean, std=config.std or std)
