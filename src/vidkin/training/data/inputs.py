"""Labeled items as inputs of an encoder: read once, and kept as images or as features of a frozen backbone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vidkin.datasets import LabelledSet, LabelNames
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.models import Encoder, EncoderConfig, HeadOutputs, TwoHeadNetwork
from vidkin.training.data.feature_cache import ItemRows, feature_key, load_features, store_features
from vidkin.training.data.item_inputs import read_input, read_inputs
from vidkin.training.data.moving_clips import MovingClips
from vidkin.training.data.random_changes import augment

__all__ = ["MOST_BYTES", "Inputs", "OnItem", "prepare_inputs", "prepare_parts"]

logger = logging.getLogger(__name__)

OnItem = Callable[[int, int], None]
"""Callback that receives (items done, total number of items); it can raise to stop."""

MOST_BYTES = 4 * 2**30
"""Total size of the frames decoded once and kept; other frames are decoded whenever they are drawn."""

_CHUNK = 32


@dataclass(frozen=True, eq=False)
class Inputs:
    """Items of a labeled set, ready to draw.

    N items, T frames of the longest item, F length of a frame's features, S pixels per side.

    Attributes:
        labelled: The items that could be read, in the order of the rows.
        labels: [N, 2] int64 (category, subcategory).
        broken: Reasons why the other items could not be read.
        stored: [N, T, F] or [N, F] float32 features, or [N, (T,) S, S, 3] uint8 images; None: too large to keep.
        lengths: [N] frames of each item; None if all are full.
        are_features: Whether ``stored`` are features.
        config: Configuration of the encoder that uses them.
        augmentation: Random changes applied to images taken for training.
        moving: Whole items from which training takes clips at random positions; ``stored`` is then None.
    """

    labelled: LabelledSet
    labels: Tensor
    broken: tuple[MediaError, ...]
    stored: Tensor | None
    lengths: Tensor | None
    are_features: bool
    config: EncoderConfig
    augmentation: tuple[str, ...] = ()
    moving: MovingClips | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def take(
        self, indices: Tensor, *, device: torch.device, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Inputs of some items and their lengths, on a device.

        Args:
            indices: [B] int64.
            device: Device of the result.
            generator: Source of random numbers for the positions of moving clips and for the augmentation; None takes
                every clip at the start of its item, and changes nothing.
        """
        lengths = None if self.lengths is None else self.lengths[indices]
        if self.moving is not None:
            inputs, _ = self.moving.cut(indices, generator)
        elif self.stored is not None:
            inputs = self.stored[indices]
        else:
            items = [self.labelled.items[position] for position in indices.tolist()]
            images = [read_input(item, self.labelled.kind, self.config)[0] for item in items]
            inputs = torch.from_numpy(np.stack(images))
        if not self.are_features:
            inputs = inputs.movedim(-1, -3).float() / 255
            if generator is not None and self.augmentation:
                inputs = augment(inputs, self.augmentation, generator)
        return inputs.to(device), None if lengths is None else lengths.to(device)

    def embed(
        self, model: Encoder, *, device: torch.device, chunk: int = _CHUNK, only: Tensor | None = None
    ) -> Tensor:
        """Embeddings [N, D] on the CPU, computed by the model in eval mode; its mode is restored afterwards.

        Args:
            model: The model that computes embeddings.
            device: Device of the model.
            chunk: Number of items per pass.
            only: [M] numbers of the items to embed; None takes all.
        """
        training = model.training
        model.eval()
        parts = []
        with torch.no_grad():
            for indices in torch.split(torch.arange(len(self)) if only is None else only, chunk):
                inputs, lengths = self.take(indices, device=device)
                if self.are_features:
                    parts.append(model.head(inputs, lengths).float().cpu())  # type: ignore[operator]
                else:
                    parts.append(model.embed(inputs, lengths).float().cpu())
        model.train(training)
        return torch.cat(parts)

    def outputs(self, model: TwoHeadNetwork, *, device: torch.device, chunk: int = _CHUNK) -> HeadOutputs:
        """Logits, embeddings and penultimate layer of all items on the CPU, computed by the model in eval mode."""
        training = model.training
        model.eval()
        parts = []
        with torch.no_grad():
            for indices in torch.split(torch.arange(len(self)), chunk):
                inputs, _ = self.take(indices, device=device)
                outputs = model.outputs(inputs) if self.are_features else model(inputs)
                parts.append(
                    [part.float().cpu() for part in (outputs.logits, outputs.embeddings, outputs.pooled)]
                )
        model.train(training)
        return HeadOutputs(*(torch.cat(column) for column in zip(*parts, strict=True)))


