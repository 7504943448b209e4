"""Labeled items as encoder inputs: reading, cutting clips, augmentation, and caching backbone features."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, check_regular_file, replace_file
from vidkin._base.values import parse_json
from vidkin.datasets import LabelledItem, LabelledSet, LabelNames, middle_excerpt, read_item
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.models import Encoder, EncoderConfig, HeadOutputs, TwoHeadNetwork
from vidkin.models.encoder import BackboneEncoder, evaluation_mode
from vidkin.models.weights import add_weights


def read_input(item: LabelledItem, kind: str, config: EncoderConfig) -> tuple[NDArray[np.uint8], int]:
    """Read an item as (frames [T, S, S, 3] or image [S, S, 3], number of real frames).

    Short clips are padded by repeating the last frame.

    Raises:
        MediaError: The file cannot be read.
    """
    if not config.takes_clips:
        frames = None if kind == "image" else 1
        images = read_item(item, kind, size=config.size, frames=frames, fit=config.fit)
        return (images if kind == "image" else images[0]), 1
    if config.seconds is not None and kind == "video":
        item = middle_excerpt(item, config.seconds)
    images = read_item(
        item,
        kind,
        size=config.size,
        frames=config.frames,
        rate=config.rate,
        fit=config.fit,
    )
    missing = np.repeat(images[-1:], config.frames - len(images), axis=0)
    return np.concatenate([images, missing]), len(images)


def read_frames_at_rate(
    item: LabelledItem, kind: str, config: EncoderConfig, *, most: int | None = None
) -> NDArray[np.uint8]:
    """Read the frames [T, S, S, 3] of an item at ``config.rate``, from its start, at most ``most``.

    Raises:
        MediaError: The file cannot be read.
    """
    return read_item(item, kind, size=config.size, frames=most, rate=config.rate, fit=config.fit)


def read_inputs(
    labelled: LabelledSet, config: EncoderConfig, *, threads: int, whole: bool = False
) -> Iterator[tuple[NDArray[np.uint8], int] | MediaError]:
    """Yield the result of :func:`read_input`, or the error it raised, for every item in order.

    With ``whole``, the result is all frames of the item at ``config.rate``, and their number.
    """

    def read_whole(item: LabelledItem) -> tuple[NDArray[np.uint8], int]:
        images = read_frames_at_rate(item, labelled.kind, config)
        return images, len(images)

    def read_clip(item: LabelledItem) -> tuple[NDArray[np.uint8], int]:
        return read_input(item, labelled.kind, config)

    read_one: Callable[[LabelledItem], tuple[NDArray[np.uint8], int]] = read_whole if whole else read_clip

    def read(item: LabelledItem) -> tuple[NDArray[np.uint8], int] | MediaError:
        try:
            return read_one(item)
        except MediaError as error:
            return error

    if threads == 1:
        yield from map(read, labelled.items)
        return
    # Submit a few items at a time; otherwise the pool would keep the frames of all items in memory.
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for start in range(0, len(labelled), 4 * threads):
            yield from pool.map(read, labelled.items[start : start + 4 * threads])


@dataclass(frozen=True, eq=False)
class MovingClips:
    """All frames of each item at a fixed rate, from which clips of ``config.frames`` consecutive frames are cut.

    N items, R frames in memory, F features per frame, S pixels per side, W frames per clip.

    Attributes:
        labelled: The items.
        config: Configuration with ``frames`` and ``rate``.
        frames: [R, F] float32 features or [R, S, S, 3] uint8 images of the items in memory, concatenated.
        first: [N] int64, row of each item's first frame; -1 for an item that is decoded every time it is sampled.
        lengths: [N] int64, number of frames in each item.
        describe: Function that converts images [T, S, S, 3] uint8 to rows of ``frames``: to features, or unchanged.
    """

    labelled: LabelledSet
    config: EncoderConfig
    frames: Tensor
    first: Tensor
    lengths: Tensor
    describe: Callable[[Tensor], Tensor]

    def cut(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Cut clips [B, W, ...] from items; also return their numbers of real frames [B].

        Short items are padded by repeating their last frame.

        Args:
            indices: [B] int64, indices of the items.
            generator: Random generator for the start positions, uniform over all positions where the clip fits; None:
                clips start at the beginning of the item.

        Raises:
            MediaError: An item that is not in memory can no longer be read.
        """
        window = self.config.frames
        starts = torch.zeros(len(indices), dtype=torch.int64)
        if generator is not None:
            positions = (self.lengths[indices] - window).clamp(min=0) + 1
            # Use one random number per item, so that positions do not depend on which items are in memory.
            starts = (torch.rand(len(indices), generator=generator, dtype=torch.float64) * positions).long()
        clips = []
        for index, start in zip(indices.tolist(), starts.tolist(), strict=True):
            end, first = min(start + window, int(self.lengths[index])), int(self.first[index])
            if first >= 0:
                rows = self.frames[first + start : first + end]
            else:
                # Read from the start of the item, because seeking could give different frames.
                item = self.labelled.items[index]
                images = read_frames_at_rate(item, self.labelled.kind, self.config, most=end)
                rows = self.describe(torch.from_numpy(images[start:end]))
            missing = window - len(rows)
            clips.append(torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows)
        return torch.stack(clips), self.lengths[indices].clamp(max=window)


