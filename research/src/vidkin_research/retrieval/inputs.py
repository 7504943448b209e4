"""Inputs of the comparison: frozen features of every item, stored on disk, and pixels for C3D."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from vidkin._base.files import write_bytes
from vidkin.datasets import LabelledSet, read_item
from vidkin.models import Encoder
from vidkin.models.weights import add_weights

__all__ = ["collection_key", "read_pixels", "stored_frame_features"]

OnItem = Callable[[int, int], None]
"""Called with the number of items done and of all items."""

_FRAME_BATCH = 64


def read_pixels(labelled: LabelledSet, *, size: int, frames: int, on_item: OnItem | None = None) -> Tensor:
    """All items as uint8 tensors: [N, T, 3, S, S] for videos, [N, 3, S, S] for images."""
    items = []
    for number, item in enumerate(labelled.items, start=1):
        pixels = read_item(
            item, labelled.kind, size=size, frames=None if labelled.kind == "image" else frames
        )
        items.append(torch.from_numpy(np.moveaxis(pixels, -1, -3).copy()))
        if on_item is not None:
            on_item(number, len(labelled))
    return torch.stack(items)


def stored_frame_features(
    model: Encoder, labelled: LabelledSet, *, cache: Path, on_item: OnItem | None = None
) -> Tensor:
    """Features of the frozen backbone: [N, T, F] for videos, [N, F] for images.

    They are stored in ``cache`` under a name derived from the weights, the input size and the items with size and time
    of their files, so that another model or other items never get old features.

    Args:
        model: An encoder with a backbone; its ``config`` sets frames, size and fit.
        labelled: The items.
        cache: Folder of stored features, created when needed.
        on_item: Callback after every batch of items.
    """
    config = model.config
    path = cache / f"{labelled.name}-{_features_key(model, labelled)}.safetensors"
    if path.is_file():
        return load_file(path)["features"]
    batches: list[Tensor] = []
    waiting: list[Tensor] = []
    frames = 1 if labelled.kind == "image" else config.frames
    backbone = model.eval().get_submodule("backbone")
    for number, item in enumerate(labelled.items, start=1):
        read = read_item(
            item,
            labelled.kind,
            size=config.size,
            frames=None if labelled.kind == "image" else config.frames,
            fit=config.fit,
        )
        waiting.append(torch.from_numpy(read.reshape(frames, config.size, config.size, 3).copy()))
        if len(waiting) * frames >= _FRAME_BATCH or number == len(labelled):
            images = torch.cat(waiting).permute(0, 3, 1, 2).float() / 255.0
            with torch.inference_mode():
                batches.append(backbone(model.normalize(images)))
            waiting.clear()
            if on_item is not None:
                on_item(number, len(labelled))
    features = torch.cat(batches)
    if labelled.kind != "image":
        features = features.reshape(len(labelled), frames, -1)
    cache.mkdir(parents=True, exist_ok=True)
    write_bytes(path, save({"features": features}))
    return features


def collection_key(model: Encoder, labelled: LabelledSet) -> str:
    """A digest of all inputs of a run: files, labels, split and the frozen weights."""
    labels = [(item.label, item.split) for item in labelled.items]
    return hashlib.sha256(json.dumps([_features_key(model, labelled), labels]).encode()).hexdigest()[:16]


def _features_key(model: Encoder, labelled: LabelledSet) -> str:
    config = model.config
    weights = hashlib.sha256()
    add_weights(weights, model.get_submodule("backbone"))
    items = []
    for item in labelled.items:
        try:
            state = item.path.stat()
            items.append((item.key(labelled.root), state.st_size, state.st_mtime_ns))
        except OSError:  # a missing file raises an error when it is read
            items.append((item.key(labelled.root), 0, 0))
    parts = {
        "backbone": weights.hexdigest(),
        "input": [config.size, config.frames, config.fit, config.mean, config.std],
        "items": items,
    }
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]
