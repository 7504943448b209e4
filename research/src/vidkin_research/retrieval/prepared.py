"""Prepare a collection for training: encoder, features, labels and splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from vidkin._base.files import write_bytes
from vidkin.datasets import LabelledItem, LabelledSet, read_item
from vidkin.features.sessions import resolve_device
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin.models.weights import add_weights
from vidkin.training.inputs import Inputs, prepare_inputs
from vidkin_research.retrieval.methods import Method, MethodInput
from vidkin_research.retrieval.plan import ComparisonPlan
from vidkin_research.retrieval.sets import ComparisonSet, PathLike
from vidkin_research.retrieval.training import Labelled

__all__ = ["PreparedSet", "encoder_config", "read_pixels", "stored_frame_features", "volume_config"]


class PreparedSet:
    """A collection prepared for training; features and pixels are computed when first needed.

    Args:
        plan: Settings of the encoder, frames and frame network.
        chosen: The collection.
        labelled: Items of the collection.
        weights: Safetensors file with the weights of the frame network; None downloads them from the hub.
        folder: Folder for features and runs.
        on_progress: Callback that receives the current step and its progress in [0, 1].
    """

    def __init__(
        self,
        plan: ComparisonPlan,
        chosen: ComparisonSet,
        labelled: LabelledSet,
        weights: PathLike | None,
        folder: Path,
        on_progress: Callable[[str, float], None] | None,
    ) -> None:
        self.plan, self.chosen, self.labelled, self.folder = plan, chosen, labelled, folder
        self._on_progress = on_progress
        self._weights = weights
        self._device = resolve_device(plan.device)
        # All runs share one frozen frame network; each gets a new head.
        self._encoder = build_model(encoder_config(plan, chosen), weights=weights)
        self.key = collection_key(self._encoder, labelled)
        if chosen.rate is not None:
            self.key += f"-moving-{chosen.rate:g}"
        coarse, fine = labelled.labels()
        self._labels = torch.stack([torch.from_numpy(coarse), torch.from_numpy(fine)], dim=1)
        self._splits = [item.split for item in labelled.items]
        self._encoder.to(self._device)
        self._inputs: dict[MethodInput, Tensor] = {}
        self._moving: dict[MethodInput, Inputs] = {}

    def takes_pixels(self, method: Method) -> bool:
        """Whether a method learns from pixels: 3D-CNN always, the others if the frame network is trained."""
        return method.input == "pixels" or (method.input == "features" and self.plan.trainable == "all")

    def parts(self, method: Method) -> dict[str, Labelled]:
        """Return the training, validation and test inputs and labels for a method: frozen features or pixels.

        For a collection with a frame rate, the training split also has the full videos, from which clips are sampled.
        """
        pixels, volume = self.takes_pixels(method), self.plan.volume
        kind: MethodInput = "features" if method.input == "frozen" else method.input
        # The row without an encoder needs frozen features even if all other methods learn from pixels.
        key: MethodInput = "frozen" if kind == "features" and not pixels else kind
        if key not in self._inputs and pixels:
            is_volume = kind == "pixels"
            self._inputs[key] = read_pixels(
                self.labelled,
                size=volume.size if is_volume else self._encoder.config.size,
                frames=min(self.plan.frames, volume.frames) if is_volume else self.plan.frames,
                on_item=lambda done, count: self.report("frames", done / count),
            )
        elif key not in self._inputs:
            self._inputs[key] = stored_frame_features(
                self._encoder,
                self.labelled,
                cache=self.folder / "features",
                on_item=lambda done, count: self.report("frame features", done / count),
            )
        inputs = self._inputs[key]
        everything = Labelled(inputs, self._labels)
        parts = {
            split: everything.part(torch.tensor([number for number, own in enumerate(self._splits) if own == split]))
            for split in ("train", "validation", "test")
        }
        if self.chosen.rate is not None and method.objectives:
            # Collect the distinct videos of the training split, and the video index of each training item.
            items = self.labelled.part("train").items
            # Files in an archive share its path, so the key includes the member name.
            videos: dict[tuple[Path, str], LabelledItem] = {}
            for item in items:
                videos.setdefault((item.path, item.member), replace(item, start=0.0, end=None))
            numbers = {video: number for number, video in enumerate(videos)}
            if key not in self._moving:
                self._moving[key] = prepare_inputs(
                    self._new_volume(0) if kind == "pixels" else self._encoder,
                    self.labelled.with_items(videos.values()),
                    features=not pixels,
                    cache=None if pixels else self.folder / "features",
                    moving=True,
                    on_item=lambda done, count: self.report("full videos", done / count),
                )
            moving = self._moving[key]
            sources = torch.tensor([numbers[item.path, item.member] for item in items])
            parts["train"] = replace(parts["train"], moving=moving, sources=sources)
        return parts

    def new_encoder(self, method: Method, seed: int) -> Encoder:
        """Create a new C3D, a new network that is trained entirely, or the shared frame network with a new head."""
        if method.input == "pixels":
            return self._new_volume(seed).to(self._device)
        if self.takes_pixels(method):
            config = encoder_config(self.plan, self.chosen)
            return build_model(config, weights=self._weights, seed=seed).to(self._device)
        # Initialize the head as in `build_model`.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for name, part in self._encoder.named_children():
                if name != "backbone" and isinstance(part, nn.Linear):
                    nn.init.xavier_uniform_(part.weight)
                    nn.init.zeros_(part.bias)
                elif name != "backbone" and isinstance(part, nn.LSTM):
                    part.reset_parameters()
        return self._encoder.train()

    def report(self, text: str, fraction: float) -> None:
        """Report the current step and its progress in [0, 1]."""
        if self._on_progress is not None:
            self._on_progress(f"{self.chosen.name}: {text}", fraction)

    def _new_volume(self, seed: int) -> Encoder:
        return build_model(volume_config(self.plan, self.chosen, len(self.labelled.subcategories())), seed=seed)


def encoder_config(plan: ComparisonPlan, chosen: ComparisonSet) -> EncoderConfig:
    """Return the configuration of a plan's encoder for a collection."""
    return EncoderConfig(
        kind="clip" if chosen.video else "image",
        backbone=plan.backbone,
        trainable=plan.trainable,
        hidden=plan.hidden,
        lstm=plan.units,
        embedding=0 if chosen.video else plan.units,
        frames=plan.frames,
        rate=chosen.rate,
        size=plan.size or chosen.size,
    )


