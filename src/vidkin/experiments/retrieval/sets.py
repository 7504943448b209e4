"""The labelled collections that the comparison runs on, and their frame features, kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vidkin.datasets import LabelledSet, make_excerpts, make_split, open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.models import Encoder

__all__ = [
    "COMPARISON_SETS",
    "ComparisonSet",
    "collection_key",
    "comparison_set",
    "frame_features",
    "open_set",
    "read_pictures",
]

PathLike = str | os.PathLike[str]
OnItem = Callable[[int, int], None]

_EXCERPTS = 3
_EXCERPT_FRAMES = 10
_FRAME_BATCH = 64


@dataclass(frozen=True, kw_only=True)
class ComparisonSet:
    """A collection of the comparison.

    Attributes:
        name: Its name.
        video: Items are videos (or strokes shown as video) and not pictures.
        folder: Where it lies in the folder of the data; empty for that folder itself.
        reader: Of :func:`vidkin.datasets.open_labelled`.
        options: Of the reader.
        size: Side of the pictures that the frame network sees.
        about: Categories, subcategories and split in one sentence.
    """

    name: str
    video: bool
    folder: str
    reader: str
    options: dict[str, Any] = field(default_factory=dict)
    size: int = 128
    about: str


COMPARISON_SETS: tuple[ComparisonSet, ...] = (
    ComparisonSet(
        name="fruit",
        video=True,
        folder="labelled/fruit",
        reader="fruit",
        about="turntable videos of 67 varieties of apple, cherry and tomato, three excerpts of ten frames a video; "
        "the first axis of rotation is train and gallery, the second test, a third validation",
    ),
    ComparisonSet(
        name="strokes",
        video=True,
        folder="labelled/omniglot",
        reader="omniglot",
        options={"kind": "strokes"},
        size=96,
        about="films of a hand writing 242 characters of 8 alphabets; drawers 1-12 train and gallery, 13-15 "
        "validation, 16-20 test",
    ),
    ComparisonSet(
        name="aerial",
        video=True,
        folder="labelled/aerial",
        reader="aerial",
        about="aircraft, birds, drones and helicopters in the sky, by visible light and infrared; whole recordings "
        "in train, validation and test",
    ),
    ComparisonSet(
        name="grocery",
        video=False,
        folder="labelled/grocery",
        reader="grocery",
        about="photographs of 81 products in three departments of a shop; the published split",
    ),
    ComparisonSet(
        name="omniglot",
        video=False,
        folder="labelled/omniglot",
        reader="omniglot",
        about="images of 242 characters of 8 alphabets; drawers 1-12 train and gallery, 13-15 validation, 16-20 test",
    ),
    ComparisonSet(
        name="videos",
        video=True,
        folder="",
        reader="tree",
        about="own videos, category/subcategory/file",
    ),
    ComparisonSet(
        name="pictures",
        video=False,
        folder="",
        reader="tree",
        about="own pictures, category/subcategory/file",
    ),
)


def comparison_set(name: str) -> ComparisonSet:
    """The collection of a name.

    Raises:
        InvalidArgumentError: There is none; the message lists all.
    """
    for known in COMPARISON_SETS:
        if known.name == name:
            return known
    raise InvalidArgumentError(
        f"no set is called {name!r}, allowed are {', '.join(known.name for known in COMPARISON_SETS)}"
    )


def open_set(
    chosen: ComparisonSet, data: PathLike, *, on_broken: Callable[[MediaError], None] | None = None
) -> LabelledSet:
    """The items, divided into train, validation and test.

    Fruit: the third axis, which 28 varieties have, is validation, so that the test is never looked at to choose; every
    video gives three excerpts of ten frames. Of an own collection (reader ``tree``) items that cannot be read are left
    out; without a split it is divided 60 : 10 : 30, by group.

    Args:
        chosen: Which.
        data: The folder that holds ``chosen.folder``.
        on_broken: Called with what is wrong with each item that is left out; ``path`` is its file.

    Raises:
        DatasetError: The collection is not there, not as its reader needs it, or no item of it can be read.
        InvalidArgumentError: The kind of the items is not that of the set, or a part is empty.
    """
    folder = Path(data)
    nested = folder / chosen.folder
    # A folder that holds the collections themselves will do as well as one above it.
    source = nested if nested.is_dir() else folder / Path(chosen.folder).name
    labelled = open_labelled(source, reader=chosen.reader, **chosen.options)
    if (labelled.kind != "image") is not chosen.video:
        raise InvalidArgumentError(
            f"{source} holds items of kind {labelled.kind}; set {chosen.name} is for "
            f"{'videos' if chosen.video else 'pictures'}"
        )
    if chosen.reader == "tree":
        labelled = _readable(labelled, on_broken)
    if chosen.reader == "fruit":
        labelled = make_excerpts(_fruit_split(labelled), count=_EXCERPTS, frames=_EXCERPT_FRAMES)
    if "" in labelled.split_counts():
        labelled = make_split(labelled, test=0.3, validation=0.1)
    for split in ("train", "validation", "test"):
        labelled.part(split)
    return labelled


def read_pictures(labelled: LabelledSet, *, size: int, frames: int, on_item: OnItem | None = None) -> Tensor:
    """All items as uint8 pictures: [N, T, 3, S, S], of images [N, 3, S, S]."""
    found = []
    for number, item in enumerate(labelled.items, start=1):
        pictures = read_item(
            item, labelled.kind, size=size, frames=None if labelled.kind == "image" else frames
        )
        found.append(torch.from_numpy(np.moveaxis(pictures, -1, -3).copy()))
        if on_item is not None:
            on_item(number, len(labelled))
    return torch.stack(found)


def frame_features(
    model: Encoder, labelled: LabelledSet, *, cache: Path, on_item: OnItem | None = None
) -> Tensor:
    """What the frozen backbone sees in every item: [N, T, F], of images [N, F].

    Kept in ``cache`` under a name made of the weights, the input's size and the items with size and time of their
    files, so that other models or items never meet old features.

    Args:
        model: With a backbone; its ``config`` says frames, size and fit.
        labelled: The items.
        cache: Folder, made where it is missing.
        on_item: Called with the number of items done and all items.
    """
    from safetensors.torch import load_file, save_file

    config = model.config
    path = cache / f"{labelled.name}-{_features_key(model, labelled)}.safetensors"
    if path.is_file():
        return load_file(path)["features"]
    found: list[Tensor] = []
    waiting: list[Tensor] = []
    frames = 1 if labelled.kind == "image" else config.frames
    model.eval()
    for number, item in enumerate(labelled.items, start=1):
        pictures = read_item(
            item,
            labelled.kind,
            size=config.size,
            frames=None if labelled.kind == "image" else config.frames,
            fit=config.fit,
        )
        waiting.append(torch.from_numpy(pictures.reshape(frames, config.size, config.size, 3).copy()))
        if len(waiting) * frames >= _FRAME_BATCH or number == len(labelled):
            found.append(_backbone(model, torch.cat(waiting)))
            waiting.clear()
            if on_item is not None:
                on_item(number, len(labelled))
    features = torch.cat(found)
    if labelled.kind != "image":
        features = features.reshape(len(labelled), frames, -1)
    cache.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    save_file({"features": features}, part)
    part.replace(path)
    return features


@torch.inference_mode()
def _backbone(model: Encoder, images: Tensor) -> Tensor:
    backbone = model.get_submodule("backbone")
    pictures = images.permute(0, 3, 1, 2).float() / 255.0
    features: Tensor = backbone(model.normalised(pictures))
    return features


def collection_key(model: Encoder, labelled: LabelledSet) -> str:
    """A name for everything that a run is given: files, labels, split and the frozen weights."""
    told = [(item.label, item.split) for item in labelled.items]
    return hashlib.sha256(json.dumps([_features_key(model, labelled), told]).encode()).hexdigest()[:16]


def _features_key(model: Encoder, labelled: LabelledSet) -> str:
    config = model.config
    parts = {
        "backbone": _digest(model.get_submodule("backbone")),
        "input": [config.size, config.frames, config.fit, config.mean, config.std],
        "items": [(item.key(labelled.root), *_file_state(item.path)) for item in labelled.items],
    }
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


def _file_state(path: Path) -> tuple[int, int]:
    """(size, time of the last change) of a file; a missing one is told of when it is read."""
    try:
        state = path.stat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _readable(labelled: LabelledSet, on_broken: Callable[[MediaError], None] | None) -> LabelledSet:
    """The items that one small picture can be read of."""
    kept, last = [], None
    for item in labelled.items:
        try:
            read_item(item, labelled.kind, size=16, frames=None if labelled.kind == "image" else 1)
        except MediaError as error:
            last = error
            if on_broken is not None:
                on_broken(error)
        else:
            kept.append(item)
    if not kept:
        raise DatasetError(f"no item of {labelled.name} can be read; the last of {len(labelled)}: {last}")
    return labelled.with_items(kept)


def _fruit_split(labelled: LabelledSet) -> LabelledSet:
    """The first axis of a variety is train, the second test, a third one validation."""
    axes: defaultdict[str, int] = defaultdict(int)
    items = []
    for item in labelled.items:
        items.append(replace(item, split=("train", "test", "validation")[min(axes[item.label], 2)]))
        axes[item.label] += 1
    return labelled.with_items(items)