# Minimum side of a crop as a fraction of the image's side.
_MIN_CROP = 0.7

# Maximum relative change of brightness, contrast and saturation.
_MAX_COLOR_CHANGE = 0.3


def augment(clips: Tensor, names: Sequence[str], generator: torch.Generator) -> Tensor:
    """Apply random augmentation to clips or images [N, (T,) 3, S, S] with values from 0 to 1.

    Args:
        clips: Clips or images on the CPU.
        names: Augmentations to apply. ``flip``: flip each item horizontally with probability 1/2. ``crop``: crop a
            square of 70 to 100 % of the side, and resize it to S. ``color``: multiply brightness, contrast and
            saturation by factors from 0.7 to 1.3.
        generator: Random generator.
    """
    shape = clips.shape
    frames = clips if clips.ndim == 5 else clips.unsqueeze(1)
    if "flip" in names:
        mirrored = torch.rand(len(frames), generator=generator) < 0.5
        frames = torch.where(mirrored[:, None, None, None, None], frames.flip(-1), frames)
    if "crop" in names:
        side = frames.shape[-1]
        sizes = torch.rand(len(frames), generator=generator) * (1 - _MIN_CROP) + _MIN_CROP
        positions = torch.rand(len(frames), 2, generator=generator)
        parts = []
        for clip, size, (x, y) in zip(frames, sizes.tolist(), positions.tolist(), strict=True):
            width = max(1, round(size * side))
            left, top = round(x * (side - width)), round(y * (side - width))
            window = clip[..., top : top + width, left : left + width]
            parts.append(functional.interpolate(window, (side, side), mode="bilinear", align_corners=False))
        frames = torch.stack(parts)
    if "color" in names:
        factors = 1 + _MAX_COLOR_CHANGE * (2 * torch.rand(len(frames), 3, generator=generator) - 1)
        brightness, contrast, saturation = (part[:, None, None, None, None] for part in factors.unbind(1))
        changed = frames * brightness
        middle = changed.mean(dim=(1, 2, 3, 4), keepdim=True)
        changed = middle + (changed - middle) * contrast
        gray = changed.mean(dim=2, keepdim=True)
        frames = (gray + (changed - gray) * saturation).clamp(0.0, 1.0)
    return frames.reshape(shape)


