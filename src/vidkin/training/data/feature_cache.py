"""Features of a frozen backbone on disk, stored under a key of everything they depend on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vidkin._base.atomic import replace_file
from vidkin._base.plain_values import parse_json
from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.models import Encoder
from vidkin.models.weights import add_weights

__all__ = ["ItemRows", "feature_key", "load_features", "store_features"]

logger = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class ItemRows:
    """Items of a set that could be read, one row each.

    Attributes:
        values: [N, T, F] or [N, F] float32 features, or [N, (T,) S, S, 3] uint8 images; None: not kept. For whole
            items [R, F] or [R, S, S, 3], all frames of the kept items, one item after another.
        lengths: [N] frames of each item.
        positions: [N] position of each row's item in the set; unreadable items have no row.
        broken: Reasons why the other items cannot be read.
        kept: [N] bool, which whole items are among the values; None: all.
    """

    values: Tensor | None
    lengths: Tensor
    positions: Tensor
    broken: tuple[MediaError, ...]
    kept: Tensor | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every item that could be read is among the values."""
        return self.values is not None and (self.kept is None or bool(self.kept.all()))


def feature_key(model: Encoder, labelled: LabelledSet, *, whole: bool = False) -> str:
    """A name for everything the features depend on: the backbone with its weights, its input, the files.

    With ``whole``, the features of all frames of the items rather than of clips.
    """
    config = model.config
    digest = hashlib.sha256(f"{_VERSION} {labelled.kind}{' whole' if whole else ''}".encode())
    settings = (config.kind, config.backbone, config.frames, config.rate, config.seconds, config.size)
    digest.update(repr((*settings, config.fit, config.mean, config.std)).encode())
    add_weights(digest, model.get_submodule("backbone"))
    for item in labelled.items:
        try:
            status = os.stat(item.path)
            state = f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            state = "missing"
        digest.update(f"{item.key()} {state}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def store_features(path: Path, rows: ItemRows) -> None:
    """Write features to a file; its folder is created if missing.

    Raises:
        InvalidArgumentError: The file cannot be written.
    """
    assert rows.values is not None
    tensors = {
        "features": rows.values.contiguous(),
        "lengths": rows.lengths,
        "kept": rows.positions,
    }
    broken = json.dumps([[error.path, error.cause] for error in rows.broken])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary:
            save_file(tensors, temporary, metadata={"broken": broken})
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"{path.parent}: features cannot be stored here: {error}") from error


def load_features(path: Path) -> ItemRows | None:
    """Load features written by :func:`store_features`; None if the file is missing or damaged."""
    if not path.is_file():
        return None
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            features, lengths, positions = (file.get_tensor(name) for name in ("features", "lengths", "kept"))
            broken = [MediaError(*pair) for pair in parse_json((file.metadata() or {})["broken"])]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        logger.warning("%s is damaged, features are computed again: %s", path, error)
        return None
    return ItemRows(features, lengths.to(torch.int64), positions, tuple(broken))
