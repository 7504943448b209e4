"""Build networks from a configuration, and save them as self-contained folders that can be used without torch."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save
from torch import nn

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, write_bytes, write_text
from vidkin._base.toml import format_toml
from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork
from vidkin.models.config import PLAIN_MEAN, PLAIN_STD, EncoderConfig
from vidkin.models.encoder import ClipEncoder, Encoder, model_digest
from vidkin.models.export import ExportError, write_encoder_graphs
from vidkin.models.frame_network import FrameEncoderModel, open_frame_network
from vidkin.models.image_networks import DeepRankingNetwork, ImageEncoder
from vidkin.models.randomness import seeded
from vidkin.models.stored import (
    CONFIG_FILE,
    FORMAT,
    GRAPH_FILE,
    HEAD_FILE,
    WEIGHTS_FILE,
    read_model_info,
)
from vidkin.models.two_head import TwoHeadNetwork, open_map_network
from vidkin.models.volume_networks import DeepSBDNetwork, VideoNetwork
from vidkin.models.weights import load_weights

_log = logging.getLogger(__name__)

_BACKBONE_MODELS: dict[str, Callable[[EncoderConfig, PooledNetwork], Encoder]] = {
    "clip": ClipEncoder,
    "image": ImageEncoder,
    "deep_ranking": DeepRankingNetwork,
    "two_head": TwoHeadNetwork,
}

_STANDALONE_MODELS: dict[str, Callable[[EncoderConfig], Encoder]] = {
    "c3d": VideoNetwork,
    "deep_sbd": DeepSBDNetwork,
    "frame_encoder": FrameEncoderModel,
}


@check_arguments
def build_model(
    config: EncoderConfig, *, weights: str | os.PathLike[str] | Literal["random"] | None = None, seed: int = 0
) -> Encoder:
    """Build the network for a configuration, in training mode, on the CPU.

    Args:
        config: Configuration of the network. If mean and std are None, the model's ``config`` gets those of the
            backbone.
        weights: Safetensors file with the backbone's weights (for a kind without a backbone, all weights). None:
            a named network (``timm:``, ``torchvision:``) gets its published weights from the hub or the local cache,
            ``vidkin`` those included in the package, and other networks random weights. ``"random"``: random weights
            for every network.
        seed: Seed for all random weights. The same seed gives the same network; the caller's random state is not
            changed.

    Raises:
        InvalidArgumentError: A setting is not allowed, or the weights do not match the network.
        UnknownExtractorError: No network has this name.
        WeightsUnavailableError: No weights were passed, and they cannot be downloaded.
    """
    model: Encoder
    if config.kind in _STANDALONE_MODELS:
        if config.kind != "frame_encoder":
            config = replace(config, mean=config.mean or PLAIN_MEAN, std=config.std or PLAIN_STD)
        with seeded(seed):
            model = _STANDALONE_MODELS[config.kind](config)
        if weights is not None and weights != "random":
            load_weights(model, weights, label=f"a {config.kind} network")
        return model.train()
    open_network = open_map_network if config.kind == "two_head" else open_frame_network
    network = open_network(config, weights=weights, seed=seed)
    settled = replace(config, mean=config.mean or network.mean, std=config.std or network.std)
    with seeded(seed + 1):
        model = _BACKBONE_MODELS[config.kind](settled, network)
    return model.train()


@check_arguments
def save_model(
    model: Encoder,
    folder: PathLike,
    *,
    class_names: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a model, including its frozen parts, to a self-contained folder, and return the folder.

    Args:
        model: A model from :func:`vidkin.models.build_model` or :func:`load_model`.
        folder: Output folder; created if missing. Existing ``model.safetensors``, ``config.toml`` and ONNX files are
            replaced, in this order.
        class_names: Classes or labels to store; None: those of the model.
        metrics: Metric values by name.
        notes: Metadata by name: strings, numbers, booleans, or lists of these.

    Raises:
        InvalidArgumentError: The folder cannot be written, or a note has an unsupported type.
    """
    return write_model_folder(
        folder,
        model,
        {
            "model": model.config.to_mapping(),
            "classes": {"names": list(model.class_names if class_names is None else class_names)},
            "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            "notes": dict(notes or {}),
        },
        lambda path: write_encoder_graphs(model, path, model_digest(model)),
    )


@check_arguments
def load_model(folder: PathLike, *, device: str | torch.device = "cpu") -> Encoder:
    """Load a model from a folder, in eval mode.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder is damaged, or was written by an incompatible version of vidkin.
    """
    path = Path(folder).expanduser()
    info = read_model_info(path)
    # Random weights avoid a download; all of them are then loaded from the file.
    model = build_model(info.config, weights="random")
    load_weights(model, path / WEIGHTS_FILE, label=f"the model in {path}")
    model.class_names = info.class_names
    return model.eval().to(device)


def write_model_folder(
    folder: PathLike, module: nn.Module, document: Mapping[str, Any], write_graphs: Callable[[Path], Sequence[Path]]
) -> Path:
    """Write the weights, ``config.toml`` and ONNX files of any kind of model, and return the folder.

    The ONNX files are written last. If writing is interrupted, the old ONNX files no longer match the weights and are
    ignored. If the network cannot be written as ONNX, a warning is logged and the folder requires torch.

    Args:
        folder: Output folder; created if missing.
        module: The network; all parameters and buffers are written.
        document: Tables for the TOML file, without the format version.
        write_graphs: Function that writes the ONNX files into the folder and returns their paths.

    Raises:
        InvalidArgumentError: The folder cannot be written, or a value has a type that TOML does not support.
    """
    text = format_toml({"format": FORMAT, **document})
    path = Path(folder).expanduser()
    # safetensors cannot write tensors that share memory.
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in module.state_dict().items()}
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_bytes(path / WEIGHTS_FILE, save(state))
        write_text(path / CONFIG_FILE, text)
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror or error}; choose a folder that can be written") from error
    try:
        written = write_graphs(path)
    except ExportError as error:
        _log.warning("%s: using this model requires torch: %s", path, error)
        written = ()
    for file in (path / GRAPH_FILE, path / HEAD_FILE):
        if file not in written and os.path.lexists(file):
            disk.unlink(file)
    return path
