"""Labelled items as inputs of an encoder: read once, kept as pictures or as features of a frozen backbone."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin._base.atomic import replace_file
from vidkin.datasets import LabelledItem, LabelledSet, LabelNames, middle_excerpt, read_item
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.models import Encoder, EncoderConfig
from vidkin.training.data.augment import augmented

__all__ = ["Inputs", "OnItem", "prepare_inputs"]

logger = logging.getLogger(__name__)

OnItem = Callable[[int, int], None]
"""Called with (items done, items in all); may raise to stop."""

# Pictures that are decoded once and kept; what is more is decoded whenever it is drawn.
_MOST_BYTES = 4 * 2**30
_CHUNK = 32
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Inputs:
    """Items of a labelled set, ready to be drawn.

    N items, T frames of the longest, F length of a frame's features, S pixels a side.

    Attributes:
        labelled: The items that could be read, in the order of the rows.
        labels: [N, 2] int64 (category, subcategory).
        broken: Items that could not be read, and why.
        stored: [N, T, F] or [N, F] float32 features, or [N, (T,) S, S, 3] uint8 pictures; None: too large to be kept.
        lengths: [N] frames of each; None where all are full.
        are_features: What is stored.
        config: Of the encoder that they are for.
        augmentation: Random changes of pictures when they are taken for training.
    """

    labelled: LabelledSet
    labels: Tensor
    broken: tuple[MediaError, ...]
    stored: Tensor | None
    lengths: Tensor | None
    are_features: bool
    config: EncoderConfig
    augmentation: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def take(
        self, indices: Tensor, *, device: torch.device, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Inputs of some items and their lengths, on a device.

        Args:
            indices: [B] int64.
            device: Where they go.
            generator: Of the augmentation; None changes nothing.
        """
        lengths = None if self.lengths is None else self.lengths[indices]
        if self.stored is not None:
            found = self.stored[indices]
        else:
            items = [self.labelled.items[place] for place in indices.tolist()]
            read = [_read(item, self.labelled.kind, self.config)[0] for item in items]
            found = torch.from_numpy(np.stack(read))
        if not self.are_features:
            found = found.movedim(-1, -3).float() / 255
            if generator is not None and self.augmentation:
                found = augmented(found, self.augmentation, generator)
        return found.to(device), None if lengths is None else lengths.to(device)

    def embed(self, model: Encoder, *, device: torch.device, chunk: int = _CHUNK) -> Tensor:
        """[N, D] embeddings on the CPU, by a model in eval mode; it goes back to its mode."""
        training = model.training
        model.eval()
        parts = []
        with torch.no_grad():
            for indices in torch.split(torch.arange(len(self)), chunk):
                inputs, lengths = self.take(indices, device=device)
                if self.are_features:
                    parts.append(model.head(inputs, lengths).float().cpu())  # type: ignore[operator]
                else:
                    parts.append(model.embed(inputs, lengths).float().cpu())
        model.train(training)
        return torch.cat(parts)


def prepare_inputs(
    model: Encoder,
    labelled: LabelledSet,
    *,
    names: LabelNames | None = None,
    features: bool,
    cache: Path | None = None,
    augmentation: Sequence[str] = (),
    threads: int = 1,
    on_item: OnItem | None = None,
) -> Inputs:
    """Read all items of a set once.

    Args:
        model: Its configuration says what the input is, its backbone makes the features.
        labelled: The items.
        names: That label numbers refer to; None: those of the set.
        features: Keep features of the backbone, which must then stay as it is, and not pictures.
        cache: Folder where features are kept under a key of backbone, input and files; None: in memory only.
        augmentation: See :class:`vidkin.training.DataRecipe`; of pictures only.
        threads: Files that are decoded at a time.
        on_item: Called after each item.

    Raises:
        DatasetError: Not one item can be read.
        InvalidArgumentError: The model cannot take such items.
    """
    config = model.config
    if config.takes_clips and labelled.kind == "image":
        raise InvalidArgumentError(
            f"{labelled.name} holds images, a model of kind {config.kind!r} takes clips; use kind 'image'"
        )
    if features and not (hasattr(model, "backbone") and config.kind in ("clip", "image")):
        raise InvalidArgumentError(f"a model of kind {config.kind!r} has no features that could be cached")
    path = None
    if features and cache is not None:
        path = cache / f"{_key(model, labelled)}.safetensors"
        found = _load(path, labelled, config, names)
        if found is not None:
            if on_item is not None:
                on_item(len(labelled), len(labelled))
            return found
    size = len(labelled) * config.size**2 * 3 * (config.frames if config.takes_clips else 1)
    keep = features or size <= _MOST_BYTES
    kept, broken, rows, lengths = _read_all(model, labelled, features, keep, threads, on_item)
    stored = torch.stack(rows) if keep else None
    made = _inputs(labelled, kept, broken, stored, torch.tensor(lengths), features, config, names)
    if path is not None and stored is not None:
        _store(path, made, kept)
    return replace(made, augmentation=tuple(augmentation))


