"""Labeled clips that need no download: camera flights over parts of 14 photographs of 5 kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.arguments import check_arguments
from vidkin._base.files import VIDEO_EXTENSIONS, PathLike, write_text
from vidkin._base.values import read_json
from vidkin.datasets.folders import iter_tree_items
from vidkin.datasets.labeled import SPLITS, LabelledSet
from vidkin.datasets.photographs import photograph
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import write_video

# What the clips are made of: one of an earlier version may be replaced.
_MADE_OF = "samples of vidkin"

LABELLED_PHOTOGRAPHS: dict[str, tuple[str, ...]] = {
    "portrait": ("astronaut", "camera", "chelsea"),
    "sky": ("hubble", "moon", "rocket"),
    "texture": ("brick", "grass", "gravel"),
    "thing": ("coffee", "coins", "motorcycle"),
    "tissue": ("ihc", "retina"),
}

"""Kind of picture (category) -> photographs (subcategories)."""

_LABELED_MANIFEST = "labelled.json"

# Incremented when the same arguments would give different pictures.
_LABELED_VERSION = 1

# Photographs are scaled to this shorter side first, so that a window shows as much of each.
_SHORT_SIDE = 540

# The eye's picture is a disc on black: this share of it, around the middle, has no black corners.
_MIDDLE = {"retina": 0.68}

# Cells of the photograph -> split: each part sees something of each row and column.
_CELLS = (
    ("train", "test", "train", "validation"),
    ("test", "train", "train", "train"),
    ("train", "validation", "test", "train"),
    ("train", "train", "train", "test"),
)


@dataclass(frozen=True)
class _Look:
    """The look of one clip: its flight over the photograph and its camera."""

    cell: tuple[float, float, float, float]
    phases: NDArray[np.float64]
    turns: NDArray[np.float64]
    zoom: float
    gain: NDArray[np.float64]
    bias: float
    saturation: float
    drift: float
    noise: float
    mirrored: bool


@check_arguments
def build_labelled_samples(
    folder: PathLike,
    *,
    train: int = 10,
    validation: int = 3,
    test: int = 5,
    seconds: float = 2.0,
    rate: int = 10,
    size: int = 96,
    seed: int = 0,
    on_progress: Callable[[int, int, Path], None] | None = None,
) -> LabelledSet:
    """Write the labeled clips into a folder, or reuse those of an earlier call with the same arguments.

    The folder gets ``split/kind of picture/photograph/NN.mp4``: category and subcategory are the kind of picture and
    the photograph (:data:`LABELLED_PHOTOGRAPHS`). Each clip is a flight over a part of its photograph, with light,
    colors, contrast, scale, grain and mirroring of its own, so that no single one of these tells photographs apart.

    The photograph is divided into 4 x 4 cells; 10 belong to train, 2 to validation and 4 to the test, and a clip stays
    inside one cell: no part of the picture is on two sides.

    Args:
        folder: Where to write; created if missing.
        train: Clips of each photograph for training.
        validation: Clips for validation.
        test: Clips for the test.
        seconds: Length of a clip.
        rate: Frames per second.
        size: Side of the square frames, pixels, even.
        seed: Seed of the flights and looks.
        on_progress: Callback that receives (files done, total number of files, file) after each file.

    Returns:
        Kind ``"video"``; the group is the photograph's cell.

    Raises:
        InvalidArgumentError: An argument is out of range.
        DatasetError: The folder contains something else.
        MissingPartError: The wheel of scikit-image lacks a photograph.
        MediaError: A file cannot be written.
    """
    counts = {"train": train, "validation": validation, "test": test}
    if min(counts.values()) < 0 or train < 1:
        raise InvalidArgumentError(f"clips of each photograph must be 0 or more, and of train 1 or more, got {counts}")
    if not (seconds > 0 and rate > 0 and size >= 16 and size % 2 == 0):
        raise InvalidArgumentError(
            f"seconds and rate must be above 0, and size even and at least 16 pixels, got {seconds}, {rate} and {size}"
        )
    recipe: dict[str, Any] = {"version": _LABELED_VERSION, **counts}
    recipe |= {"seconds": seconds, "rate": rate, "size": size, "seed": seed}
    root = Path(folder).expanduser()
    known = _manifest(root)
    if known is None or known["recipe"] != recipe:
        # Nothing is written where something else stands.
        if root.exists() and not root.is_dir():
            raise InvalidArgumentError(f"{root} is a file; choose a folder for the labeled samples")
        if known is not None:
            raise DatasetError(
                f"{root} holds labeled samples made with other arguments ({known['recipe']}); choose another folder"
            )
        if root.is_dir() and any(path.name != _LABELED_MANIFEST for path in root.iterdir()):
            raise DatasetError(f"{root} is not empty and holds no labeled samples; choose a folder of their own")
        known = {"recipe": recipe, "cells": {}, "sizes": {}}
    total = sum(counts.values()) * sum(len(names) for names in LABELLED_PHOTOGRAPHS.values())
    done = 0
    for category, names in LABELLED_PHOTOGRAPHS.items():
        for name in names:
            for path, clip in _clips(name, root, category, counts, seed):
                key = path.relative_to(root).as_posix()
                if not path.is_file() or known["sizes"].get(key) != path.stat().st_size:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    cell, look = clip
                    frames = _fly(_source(name), look, round(seconds * rate) or 1, rate, size, seed + done)
                    write_video(path, frames, rate=rate, crf=20, threads=1, made_of=_MADE_OF)
                    known["cells"][key], known["sizes"][key] = cell, path.stat().st_size
                done += 1
                if on_progress is not None:
                    on_progress(done, total, path)
            write_text(root / _LABELED_MANIFEST, json.dumps(known, indent=1))
    return read_photographs(root, build=False)


@check_arguments
def read_photographs(source: PathLike, *, build: bool = True, seed: int = 0) -> LabelledSet:
    """Open the clips that :func:`build_labelled_samples` wrote into a folder.

    Args:
        source: The folder.
        build: Write them there first, with the defaults, if the folder is missing or empty: takes under a minute.
        seed: Seed of the clips written in that case.

    Raises:
        DatasetError: The folder does not hold them, or not all.
    """
    root = Path(source).expanduser()
    known = _manifest(root)
    if known is None:
        if build and (not root.exists() or (root.is_dir() and not any(root.iterdir()))):
            return build_labelled_samples(root, seed=seed)
        raise DatasetError(f"{root} does not hold the labeled samples; call build_labelled_samples first")
    items = []
    for split in SPLITS:
        if (root / split).is_dir():
            for item in iter_tree_items(root / split, VIDEO_EXTENSIONS):
                key = item.path.relative_to(root).as_posix()
                if key in known["cells"]:
                    group = f"{item.subcategory}, cell {known['cells'][key]}"
                    items.append(replace(item, split=split, group=group))
    if len(items) < len(known["cells"]):
        raise DatasetError(
            f"{root} lacks {len(known['cells']) - len(items)} of its {len(known['cells'])} clips; call "
            "build_labelled_samples again to write the others"
        )
    return LabelledSet("photographs", "video", tuple(items), root)


def _clips(
    name: str, root: Path, category: str, counts: dict[str, int], seed: int
) -> Iterator[tuple[Path, tuple[str, _Look]]]:
    """(file, (cell, look)) of all clips of a photograph."""
    for split, count in counts.items():
        cells = [(row, column) for row in range(4) for column in range(4) if _CELLS[row][column] == split]
        generator = np.random.default_rng([seed, len(split), *name.encode()])
        order = [cells[index] for index in generator.permutation(len(cells))]
        for number in range(count):
            row, column = order[number % len(order)]
            look = _look(generator, (column / 4, row / 4, (column + 1) / 4, (row + 1) / 4))
            yield root / split / category / name / f"{number:02d}.mp4", (f"{row}-{column}", look)


def _look(generator: np.random.Generator, cell: tuple[float, float, float, float]) -> _Look:
    return _Look(
        cell=cell,
        phases=generator.uniform(0.0, 2 * np.pi, 3),
        turns=generator.uniform(0.6, 1.6, 3),
        zoom=generator.uniform(0.6, 0.8),
        gain=generator.uniform(0.75, 1.25) * generator.uniform(0.85, 1.15, 3),
        bias=generator.uniform(-25.0, 25.0),
        saturation=generator.uniform(0.4, 1.2),
        drift=generator.uniform(-0.12, 0.12),
        noise=generator.uniform(0.0, 8.0),
        mirrored=bool(generator.integers(2)),
    )


def _source(name: str) -> Image.Image:
    picture = Image.fromarray(photograph(name))
    share = _MIDDLE.get(name)
    if share is not None:
        width, height = picture.size
        x, y = width * (1 - share) / 2, height * (1 - share) / 2
        picture = picture.crop((round(x), round(y), round(width - x), round(height - y)))
    scale = _SHORT_SIDE / min(picture.size)
    size = (round(picture.width * scale), round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _fly(source: Image.Image, look: _Look, count: int, rate: int, size: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    generator = np.random.default_rng(seed)
    left, top = look.cell[0] * source.width, look.cell[1] * source.height
    # A resize looks a little beyond its box: the cell is cut out first, so that nothing of its neighbors is seen.
    cell = source.crop(
        (round(left), round(top), round(look.cell[2] * source.width), round(look.cell[3] * source.height))
    )
    if look.mirrored:
        cell = cell.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    side = min(cell.size)
    for index in range(count):
        time = index / rate
        zoom, x, y = np.sin(look.turns * time + look.phases)
        window = side * (look.zoom + 0.15 * zoom)
        box_left = (cell.width - window) * (0.5 + 0.5 * x)
        box_top = (cell.height - window) * (0.5 + 0.5 * y)
        box = (box_left, box_top, box_left + window, box_top + window)
        frame = np.asarray(cell.resize((size, size), Image.Resampling.BICUBIC, box=box), dtype=np.float64)
        gray = frame.mean(axis=-1, keepdims=True)
        frame = (gray + look.saturation * (frame - gray)) * look.gain * (1 + look.drift * time) + look.bias
        frame += generator.normal(0.0, 1.0, frame.shape) * look.noise
        yield np.clip(np.rint(frame), 0, 255).astype(np.uint8)


def _manifest(root: Path) -> dict[str, Any] | None:
    try:
        known = read_json(root / _LABELED_MANIFEST)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None  # none was written, or a crash cut it short
    whole = isinstance(known, dict) and all(isinstance(known.get(key), dict) for key in ("recipe", "cells", "sizes"))
    return known if whole else None
