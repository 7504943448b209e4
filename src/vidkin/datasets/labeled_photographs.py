"""Labeled sample clips, built without a download: camera flights over regions of 14 photographs of 5 kinds."""

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

# Source that is recorded in the clips, so that clips of an earlier version may be replaced.
_MADE_OF = "samples of vidkin"

LABELLED_PHOTOGRAPHS: dict[str, tuple[str, ...]] = {
    "portrait": ("astronaut", "camera", "chelsea"),
    "sky": ("hubble", "moon", "rocket"),
    "texture": ("brick", "grass", "gravel"),
    "thing": ("coffee", "coins", "motorcycle"),
    "tissue": ("ihc", "retina"),
}

"""Photographs (subcategories) by kind of photograph (category)."""

_LABELED_MANIFEST = "labelled.json"

# Increment when the same arguments would produce different clips.
_LABELED_VERSION = 1

# Photographs are scaled so that their short side has this many pixels; a window then shows a similar area of each.
_SHORT_SIDE = 540

# Fraction to keep around the middle. The retina is a disc on black; this crop has no black corners.
_MIDDLE = {"retina": 0.68}

# Split of each cell of a photograph; every row and every column has one test cell.
_CELLS = (
    ("train", "test", "train", "validation"),
    ("test", "train", "train", "train"),
    ("train", "validation", "test", "train"),
    ("train", "train", "train", "test"),
)


@dataclass(frozen=True)
class _Look:
    """Random parameters of a clip: its flight over the photograph and the look of its camera."""

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
    """Write the labeled clips to a folder, or reuse the clips of an earlier call with the same arguments.

    The files are ``split/category/photograph/NN.mp4``; the category is the kind of photograph, the subcategory is the
    photograph (:data:`LABELLED_PHOTOGRAPHS`). Each clip is a flight over a region of its photograph, with random light,
    colors, contrast, scale, grain and mirroring, so that none of these alone distinguishes the photographs.

    A photograph is divided into 4 x 4 cells: 10 for training, 2 for validation and 4 for testing. A clip stays inside
    one cell, so that no region of a photograph appears in two splits.

    Args:
        folder: Folder to write to; created if missing.
        train: Number of training clips per photograph.
        validation: Number of validation clips per photograph.
        test: Number of test clips per photograph.
        seconds: Length of a clip.
        rate: Frames per second.
        size: Side of the square frames in pixels, an even number.
        seed: Seed of the flights and looks.
        on_progress: Callback that receives (files done, total number of files, file) after each file.

    Returns:
        A set of kind ``"video"``; the group of a clip is the cell of its photograph.

    Raises:
        InvalidArgumentError: An argument is out of range.
        DatasetError: The folder has other contents.
        MissingPartError: The scikit-image wheel lacks a photograph.
        MediaError: A file cannot be written.
    """
    counts = {"train": train, "validation": validation, "test": test}
    if min(counts.values()) < 0 or train < 1:
        raise InvalidArgumentError(f"train must be at least 1, and validation and test at least 0, got {counts}")
    if not (seconds > 0 and rate > 0 and size >= 16 and size % 2 == 0):
        raise InvalidArgumentError(
            f"seconds and rate must be above 0, and size even and at least 16 pixels, got {seconds}, {rate} and {size}"
        )
    recipe: dict[str, Any] = {"version": _LABELED_VERSION, **counts}
    recipe |= {"seconds": seconds, "rate": rate, "size": size, "seed": seed}
    root = Path(folder).expanduser()
    known = _manifest(root)
    if known is None or known["recipe"] != recipe:
        # Other files in the folder must not be overwritten.
        if root.exists() and not root.is_dir():
            raise InvalidArgumentError(f"{root} is a file; choose a folder for the labeled samples")
        if known is not None:
            raise DatasetError(
                f"{root} contains labeled samples made with other arguments ({known['recipe']}); choose another folder"
            )
        if root.is_dir() and any(path.name != _LABELED_MANIFEST for path in root.iterdir()):
            raise DatasetError(f"{root} is not empty and contains no labeled samples; choose an empty folder")
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
                    frames = _iter_flight_frames(
                        _source(name), look, round(seconds * rate) or 1, rate, size, seed + done
                    )
                    write_video(path, frames, rate=rate, crf=20, threads=1, made_of=_MADE_OF)
                    known["cells"][key], known["sizes"][key] = cell, path.stat().st_size
                done += 1
                if on_progress is not None:
                    on_progress(done, total, path)
            write_text(root / _LABELED_MANIFEST, json.dumps(known, indent=1))
    return read_photographs(root, build=False)


@check_arguments
def read_photographs(source: PathLike, *, build: bool = True, seed: int = 0) -> LabelledSet:
    """Open the clips written by :func:`build_labelled_samples`.

    Args:
        source: The folder.
        build: Write the clips first, with the default arguments, if the folder is missing or empty; this takes less
            than a minute.
        seed: Seed of the clips written in this case.

    Raises:
        DatasetError: The folder does not contain the clips, or some are missing.
    """
    root = Path(source).expanduser()
    known = _manifest(root)
    if known is None:
        if build and (not root.exists() or (root.is_dir() and not any(root.iterdir()))):
            return build_labelled_samples(root, seed=seed)
        raise DatasetError(f"{root} contains no labeled samples; call build_labelled_samples first")
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
            "build_labelled_samples again to write them"
        )
    return LabelledSet("photographs", "video", tuple(items), root)


def _clips(
    name: str, root: Path, category: str, counts: dict[str, int], seed: int
) -> Iterator[tuple[Path, tuple[str, _Look]]]:
    """Yield (file, (cell, look)) for each clip of a photograph."""
    for split, count in counts.items():
        cells = [(row, column) for row in range(4) for column in range(4) if _CELLS[row][column] == split]
        generator = np.random.default_rng([seed, len(split), *name.encode()])
        order = [cells[index] for index in generator.permutation(len(cells))]
        for number in range(count):
            row, column = order[number % len(order)]
            look = _sample_look(generator, (column / 4, row / 4, (column + 1) / 4, (row + 1) / 4))
            yield root / split / category / name / f"{number:02d}.mp4", (f"{row}-{column}", look)


def _sample_look(generator: np.random.Generator, cell: tuple[float, float, float, float]) -> _Look:
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
    image = Image.fromarray(photograph(name))
    share = _MIDDLE.get(name)
    if share is not None:
        width, height = image.size
        x, y = width * (1 - share) / 2, height * (1 - share) / 2
        image = image.crop((round(x), round(y), round(width - x), round(height - y)))
    scale = _SHORT_SIDE / min(image.size)
    size = (round(image.width * scale), round(image.height * scale))
    return image.resize(size, Image.Resampling.LANCZOS)


def _iter_flight_frames(
    source: Image.Image, look: _Look, count: int, rate: int, size: int, seed: int
) -> Iterator[NDArray[np.uint8]]:
    generator = np.random.default_rng(seed)
    left, top = look.cell[0] * source.width, look.cell[1] * source.height
    # Resizing reads pixels slightly outside its box, so the cell is cropped first to exclude neighboring cells.
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
        return None  # missing, or incomplete after a crash
    whole = isinstance(known, dict) and all(isinstance(known.get(key), dict) for key in ("recipe", "cells", "sizes"))
    return known if whole else None