def volume_config(plan: ComparisonPlan, chosen: ComparisonSet, classes: int) -> EncoderConfig:
    """Return the configuration of a plan's 3D-CNN for a collection with this number of subcategories."""
    return EncoderConfig(
        kind="c3d",
        width=plan.volume.width,
        batch_norm=True,
        classes=classes,
        frames=min(plan.frames, plan.volume.frames),
        rate=chosen.rate,
        size=plan.volume.size,
    )


# Inputs of the comparison: frozen features of every item, cached on disk, and pixels for C3D.


OnItem = Callable[[int, int], None]

"""Called with the number of items done and the total number of items."""

_FRAME_BATCH = 64


def read_pixels(labelled: LabelledSet, *, size: int, frames: int, on_item: OnItem | None = None) -> Tensor:
    """Read all items as uint8 tensors: [N, T, 3, S, S] for videos, [N, 3, S, S] for images."""
    items = []
    for number, item in enumerate(labelled.items, start=1):
        pixels = read_item(item, labelled.kind, size=size, frames=None if labelled.kind == "image" else frames)
        items.append(torch.from_numpy(np.moveaxis(pixels, -1, -3).copy()))
        if on_item is not None:
            on_item(number, len(labelled))
    return torch.stack(items)


def stored_frame_features(
    model: Encoder, labelled: LabelledSet, *, cache: Path, on_item: OnItem | None = None
) -> Tensor:
    """Return features from the frozen backbone: [N, T, F] for videos, [N, F] for images.

    They are stored in ``cache`` under a name derived from the weights, the input size, and the items with their file
    sizes and modification times, so that cached features always belong to the same model and items.

    Args:
        model: An encoder with a backbone; its ``config`` sets frames, size and fit.
        labelled: The items.
        cache: Folder for cached features; created if it does not exist.
        on_item: Callback called after every batch of items.
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
                batches.append(backbone(model.normalize(images.to(model.device))).cpu())
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
    """Return a digest of all inputs of a run: files, labels, split and frozen weights."""
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
        except OSError:  # a missing file is reported when it is read
            items.append((item.key(labelled.root), 0, 0))
    parts = {
        "backbone": weights.hexdigest(),
        "input": [config.size, config.frames, config.fit, config.mean, config.std],
        "items": items,
    }
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]