logger = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class ItemRows:
    """The readable items of a dataset, with one row per item.

    Attributes:
        values: [N, T, F] or [N, F] float32 features, or [N, (T,) S, S, 3] uint8 images; None if they do not fit into
            memory. For whole items, [R, F] or [R, S, S, 3], the concatenated frames of all items in memory.
        lengths: [N] number of frames in each item.
        positions: [N] position of each row's item in the dataset; unreadable items have no row.
        broken: Errors of the unreadable items.
        kept: [N] bool, for whole items: whether the item is in ``values``; None if all are.
    """

    values: Tensor | None
    lengths: Tensor
    positions: Tensor
    broken: tuple[MediaError, ...]
    kept: Tensor | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the values include every readable item."""
        return self.values is not None and (self.kept is None or bool(self.kept.all()))


def feature_key(model: Encoder, labelled: LabelledSet, *, whole: bool = False) -> str:
    """Return a hash of everything the features depend on: the backbone and its weights, the input settings, and the
    files.

    With ``whole``, the key is for features of whole items rather than clips.
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
    """Write features to a cache file; its folder is created if missing.

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
        raise InvalidArgumentError(f"{path.parent}: features cannot be cached here: {error}") from error


def load_features(path: Path) -> ItemRows | None:
    """Load features written by :func:`store_features`; None if the file is missing or damaged."""
    if not path.is_file():
        return None
    try:
        check_regular_file(path)
        with safe_open(os.fspath(path), framework="pt") as file:
            features, lengths, positions = (file.get_tensor(name) for name in ("features", "lengths", "kept"))
            broken = [MediaError(*pair) for pair in parse_json((file.metadata() or {})["broken"])]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        logger.warning("%s is damaged; recomputing the features: %s", path, error)
        return None
    return ItemRows(features, lengths.to(torch.int64), positions, tuple(broken))


OnItem = Callable[[int, int], None]

"""Callback that receives (items done, total number of items); it may raise an exception to stop."""

MAX_BYTES = 4 * 2**30

"""Maximum total size of the frames kept in memory; other frames are decoded every time they are sampled."""

_CHUNK = 32


def broken_files(parts: Iterable[Inputs]) -> tuple[tuple[str, str], ...]:
    """Return (file, cause) for each item in several datasets that could not be read."""
    return tuple((error.path, error.cause) for part in parts for error in part.broken)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Items of a labeled dataset, prepared for sampling.

    N items, T frames of the longest item, F features per frame, S pixels per side.

    Attributes:
        labelled: The readable items, in row order.
        labels: [N, 2] int64 (category, subcategory).
        broken: Errors of the unreadable items.
        stored: [N, T, F] or [N, F] float32 features, or [N, (T,) S, S, 3] uint8 images; None if too large for memory.
        lengths: [N] number of frames in each item; None if no item is padded.
        are_features: Whether ``stored`` contains features.
        config: Configuration of the encoder.
        augmentation: Augmentations of images in training.
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
        """Return the inputs of items and their lengths on a device.

        Args:
            indices: [B] int64, indices of the items.
            device: Device of the result.
            generator: Random generator for the positions of moving clips and for augmentation; None takes every clip
                from the start of its item, without augmentation.
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

    def embed(self, model: Encoder, *, device: torch.device, chunk: int = _CHUNK, only: Tensor | None = None) -> Tensor:
        """Compute embeddings [N, D] on the CPU with the model in eval mode; its mode is restored afterward.

        Args:
            model: Model that computes the embeddings.
            device: Device of the model.
            chunk: Number of items per pass.
            only: [M] indices of the items to embed; None for all items.
        """
        parts = []
        with evaluation_mode(model):
            for indices in torch.split(torch.arange(len(self)) if only is None else only, chunk):
                # Items are features only if the model has a backbone, so the cast is safe.
                embed = cast(BackboneEncoder, model).head if self.are_features else model.embed
                parts.append(embed(*self.take(indices, device=device)).float().cpu())
        return torch.cat(parts)

    def outputs(self, model: TwoHeadNetwork, *, device: torch.device, chunk: int = _CHUNK) -> HeadOutputs:
        """Compute the logits, embeddings and penultimate layer of all items on the CPU with the model in eval mode."""
        parts = []
        with evaluation_mode(model):
            for indices in torch.split(torch.arange(len(self)), chunk):
                inputs, _ = self.take(indices, device=device)
                outputs = model.outputs(inputs) if self.are_features else model(inputs)
                parts.append([part.float().cpu() for part in (outputs.logits, outputs.embeddings, outputs.pooled)])
        return HeadOutputs(*(torch.cat(column) for column in zip(*parts, strict=True)))


def label_table(labelled: LabelledSet, *, names: LabelNames | None = None) -> Tensor:
    """Return the labels [N, 2] int64 (category, subcategory) of a dataset's items.

    Args:
        labelled: The items.
        names: Names that define the label numbers; None: the names in the dataset.
    """
    return torch.stack([torch.from_numpy(level) for level in labelled.labels(names=names)], dim=1)


