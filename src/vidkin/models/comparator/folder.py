"""The folder of a comparator: its weights, its settings, and the files of its extractor."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.models.comparator.comparator import Comparator, build_comparator
from vidkin.models.comparator.config import KIND, ComparatorConfig
from vidkin.models.model_folder import WEIGHTS_FILE, read_model_document, write_model_folder
from vidkin.models.weights import add_weights

__all__ = [
    "EXTRACTOR_WEIGHTS_FILE",
    "WHITENING_FILE",
    "ComparatorInfo",
    "comparator_digest",
    "is_comparator",
    "load_comparator",
    "read_comparator_info",
    "save_comparator",
]

PathLike = str | os.PathLike[str]

EXTRACTOR_WEIGHTS_FILE = "extractor.safetensors"
WHITENING_FILE = "whitening.safetensors"


@dataclass(frozen=True, slots=True)
class ComparatorInfo:
    """Description of a comparator, as stored in its folder.

    Attributes:
        config: Architecture of the comparator.
        weights: File of the extractor's weights; None if it uses its own.
        whitening: File of the extractor's whitening; None if it has none.
        metrics: Figures measured during its training.
        notes: Further facts: data, recipe, seed.
    """

    config: ComparatorConfig
    weights: Path | None = None
    whitening: Path | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def save_comparator(
    comparator: Comparator,
    folder: PathLike,
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a comparator and the files of its extractor, so that the folder needs nothing else, and return the folder.

    Args:
        comparator: A trained or imported comparator.
        folder: Where to write; created if missing.
        weights, whitening: Files of the extractor (:func:`vidkin.features.open_extractor`), copied into the folder. If
            None, the file of an earlier model is removed.
        metrics: Figures by name.
        notes: Text, numbers, booleans or lists of these by name.

    Raises:
        InvalidArgumentError: A file cannot be read, or the folder cannot be written.
    """
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        for source, name in ((weights, EXTRACTOR_WEIGHTS_FILE), (whitening, WHITENING_FILE)):
            target = path / name
            if source is None:
                target.unlink(missing_ok=True)
            elif not (target.exists() and os.path.samefile(source, target)):
                shutil.copyfile(os.path.expanduser(source), target)
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: {error.strerror or error} ({error.filename}); name files that can be read and a folder that can "
            "be written"
        ) from error
    return write_model_folder(
        path,
        comparator,
        {
            "model": comparator.config.to_mapping(),
            "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            "notes": dict(notes or {}),
        },
    )


def load_comparator(folder: PathLike, *, device: str | torch.device = "cpu") -> Comparator:
    """Load the comparator of a folder, in eval mode.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder is damaged, or holds a model of another kind.
    """
    info = read_comparator_info(folder)
    comparator = build_comparator(info.config, weights=Path(folder).expanduser() / WEIGHTS_FILE)
    return comparator.eval().requires_grad_(False).to(device)


def read_comparator_info(folder: PathLike) -> ComparatorInfo:
    """Read a folder's ``config.toml``, but not the weights.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The file is damaged, or describes a model of another kind.
    """
    path, document = read_model_document(folder)
    if document["model"].get("kind") != KIND:
        raise InvalidArgumentError(
            f"{path.parent}: must hold a comparator, got a model of kind {document['model'].get('kind')!r}"
        )
    for name in ("metrics", "notes"):
        if not isinstance(document.get(name, {}), dict):
            raise InvalidArgumentError(f"{path}: damaged: [{name}] is not a table; train the model again")
    files = [path.parent / name for name in (EXTRACTOR_WEIGHTS_FILE, WHITENING_FILE)]
    weights, whitening = (file if file.is_file() else None for file in files)
    return ComparatorInfo(
        ComparatorConfig.from_mapping(document["model"]),
        weights,
        whitening,
        document.get("metrics", {}),
        document.get("notes", {}),
    )


def is_comparator(folder: PathLike) -> bool:
    """Whether the model in this folder is a comparator.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder's ``config.toml`` is damaged.
    """
    return bool(read_model_document(folder)[1]["model"].get("kind") == KIND)


def comparator_digest(comparator: Comparator) -> str:
    """SHA-256 of the names and values of all weights, and of the settings they were made for."""
    config = comparator.config
    facts = [config.weighting, config.network, config.padding, config.dimension]
    digest = hashlib.sha256(json.dumps(facts).encode())
    add_weights(digest, comparator)
    return digest.hexdigest()