def _read_all(
    model: Encoder, labelled: LabelledSet, features: bool, keep: bool, threads: int, on_item: OnItem | None
) -> tuple[list[int], list[MediaError], list[Tensor], list[int]]:
    """(places of items that can be read, what is wrong with the others, a row each, frames of each)."""
    kept: list[int] = []
    broken: list[MediaError] = []
    rows: list[Tensor] = []
    lengths: list[int] = []
    for place, found in enumerate(_each(labelled, model.config, threads)):
        if isinstance(found, MediaError):
            broken.append(found)
            logger.warning("left out: %s", found)
        else:
            pictures, length = found
            kept.append(place)
            lengths.append(length)
            if keep:
                row = torch.tensor(pictures)
                rows.append(_features(model, row) if features else row)
        if on_item is not None:
            on_item(place + 1, len(labelled))
    if not kept:
        raise DatasetError(
            f"none of the {len(labelled)} items of {labelled.name} can be read; the first: {broken[0]}"
            if broken
            else f"{labelled.name} has no items"
        )
    return kept, broken, rows, lengths


def _each(
    labelled: LabelledSet, config: EncoderConfig, threads: int
) -> Iterator[tuple[NDArray[np.uint8], int] | MediaError]:
    read = partial(_read_or_tell, kind=labelled.kind, config=config)
    if threads == 1:
        yield from map(read, labelled.items)
        return
    # In pieces: a pool that is given all items at once would hold the pictures of all in memory.
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for start in range(0, len(labelled), 4 * threads):
            yield from pool.map(read, labelled.items[start : start + 4 * threads])


def _read_or_tell(
    item: LabelledItem, *, kind: str, config: EncoderConfig
) -> tuple[NDArray[np.uint8], int] | MediaError:
    try:
        return _read(item, kind, config)
    except MediaError as error:
        return error


def _read(item: LabelledItem, kind: str, config: EncoderConfig) -> tuple[NDArray[np.uint8], int]:
    """Pictures [T, S, S, 3] (of an image [S, S, 3]) with what lacks of T repeated, and the frames that are real."""
    assert kind in ("image", "video", "strokes")
    if not config.takes_clips:
        frames = None if kind == "image" else 1
        found = read_item(item, kind, size=config.size, frames=frames, fit=config.fit)  # type: ignore[arg-type]
        return (found if kind == "image" else found[0]), 1
    if config.seconds is not None and kind == "video":
        item = middle_excerpt(item, config.seconds)
    found = read_item(
        item,
        kind,  # type: ignore[arg-type]
        size=config.size,
        frames=config.frames,
        rate=config.rate,
        fit=config.fit,
    )
    lacking = config.frames - len(found)
    if lacking:
        return np.concatenate([found, np.repeat(found[-1:], lacking, axis=0)]), len(found)
    return found, len(found)


@torch.no_grad()
def _features(model: Encoder, pictures: Tensor) -> Tensor:
    """[T, S, S, 3] uint8 to [T, F] float32, or [S, S, 3] to [F]; always item by item, so that numbers are the same."""
    frames = pictures if pictures.ndim == 4 else pictures.unsqueeze(0)
    inputs = (frames.movedim(-1, -3).float() / 255).to(model.device)
    backbone = model.get_submodule("backbone")
    training = backbone.training
    backbone.eval()
    found: Tensor = model.frame_features(inputs).float().cpu()  # type: ignore[operator]
    backbone.train(training)
    return found if pictures.ndim == 4 else found[0]


def _inputs(
    labelled: LabelledSet,
    kept: list[int],
    broken: Sequence[MediaError],
    stored: Tensor | None,
    lengths: Tensor,
    features: bool,
    config: EncoderConfig,
    names: LabelNames | None,
) -> Inputs:
    chosen = labelled.with_items(labelled.items[place] for place in kept)
    coarse, fine = chosen.labels(names=names)
    full = not config.takes_clips or bool((lengths == config.frames).all())
    return Inputs(
        labelled=chosen,
        labels=torch.stack([torch.from_numpy(coarse), torch.from_numpy(fine)], dim=1),
        broken=tuple(broken),
        stored=stored,
        lengths=None if full else lengths,
        are_features=features,
        config=config,
    )


def _key(model: Encoder, labelled: LabelledSet) -> str:
    """Of everything that the features depend on: backbone with its weights, what the input looks like, the files."""
    config = model.config
    digest = hashlib.sha256(f"{_VERSION} {labelled.kind}".encode())
    told = (config.kind, config.backbone, config.frames, config.rate, config.seconds, config.size, config.fit)
    digest.update(repr((*told, config.mean, config.std)).encode())
    for name, tensor in sorted(model.get_submodule("backbone").state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    for item in labelled.items:
        try:
            state = os.stat(item.path)
            told_of_file = f"{state.st_size} {state.st_mtime_ns}"
        except OSError:
            told_of_file = "missing"
        digest.update(f"{item.key()} {told_of_file}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _store(path: Path, made: Inputs, kept: list[int]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    assert made.stored is not None
    lengths = torch.full((len(made),), made.config.frames) if made.lengths is None else made.lengths
    broken = json.dumps([[error.path, error.cause] for error in made.broken])
    tensors = {"features": made.stored.contiguous(), "lengths": lengths, "kept": torch.tensor(kept)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary:
            save_file(tensors, temporary, metadata={"broken": broken})
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"features cannot be kept in {path.parent}: {error}") from error


def _load(
    path: Path, labelled: LabelledSet, config: EncoderConfig, names: LabelNames | None
) -> Inputs | None:
    """What an earlier run stored; a damaged file is made anew."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in ("features", "lengths", "kept")}
            broken = [MediaError(*pair) for pair in json.loads((file.metadata() or {})["broken"])]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        logger.warning("%s is damaged and made anew: %s", path, error)
        return None
    kept = tensors["kept"].tolist()
    return _inputs(labelled, kept, broken, tensors["features"], tensors["lengths"], True, config, names)
