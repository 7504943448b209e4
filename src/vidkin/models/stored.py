"""Read the folders of trained models without torch, and run their networks with ONNX Runtime.

A folder contains ``config.toml`` (configuration and metadata), ``model.safetensors`` (all weights) and ``model.onnx``
for use without torch. A model of kind ``clip`` has two ONNX files: ``model.onnx`` computes the features of frames, and
``head.onnx`` turns those of a clip into one vector.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, check_regular_file
from vidkin._base.toml import read_toml
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError, MissingPartError, UnknownExtractorError
from vidkin.features.sessions import open_session, run_session, session_failures
from vidkin.models.config import COMPARATOR, EncoderConfig

WEIGHTS_FILE = "model.safetensors"

CONFIG_FILE = "config.toml"

GRAPH_FILE = "model.onnx"

HEAD_FILE = "head.onnx"

GRAPH_ENTRY = "vidkin.graph"
"""Metadata entry of an ONNX file, as JSON: ``weights`` (digest of the model it was exported from), ``dimension``, and,
for kind ``frame_encoder``, ``squares`` (digest of the network alone)."""

FORMAT = 1
"""Version of the format of ``config.toml``."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Metadata of a model, as stored in its folder.

    Attributes:
        config: Kind, sizes and input of the network.
        class_names: Classes or labels the model was trained on.
        metrics: Metrics measured during training.
        notes: Other metadata, such as the data, recipe and seed.
    """

    config: EncoderConfig
    class_names: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@check_arguments
def read_model_info(folder: PathLike) -> ModelInfo:
    """Read the ``config.toml`` in a model's folder without loading the weights.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The file is damaged, or was written by an incompatible version of vidkin.
    """
    path, document = read_model_document(folder)
    if document["model"].get("kind") == COMPARATOR:
        raise InvalidArgumentError(
            f"{path.parent}: contains a video comparator, not an encoder; use it with `vidkin index --model` and "
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
    """Read the ``config.toml`` of any kind of model.

    Returns:
        Path and content of the file, with the tables ``model``, ``classes``, ``metrics`` and ``notes``.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The file is damaged, or was written by an incompatible version of vidkin.
    """
    path = Path(folder).expanduser() / CONFIG_FILE
    try:
        document = read_toml(path)
    except OSError as error:
        raise UnknownExtractorError(
            f"{path.parent}: contains no model, because {CONFIG_FILE} cannot be read "
            f"({(error.strerror or str(error)).lower()}); choose a folder written by `vidkin train`"
        ) from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: damaged: {error}; train the model again") from error
    version = document.get("format")
    if not isinstance(version, int) or not isinstance(document.get("model"), dict):
        raise InvalidArgumentError(f"{path}: does not describe a model: 'format' or [model] is missing")
    if version != FORMAT:
        age = "an earlier" if version < FORMAT else "a newer"
        raise InvalidArgumentError(
            f"{path}: was written by {age} version of vidkin (format {version}, this version reads {FORMAT}); train "
            f"the model again: vidkin train RECIPE --output NEW_FOLDER"
        )
    for name in ("classes", "metrics", "notes"):
        if not isinstance(document.setdefault(name, {}), dict):
            raise InvalidArgumentError(f"{path}: damaged: [{name}] is not a table; train the model again")
    return path, document


def read_weights(path: PathLike) -> dict[str, NDArray[Any]]:
    """Read weights by name from a safetensors file; floating-point weights are converted to float32.

    Raises:
        InvalidArgumentError: The file cannot be read, or contains non-finite values.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        check_regular_file(path)
        weights = load_file(os.fspath(path))
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"{os.fspath(path)}: cannot be read as weights: {error}") from error
    for name, values in weights.items():
        if np.issubdtype(values.dtype, np.floating):
            if not np.isfinite(values).all():
                raise InvalidArgumentError(
                    f"{os.fspath(path)}: {name} contains non-finite values; train the model again"
                )
            weights[name] = values.astype(np.float32, copy=False)
    return weights


def weights_digest(facts: object, weights: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of facts about a network, as JSON, and the names and values of all weights."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, values in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


class Graph:
    """A network in a model's folder, run with ONNX Runtime.

    Args:
        path: The ONNX file.
        digest: Digest of the weights in the folder, from which the file must have been exported.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Attributes:
        dimension: Dimension of the output vectors; 0 for a map network.
        square_digest: For kind ``frame_encoder``: digest of the network alone.

    Raises:
        MissingPartError: The file is missing or damaged, or was exported from different weights; the message includes
            the command that writes it.
        InvalidArgumentError: The device does not exist.
    """

    def __init__(self, path: Path, digest: str, *, device: str = "cpu") -> None:
        remedy = "install torch to use the model, or train it again with `vidkin train RECIPE --output FOLDER`"
        if not path.is_file():
            raise MissingPartError(f"{path.parent}: has no {path.name}, so it requires torch; {remedy}")
        self._path = path
        try:
            check_regular_file(path)
            self._session = open_session(path, device=device)
        except (OSError, InvalidArgumentError) as error:
            if device.startswith("cuda") and isinstance(error, InvalidArgumentError):
                raise  # the device, not the file, is the problem
            raise MissingPartError(f"{error}; {remedy}") from error
        facts = self._session.get_modelmeta().custom_metadata_map.get(GRAPH_ENTRY, "{}")
        try:
            about = dict(parse_json(facts))
            self.dimension = int(about.get("dimension", 0))
            self.square_digest = str(about.get("squares", ""))
        except (ValueError, TypeError):
            about = {}
        if about.get("weights") != digest:
            raise MissingPartError(f"{path}: was exported from a different model than {WEIGHTS_FILE}; {remedy}")
        self._inputs = [item.name for item in self._session.get_inputs()]

    def run(self, *inputs: NDArray[Any]) -> NDArray[np.float32]:
        """Run the network and return its first output.

        Raises:
            InvalidArgumentError: The network does not accept the inputs.
        """
        try:
            outputs = run_session(self._session, None, dict(zip(self._inputs, inputs, strict=True)))
        except session_failures() as error:
            raise InvalidArgumentError(
                f"{self._path}: does not accept inputs of shape {[list(values.shape) for values in inputs]}: "
                f"{(str(error).strip().splitlines() or ['unknown'])[0]}"
            ) from error
        values: NDArray[np.float32] = outputs[0]
        return values

    @property
    def on_cuda(self) -> bool:
        """Whether the network runs on a CUDA device."""
        return str(self._session.get_providers()[0]).startswith("CUDA")


def has_torch() -> bool:
    """Whether torch is installed, without importing it."""
    return importlib.util.find_spec("torch") is not None