def prepare_parts(
    model: Encoder,
    parts: Sequence[LabelledSet],
    *,
    cache: Path | None = None,
    augmentation: Sequence[str] = (),
    moving: bool = False,
    most_bytes: int = MOST_BYTES,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> list[Inputs]:
    """:func:`prepare_inputs` for several sets with a common item count; features are kept if the backbone is frozen.

    ``augmentation`` and ``moving`` apply to the first set, the training items; augmentation needs them as images.
    """
    total, before = sum(len(part) for part in parts), 0
    prepared: list[Inputs] = []
    for part in parts:
        changes = augmentation if not prepared else ()
        prepared.append(
            prepare_inputs(
                model,
                part,
                features=model.config.has_fixed_features and not augmentation,
                cache=cache,
                augmentation=changes,
                moving=moving and not prepared,
                most_bytes=most_bytes,
                threads=threads,
                on_item=None if on_item is None else _Shifted(on_item, before, total),
            )
        )
        before += len(part)
    return prepared


def prepare_inputs(
    model: Encoder,
    labelled: LabelledSet,
    *,
    names: LabelNames | None = None,
    features: bool,
    cache: Path | None = None,
    augmentation: Sequence[str] = (),
    moving: bool = False,
    most_bytes: int = MOST_BYTES,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> Inputs:
    """Read all items of a set once.

    Args:
        model: The model whose configuration describes the input and whose backbone computes the features.
        labelled: The items.
        names: Names for the label numbers; None: those of the set.
        features: Keep features of the backbone, which must then not change, instead of images.
        cache: Folder for stored features; None: in memory only.
        augmentation: Random changes, see :class:`vidkin.training.DataRecipe`; only for images.
        moving: Keep whole items at the rate of the configuration, from which training takes clips at random positions.
        most_bytes: Total size in bytes of the frames to keep; others are decoded again whenever they are drawn.
        threads: Number of files decoded at the same time.
        on_item: Callback after each item.

    Raises:
        DatasetError: No item can be read.
        InvalidArgumentError: The model cannot take such items, or has no rate for moving clips.
    """
    config = model.config
    if config.takes_clips and labelled.kind == "image":
        raise InvalidArgumentError(
            f"{labelled.name} contains images, but a model of kind {config.kind!r} takes clips; use kind 'image'"
        )
    if features and not config.has_fixed_features:
        raise InvalidArgumentError(f"a model of kind {config.kind!r} has no features that could be cached")
    if moving and not (config.takes_clips and config.rate is not None):
        raise InvalidArgumentError(
            "moving clips need a model that takes clips, with a rate in frames a second"
        )
    path = None
    if features and cache is not None:
        path = cache / f"{feature_key(model, labelled, whole=moving)}.safetensors"
    rows = None if path is None else load_features(path)
    if rows is None:
        rows = _read_all(model, labelled, features, threads, on_item, moving=moving, most_bytes=most_bytes)
        if path is not None and rows.is_complete:
            store_features(path, rows)
    elif on_item is not None:
        on_item(len(labelled), len(labelled))
    chosen = labelled.with_items(labelled.items[position] for position in rows.positions.tolist())
    coarse, fine = chosen.labels(names=names)
    clips = rows.lengths.clamp(max=config.frames)
    full = not config.takes_clips or bool((clips == config.frames).all())
    whole = None
    if moving:
        assert rows.values is not None
        kept = rows.kept if rows.kept is not None else torch.ones(len(rows.lengths), dtype=torch.bool)
        ends = (rows.lengths * kept).cumsum(0)
        whole = MovingClips(
            labelled=chosen,
            config=config,
            frames=rows.values,
            first=torch.where(kept, ends - rows.lengths, -1),
            lengths=rows.lengths,
            describe=partial(_backbone_features, model) if features else torch.nn.Identity(),
        )
    return Inputs(
        labelled=chosen,
        labels=torch.stack([torch.from_numpy(coarse), torch.from_numpy(fine)], dim=1),
        broken=rows.broken,
        stored=None if moving else rows.values,
        lengths=None if full else clips,
        are_features=features,
        config=config,
        augmentation=tuple(augmentation),
        moving=whole,
    )


def _read_all(
    model: Encoder,
    labelled: LabelledSet,
    features: bool,
    threads: int,
    on_item: OnItem | None,
    *,
    moving: bool,
    most_bytes: int,
) -> ItemRows:
    """Read every item once; keep as many whole items as fit into memory, but either all clips or none."""
    config = model.config
    size = len(labelled) * config.size**2 * 3 * (config.frames if config.takes_clips else 1)
    positions: list[int] = []
    broken: list[MediaError] = []
    rows: list[Tensor] = []
    lengths: list[int] = []
    kept: list[bool] = []
    left = most_bytes
    for position, result in enumerate(read_inputs(labelled, config, threads=threads, whole=moving)):
        if isinstance(result, MediaError):
            broken.append(result)
            logger.warning("left out: %s", result)
        else:
            images, length = result
            positions.append(position)
            lengths.append(length)
            row = _backbone_features(model, torch.tensor(images)) if features else torch.tensor(images)
            kept.append(row.nbytes <= left if moving else features or size <= most_bytes)
            if kept[-1]:
                rows.append(row)
                left -= row.nbytes
            elif moving and not rows:
                rows.append(row[:0])  # the shape, for a collection of which nothing is kept
        if on_item is not None:
            on_item(position + 1, len(labelled))
    if not positions:
        raise DatasetError(
            f"none of the {len(labelled)} items of {labelled.name} can be read; the first: {broken[0]}"
            if broken
            else f"{labelled.name} has no items"
        )
    values = (torch.cat(rows) if moving else torch.stack(rows)) if rows else None
    if moving and not all(kept):
        logger.warning(
            "%d of the %d items of %s do not fit into %.1f GiB and are decoded again whenever they are drawn",
            kept.count(False),
            len(kept),
            labelled.name,
            most_bytes / 2**30,
        )
    return ItemRows(
        values,
        torch.tensor(lengths),
        torch.tensor(positions),
        tuple(broken),
        kept=torch.tensor(kept) if moving else None,
    )


@torch.no_grad()
def _backbone_features(model: Encoder, images: Tensor) -> Tensor:
    """Features [T, F] float32 of [T, S, S, 3] uint8, or [F] of [S, S, 3]; one item at a time, so that numbers are the
    same."""
    frames = images if images.ndim == 4 else images.unsqueeze(0)
    inputs = (frames.movedim(-1, -3).float() / 255).to(model.device)
    backbone = model.get_submodule("backbone")
    training = backbone.training
    backbone.eval()
    features = model.backbone_features(inputs).float().cpu()
    backbone.train(training)
    return features if images.ndim == 4 else features[0]


@dataclass(frozen=True, slots=True)
class _Shifted:
    """Counts the items of one set as part of all sets."""

    on_item: OnItem
    before: int
    total: int

    def __call__(self, done: int, _: int) -> None:
        self.on_item(self.before + done, self.total)
