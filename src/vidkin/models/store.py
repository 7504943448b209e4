"""A trained model as a folder: weights as safetensors, everything else as TOML."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vidkin._base.toml import format_toml
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.models.build import build_model
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder

__all__ = [
    "CONFIG_FILE",
    "WEIGHTS_FILE",
    "ModelInfo",
    "load_model",
    "load_state",
    "model_digest",
    "read_model_info",
    "save_model",
]

PathLike = str | os.PathLike[str]

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.toml"
_FORMAT = 1
_LISTED = 5


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model's folder says about it.

    Attributes:
        config: What it is made of.
        class_names: Names of classes or labels that it was trained with.
        metrics: What was measured when it was trained.
        notes: Anything else that was written down: data, recipe, seed.
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
    """Write a model, its frozen parts included, so that the folder needs nothing else.

    Args:
        model: Made by :func:`vidkin.models.build_model` or :func:`load_model`.
        folder: Made if missing; ``model.safetensors`` and ``config.toml`` in it are replaced, the latter last.
        class_names: Default: those of the model.
        metrics: Names to numbers.
        notes: Names to text, numbers, truth values or lists of these.

    Returns:
        The folder.

    Raises:
        InvalidArgumentError: The folder cannot be written, or a note is of another type.
    """
    from safetensors.torch import save

    names = list(model.class_names if class_names is None else class_names)
    text = format_toml(
        {
            "format": _FORMAT,
            "model": model.config.to_mapping(),
            "classes": {"names": names},
            "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            "notes": dict(notes or {}),
        }
    )
    path = Path(folder).expanduser()
    # Clones: parts that share memory cannot be written.
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    try:
        path.mkdir(parents=True, exist_ok=True)
        partial = path / f".{WEIGHTS_FILE}.part"
        # Written by ourselves: the library makes files that only their owner may read.
        partial.write_bytes(save(state))
        partial.replace(path / WEIGHTS_FILE)
        partial = path / f".{CONFIG_FILE}.part"
        partial.write_text(text, encoding="utf-8")
        partial.replace(path / CONFIG_FILE)
    except OSError as error:
        raise InvalidArgumentError(
            f"the model cannot be written to {path}: {error.strerror or error}"
        ) from error
    return path


def load_model(folder: PathLike, *, device: str | torch.device = "cpu") -> Encoder:
    """The model of a folder, in eval mode; ``model.config`` says what it is.

    Raises:
        UnknownExtractorError: There is no model in this folder.
        InvalidArgumentError: The folder is damaged, or made by a newer vidkin.
    """
    path = Path(folder).expanduser()
    info = read_model_info(path)
    # Every weight comes from the file: what is random here lasts until the next line.
    model = build_model(info.config, weights="random")
    load_state(model, path / WEIGHTS_FILE, label=f"the model in {path}")
    model.class_names = info.class_names
    return model.eval().to(device)


def read_model_info(folder: PathLike) -> ModelInfo:
    """What a folder's ``config.toml`` says, without loading the weights.

    Raises:
        UnknownExtractorError: There is no model in this folder.
        InvalidArgumentError: The file is damaged, or made by a newer vidkin.
    """
    path = Path(folder).expanduser() / CONFIG_FILE
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnknownExtractorError(
            f"there is no model in {path.parent}: {CONFIG_FILE} cannot be read "
            f"({(error.strerror or str(error)).lower()}); give a folder that `vidkin train` wrote"
        ) from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path} is damaged: {error}") from error
    version = found.get("format")
    if not isinstance(version, int) or not isinstance(found.get("model"), dict):
        raise InvalidArgumentError(f"{path} does not describe a model: it lacks 'format' or [model]")
    if version > _FORMAT:
        raise InvalidArgumentError(
            f"{path} has format {version}; this vidkin reads formats up to {_FORMAT}: upgrade vidkin"
        )
    tables = {name: found.get(name, {}) for name in ("classes", "metrics", "notes")}
    wrong = [name for name, table in tables.items() if not isinstance(table, dict)]
    names = [] if wrong else tables["classes"].get("names", [])
    if wrong or not isinstance(names, list):
        what = f"[{wrong[0]}] is no table" if wrong else "'names' in [classes] is no list"
        raise InvalidArgumentError(f"{path} is damaged: {what}")
    return ModelInfo(
        EncoderConfig.from_mapping(found["model"]),
        tuple(str(name) for name in names),
        tables["metrics"],
        tables["notes"],
    )


def load_state(module: nn.Module, path: PathLike, *, label: str) -> None:
    """Load a safetensors file strictly: all names and shapes must be those of the module.

    Raises:
        InvalidArgumentError: The file cannot be read, or its weights are those of something else.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        given = load_file(os.fspath(path))
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"the weights {os.fspath(path)} cannot be read: {error}") from error
    own = module.state_dict()
    problems = [
        f"{title} {len(names)} ({', '.join(sorted(names)[:_LISTED])}{', ...' if len(names) > _LISTED else ''})"
        for title, names in (
            ("missing", own.keys() - given.keys()),
            ("unexpected", given.keys() - own.keys()),
            ("of another shape", {n for n in own.keys() & given.keys() if own[n].shape != given[n].shape}),
        )
        if names
    ]
    if problems:
        raise InvalidArgumentError(
            f"the weights in {os.fspath(path)} are not those of {label}: {'; '.join(problems)}"
        )
    module.load_state_dict(given)


def model_digest(model: Encoder) -> str:
    """SHA-256 of the configuration and of the names and values of all weights: the same wherever they lie."""
    digest = hashlib.sha256(json.dumps(model.config.to_mapping(), sort_keys=True).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
