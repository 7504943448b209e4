"""A labeled video collection that needs no download: flights of a camera over photographs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.files import VIDEO_EXTENSIONS, PathLike, write_text
from vidkin._base.values import read_json
from vidkin.datasets.folders import iter_tree_items
from vidkin.datasets.labeled import SPLITS, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError, MissingPartError
from vidkin.features import background
from vidkin.media import write_video

LABELLED_PHOTOGRAPHS: dict[str, tuple[str, ...]] = {
    "portrait": ("astronaut", "camera", "chelsea"),
    "sky": ("hubble", "moon", "rocket"),
    "texture": ("brick", "grass", "gravel"),
    "thing": ("coffee", "coins", "motorcycle"),
    "tissue": ("ihc", "retina"),
}

"""Kind of picture (category) -> photographs (subcategories)."""

_MANIFEST = "labelled.json"

# Incremented when the same arguments would give different pictures.
_VERSION = 1

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
    recipe: dict[str, Any] = {"version": _VERSION, **counts}
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
        if root.is_dir() and any(path.name != _MANIFEST for path in root.iterdir()):
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
                    write_video(path, frames, rate=rate, crf=20, threads=1)
                    known["cells"][key], known["sizes"][key] = cell, path.stat().st_size
                done += 1
                if on_progress is not None:
                    on_progress(done, total, path)
            write_text(root / _MANIFEST, json.dumps(known, indent=1))
    return read_photographs(root, build=False)


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
        known = read_json(root / _MANIFEST)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None  # none was written, or a crash cut it short
    whole = isinstance(known, dict) and all(isinstance(known.get(key), dict) for key in ("recipe", "cells", "sizes"))
    return known if whole else None


# Photographs that ship inside scikit-image, and a camera that flies over them.


PHOTOGRAPHS: Mapping[str, str] = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "camera": "camera.png",
    "chelsea": "chelsea.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "hubble": "hubble_deep_field.jpg",
    "ihc": "ihc.png",
    "moon": "moon.png",
    "motorcycle": "motorcycle_left.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}
"""The photographs that come with scikit-image, and their files in its wheel."""

# How slowly a flight goes: about eleven seconds from one turning point to the next.
_SECONDS_PER_RADIAN = 3.5


def photograph(name: str) -> NDArray[np.uint8]:
    """A photograph [H, W, 3] RGB; gray ones have three equal channels.

    The original where scikit-image is installed (extra ``train``), else the compressed one of the background
    photographs, which looks the same.

    Raises:
        InvalidArgumentError: ``name`` is not in :data:`PHOTOGRAPHS`.
        MissingPartError: The wheel of scikit-image lacks the file.
    """
    if name not in PHOTOGRAPHS:
        raise InvalidArgumentError(f"name must be one of {', '.join(sorted(PHOTOGRAPHS))}, got {name!r}")
    return np.array(_open_original(name) or background.open_photograph(name))


@cache
def _open_original(name: str) -> Image.Image | None:
    """A photograph of scikit-image in RGB, read as a file: its own functions download what its wheel lacks; None
    without scikit-image."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or not spec.submodule_search_locations:
        return None
    file = PHOTOGRAPHS[name]
    path = Path(spec.submodule_search_locations[0]) / "data" / file
    if not path.is_file():
        raise MissingPartError(
            f"this scikit-image does not ship {file}; another version does: pip install 'scikit-image>=0.25'"
        )
    with Image.open(path) as image:
        return image.convert("RGB")


def camera_flight(
    name: str,
    *,
    seconds: float = 10.0,
    rate: int = 15,
    width: int = 320,
    height: int = 240,
    seed: int = 0,
) -> Iterator[NDArray[np.uint8]]:
    """Frames [height, width, 3] of a camera that wanders over a photograph and zooms.

    The window's center and size follow sine waves of different periods, so that no two seconds of a clip
    show the same cut-out. The same arguments give the same frames; another seed is another flight.

    Args:
        name: A photograph of :data:`PHOTOGRAPHS`.
        seconds: Length of the clip; ``round(seconds * rate)`` frames, at least one.
        rate: Frames per second.
        width: Width of the frames, pixels.
        height: Height of the frames, pixels.
        seed: Seed of the flight.
    """
    for argument, value in (("seconds", seconds), ("rate", rate), ("width", width), ("height", height)):
        if not value > 0:
            raise InvalidArgumentError(f"{argument} must be above 0, got {value}")
    source = Image.fromarray(photograph(name))
    generator = np.random.default_rng([seed, *name.encode()])
    phases = generator.uniform(0.0, 2 * np.pi, 3)
    turns = generator.uniform(0.7, 1.4, 3) / _SECONDS_PER_RADIAN
    return _fly_photographs(source, round(seconds * rate) or 1, rate, (width, height), phases, turns)


def _fly_photographs(
    source: Image.Image,
    count: int,
    rate: int,
    size: tuple[int, int],
    phases: NDArray[np.float64],
    turns: NDArray[np.float64],
) -> Iterator[NDArray[np.uint8]]:
    width, height = size
    largest = min(source.height, source.width * height / width)
    for index in range(count):
        zoom, x, y = np.sin(turns * (index / rate) + phases)
        window_height = largest * (0.55 + 0.2 * zoom)
        window_width = window_height * width / height
        left = (source.width - window_width) * (0.5 + 0.5 * x)
        top = (source.height - window_height) * (0.5 + 0.5 * y)
        box = (left, top, left + window_width, top + window_height)
        yield np.asarray(source.resize(size, Image.Resampling.BILINEAR, box=box))