def prepare_parts(
    model: Encoder,
    parts: Sequence[LabelledSet],
    *,
    cache: PathLike | None = None,
    augmentation: Sequence[str] = (),
    moving: bool = False,
    most_bytes: int = MAX_BYTES,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> list[Inputs]:
    """Call :func:`prepare_inputs` for several datasets, with a single progress count for all of them.

    If the backbone is frozen, features are stored instead of images, unless there is augmentation, which needs images.
    ``augmentation`` and ``moving`` apply only to the first dataset, the training items.
    """
    total, before = sum(len(part) for part in parts), 0
    prepared: list[Inputs] = []

    def report(done: int, _: int) -> None:
        if on_item is not None:
            on_item(before + done, total)

    for part in parts:
        prepared.append(
            prepare_inputs(
                model,
                part,
                features=model.config.has_fixed_features and not augmentation,
                cache=cache,
                augmentation=() if prepared else augmentation,
                moving=moving and not prepared,
                most_bytes=most_bytes,
                threads=threads,
                on_item=report,
            )
        )
        before += len(part)
    return prepared


@check_arguments
def prepare_inputs(
    model: Encoder,
    labelled: LabelledSet,
    *,
    names: LabelNames | None = None,
    features: bool,
    cache: PathLike | None = None,
    augmentation: Sequence[str] = (),
    moving: bool = False,
    most_bytes: int = MAX_BYTES,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> Inputs:
    """Read all items of a dataset once.

    Args:
        model: Model whose configuration describes the input, and whose backbone computes the features.
        labelled: The items.
        names: Names that define the label numbers; None: the names in the dataset.
        features: Store features of the backbone, which must not change later, instead of images.
        cache: Folder for cached features; None: in memory only.
        augmentation: Augmentations, see :class:`vidkin.training.DataRecipe`; only for images.
        moving: Store whole items at the configured rate; training takes clips at random positions.
        most_bytes: Maximum size of the frames in memory in bytes; others are decoded every time they are sampled.
        threads: Number of files to decode in parallel.
        on_item: Callback called after each item.

    Raises:
        DatasetError: No item can be read.
        InvalidArgumentError: The model does not accept such items, or has no rate for moving clips.
    """
    config = model.config
    if config.takes_clips and labelled.kind == "image":
        raise InvalidArgumentError(
            f"{labelled.name} contains images, but a model of kind {config.kind!r} takes clips; use kind 'image'"
        )
    if features and not config.has_fixed_features:
        raise InvalidArgumentError(f"a model of kind {config.kind!r} has no features to cache")
    if moving and not (config.takes_clips and config.rate is not None):
        raise InvalidArgumentError("moving clips require a model that takes clips, with a rate in frames per second")
    path = None
    if features and cache is not None:
        path = Path(cache) / f"{feature_key(model, labelled, whole=moving)}.safetensors"
    rows = None if path is None else load_features(path)
    if rows is None:
        rows = _read_all(model, labelled, features, threads, on_item, moving=moving, most_bytes=most_bytes)
        if path is not None and rows.is_complete:
            store_features(path, rows)
    elif on_item is not None:
        on_item(len(labelled), len(labelled))
    chosen = labelled.with_items(labelled.items[position] for position in rows.positions.tolist())
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
        labels=label_table(chosen, names=names),
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
    """Read every item once; store as many whole items as fit into memory, but clips only if all of them fit."""
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
            logger.warning("skipped: %s", result)
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
                rows.append(row[:0])  # defines the shape if no item fits into memory
        if on_item is not None:
            on_item(position + 1, len(labelled))
    if not positions:
        raise DatasetError(
            f"none of the {len(labelled)} items of {labelled.name} can be read; first error: {broken[0]}"
            if broken
            else f"{labelled.name} has no items"
        )
    values = (torch.cat(rows) if moving else torch.stack(rows)) if rows else None
    if moving and not all(kept):
        logger.warning(
            "%d of %d items of %s do not fit into %.1f GiB and will be decoded every time they are sampled",
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


def _backbone_features(model: Encoder, images: Tensor) -> Tensor:
    """Compute backbone features [T, F] float32 of frames [T, S, S, 3] uint8, or [F] of an image [S, S, 3].

    Called with one item at a time, because the batch size affects the rounding of the features.
    """
    frames = images if images.ndim == 4 else images.unsqueeze(0)
    inputs = (frames.movedim(-1, -3).float() / 255).to(model.device)
    with evaluation_mode(model.get_submodule("backbone")):
        features = model.backbone_features(inputs).float().cpu()
    return features if images.ndim == 4 else features[0]
