"""Build the network of a configuration."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save
from torch import nn

from vidkin._base.files import PathLike, write_bytes, write_text
from vidkin._base.toml import format_toml, read_toml
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import PooledNetwork
from vidkin.models.clip_encoder import ClipEncoder
from vidkin.models.config import PLAIN_MEAN, PLAIN_STD, EncoderConfig
from vidkin.models.encoder import Encoder
from vidkin.models.frame_model import FrameEncoderModel
from vidkin.models.frame_network import open_frame_network
from vidkin.models.image_networks import DeepRankingNetwork, ImageEncoder
from vidkin.models.randomness import seeded
from vidkin.models.two_head import TwoHeadNetwork, open_map_network
from vidkin.models.volume_networks import DeepSBDNetwork, VideoNetwork
from vidkin.models.weights import add_weights, load_weights

_WITH_BACKBONE: dict[str, Callable[[EncoderConfig, PooledNetwork], Encoder]] = {
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


# A trained model as a folder: weights as safetensors, everything else as TOML.


WEIGHTS_FILE = "model.safetensors"

CONFIG_FILE = "config.toml"

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Description of a model, as stored in its folder.

    Attributes:
        config: Kind, sizes and input of the network.
        class_names: Classes or labels the model was trained with.
        metrics: Figures measured during its training.
        notes: Further facts: data, recipe, seed.
    """

    config: EncoderConfig
    class_names: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def save_model(
    model: Encoder,
    folder: PathLike,
    *,
    class_names: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a model with its frozen parts, so that the folder needs nothing else, and return the folder.

    Args:
        model: A model from :func:`vidkin.models.build_model` or :func:`load_model`.
        folder: Where to write; created if missing. ``model.safetensors`` and ``config.toml`` in it are replaced, the
            latter last.
        class_names: Classes or labels to store; None: the model's own.
        metrics: Figures by name.
        notes: Text, numbers, booleans or lists of these by name.

    Raises:
        InvalidArgumentError: The folder cannot be written, or a note has another type.
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
    )


def load_model(folder: PathLike, *, device: str | torch.device = "cpu") -> Encoder:
    """Load the model of a folder, in eval mode; ``model.config`` describes it.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder is damaged, or was written by a newer vidkin.
    """
    path = Path(folder).expanduser()
    info = read_model_info(path)
    # Random weights are replaced at once: all come from the file.
    model = build_model(info.config, weights="random")
    load_weights(model, path / WEIGHTS_FILE, label=f"the model in {path}")
    model.class_names = info.class_names
    return model.eval().to(device)


def read_model_info(folder: PathLike) -> ModelInfo:
    """Read a folder's ``config.toml``, but not the weights.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The file is damaged, or was written by a newer vidkin.
    """
    path, document = read_model_document(folder)
    if document["model"].get("kind") == "comparator":
        raise InvalidArgumentError(
            f"{path.parent}: holds a comparator of videos, not an encoder; use it with `vidkin index --model` and "
            "`vidkin match --model`"
        )
    names = document["classes"].get("names", [])
    if not isinstance(names, list):
        raise InvalidArgumentError(f"{path}: damaged: classes.names is not a list; train the model again")
    return ModelInfo(
        EncoderConfig.from_mapping(document["model"]),
        tuple(str(name) for name in names),
        document["metrics"],
        document["notes"],
    )


def read_model_document(folder: PathLike) -> tuple[Path, dict[str, Any]]:
    """Path and content of the ``config.toml`` of a model of any kind, with the tables ``model``, ``classes``,
    ``metrics`` and ``notes``.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The file is damaged, or was written by a newer vidkin.
    """
    path = Path(folder).expanduser() / CONFIG_FILE
    try:
        document = read_toml(path)
    except OSError as error:
        raise UnknownExtractorError(
            f"{path.parent}: holds no model, as {CONFIG_FILE} cannot be read "
            f"({(error.strerror or str(error)).lower()}); choose a folder that `vidkin train` wrote"
        ) from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: damaged: {error}; train the model again") from error
    version = document.get("format")
    if not isinstance(version, int) or not isinstance(document.get("model"), dict):
        raise InvalidArgumentError(f"{path}: does not describe a model: 'format' or [model] is missing")
    if version > _FORMAT:
        raise InvalidArgumentError(
            f"{path}: has format {version}, this vidkin reads formats up to {_FORMAT}; upgrade vidkin"
        )
    for name in ("classes", "metrics", "notes"):
        if not isinstance(document.setdefault(name, {}), dict):
            raise InvalidArgumentError(f"{path}: damaged: [{name}] is not a table; train the model again")
    return path, document


def write_model_folder(folder: PathLike, module: nn.Module, document: Mapping[str, Any]) -> Path:
    """Write weights and ``config.toml`` of a model of any kind, the latter last, and return the folder.

    Args:
        folder: Where to write; created if missing.
        module: The network; all its parameters and buffers are written.
        document: Tables for the TOML file, without its format number.

    Raises:
        InvalidArgumentError: The folder cannot be written, or a value has a type that TOML lacks.
    """
    text = format_toml({"format": _FORMAT, **document})
    path = Path(folder).expanduser()
    # Clones: tensors that share memory cannot be written.
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in module.state_dict().items()}
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_bytes(path / WEIGHTS_FILE, save(state))
        write_text(path / CONFIG_FILE, text)
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror or error}; choose a folder that can be written") from error
    return path


def model_digest(model: Encoder) -> str:
    """SHA-256 of the configuration and of the names and values of all weights; it does not depend on where the folder
    is."""
    digest = hashlib.sha256(json.dumps(model.config.to_mapping(), sort_keys=True).encode())
    add_weights(digest, model)
    return digest.hexdigest()
