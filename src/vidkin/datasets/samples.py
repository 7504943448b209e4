"""Samples with known answers, made from photographs: a film with cuts, copies, labeled images and clips."""

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
from vidkin.media import apply_edit, write_video

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

SAMPLE_SHOTS = (("coffee", 3.0), ("rocket", 2.4), ("chelsea", 2.8), ("motorcycle", 3.2), ("hubble", 2.2))

"""(photograph, seconds) of each shot; all cuts are hard but the last, a dissolve."""

_DISSOLVE = 0.8
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


def write_sample_film(
    path: PathLike, *, rate: int = 15, width: int = 320, height: int = 240, seed: int = 1
) -> tuple[float, ...]:
    """Write a film of camera flights over photographs.

    Args:
        path: The video file to write.
        rate: Frames per second.
        width: Width of the frames, pixels, even.
        height: Height of the frames, pixels, even.
        seed: Seed of the flights.

    Returns:
        Seconds at which each shot but the first begins: its first frame, or the middle of the dissolve.

    Raises:
        MissingPartError: The wheel of scikit-image lacks a photograph.
        MediaError: The file cannot be written.
    """
    shots = [
        np.stack(list(camera_flight(name, seconds=seconds, rate=rate, width=width, height=height, seed=seed)))
        for name, seconds in SAMPLE_SHOTS
    ]
    overlap = round(_DISSOLVE * rate)
    write_video(path, _joined(shots, overlap), rate=rate, made_of=_MADE_OF)
    lengths = np.cumsum([len(shot) for shot in shots[:-1]]).astype(float)
    lengths[-1] -= overlap / 2
    return tuple(float(length) / rate for length in lengths)


def _joined(shots: list[NDArray[np.uint8]], overlap: int) -> Iterator[NDArray[np.uint8]]:
    """The frames of all shots; the last two run into each other for this many frames."""
    *before, first, second = shots
    for shot in before:
        yield from shot
    yield from first[:-overlap]
    for place in range(overlap):
        share = (place + 1) / (overlap + 1)
        mixed = (1 - share) * first[len(first) - overlap + place] + share * second[place]
        yield mixed.round().astype(np.uint8)
    yield from second[overlap:]


# A small collection with known answers: photographs turned into moving clips, and edited copies of them.


# What sample videos are made of: one of an earlier version may be replaced.
_MADE_OF = "samples of vidkin"

DEFAULT_VIDEOS = tuple(name for name in PHOTOGRAPHS if name not in ("ihc", "moon"))

"""The photographs that become videos."""

DEFAULT_COPIES = (
    ("astronaut", "crop"),
    ("astronaut", "grey"),
    ("camera", "caption"),
    ("chelsea", "letterbox"),
    ("coffee", "logo"),
    ("coins", "reencode"),
    ("motorcycle", "mirror"),
    ("rocket", "faster"),
)

"""(video, edit) of the copies that stand beside the videos."""

# The clip that is not in the collection: five seconds of a video somewhere inside unrelated footage.
_QUERY = ("astronaut", "excerpt")

_FILLER = "ihc"

_FILLER_SECONDS = 20.0

_MANIFEST = "samples.json"

# Incremented when the same arguments would give different pictures.
_VERSION = 2


@dataclass(frozen=True, slots=True)
class SampleCopy:
    """An edited copy and where its source appears in it.

    Attributes:
        path: The copy.
        source: The video it was made from.
        edit: Name of the edit, see :mod:`vidkin.media.edits`.
        segments: (source start, source end, copy start, copy end) in seconds, one for each stretch.
        mirrored: Whether the copy is flipped left to right.
    """

    path: Path
    source: Path
    edit: str
    segments: tuple[tuple[float, float, float, float], ...]
    mirrored: bool


@dataclass(frozen=True, slots=True)
class SampleCollection:
    """The result of :func:`build_samples`.

    Attributes:
        folder: The folder that holds everything.
        videos: The videos, one for each photograph.
        copies: Edited copies of some of them; they belong to the collection too.
        query: A clip outside the collection, with five seconds of one video inside unrelated footage.
        built: Number of files this call wrote; 0 if all of them already existed.
    """

    folder: Path
    videos: tuple[Path, ...]
    copies: tuple[SampleCopy, ...]
    query: SampleCopy
    built: int

    @property
    def videos_folder(self) -> Path:
        """The folder whose videos are indexed."""
        return self.folder / "videos"

    @property
    def copies_folder(self) -> Path:
        """The folder of the edited copies that are searched for."""
        return self.folder / "copies"


def build_samples(
    folder: PathLike,
    *,
    videos: tuple[str, ...] = DEFAULT_VIDEOS,
    copies: tuple[tuple[str, str], ...] = DEFAULT_COPIES,
    seconds: float = 10.0,
    rate: int = 15,
    width: int = 320,
    height: int = 240,
    seed: int = 0,
    on_progress: Callable[[int, int, Path], None] | None = None,
) -> SampleCollection:
    """Write the sample collection into a folder, or reuse that of an earlier call with the same arguments.

    The folder gets ``videos/<photograph>.mp4``, ``copies/<photograph>-<edit>.mp4`` and ``clip.mp4`` (the
    query). The same arguments give the same pictures.

    Args:
        folder: Where to write, created if missing; other files in it are not touched.
        videos: Names of photographs, see :data:`vidkin.datasets.PHOTOGRAPHS`; ``astronaut`` must be among
            them, as the query is cut from it.
        copies: (photograph, edit); the photograph must be among ``videos``.
        seconds: Length of each video.
        rate: Frames per second.
        width: Width of the videos, pixels, even.
        height: Height of the videos, pixels, even.
        seed: Seed of the camera's flights and of the edits' random parts.
        on_progress: Callback that receives (files done, total number of files, file) after each file.

    Raises:
        InvalidArgumentError: A photograph is asked for as a copy but not as a video, or the folder is a file.
        MissingPartError: The wheel of scikit-image lacks a photograph.
        MediaError: A file cannot be written.
    """
    root = Path(folder)
    if root.exists() and not root.is_dir():
        raise InvalidArgumentError(f"{root} is a file; choose a folder for the samples")
    unknown = sorted({name for name, _ in (*copies, _QUERY)} - set(videos))
    if unknown:
        raise InvalidArgumentError(
            f"a copy needs its video: add {', '.join(unknown)} to videos, got {', '.join(videos)}"
        )
    flight: dict[str, Any] = {"rate": rate, "width": width, "height": height, "seed": seed}
    builder = _Builder(root, flight, seconds, on_progress, total=len(videos) + len(copies) + 2)
    builder.start()
    paths = tuple(builder.video(root / "videos" / f"{name}.mp4", name, seconds) for name in videos)
    filler = builder.video(root / ".filler" / f"{_FILLER}.mp4", _FILLER, _FILLER_SECONDS)
    made = tuple(
        builder.copy(root / "copies" / f"{name}-{edit}.mp4", root / "videos" / f"{name}.mp4", edit, filler)
        for name, edit in copies
    )
    query = builder.copy(root / "clip.mp4", root / "videos" / f"{_QUERY[0]}.mp4", _QUERY[1], filler)
    return SampleCollection(root, paths, made, query, builder.built)


class _Builder:
    """Writes the missing files. The manifest is written after each file, so an interrupted build continues where it
    stopped."""

    def __init__(
        self,
        root: Path,
        flight: Mapping[str, Any],
        seconds: float,
        on_progress: Callable[[int, int, Path], None] | None,
        *,
        total: int,
    ) -> None:
        self._root = root
        self._flight = dict(flight)
        self._seconds = seconds
        self._on_progress = on_progress
        self._total = total
        self._done = 0
        self._files: dict[str, dict[str, Any]] = {}
        self.built = 0

    def start(self) -> None:
        """Read the manifest of an earlier build."""
        self._root.mkdir(parents=True, exist_ok=True)
        try:
            noted = read_json(self._root / _MANIFEST)
        except (FileNotFoundError, ValueError):
            return  # nothing noted, or notes that a crash cut short: everything is built anew
        if isinstance(noted, dict) and isinstance(noted.get("files"), dict):
            self._files = noted["files"]

    def video(self, path: Path, name: str, seconds: float) -> Path:
        """A camera's flight over a photograph."""
        recipe = {"photograph": name, "seconds": seconds, **self._flight}

        def make() -> dict[str, Any]:
            write_video(
                path, camera_flight(name, seconds=seconds, **self._flight), rate=self._flight["rate"], made_of=_MADE_OF
            )
            return {}

        self._build(path, recipe, make)
        return path

    def copy(self, path: Path, source: Path, edit: str, filler: Path) -> SampleCopy:
        """An edited copy."""
        recipe = {"source": source.stem, "edit": edit, "seconds": self._seconds, **self._flight}

        def make() -> dict[str, Any]:
            result = apply_edit(source, path, edit, seed=self._flight["seed"], filler=filler, made_of=_MADE_OF)
            return {"segments": [list(_span(item)) for item in result.segments], "mirrored": result.mirrored}

        truth = self._build(path, recipe, make)
        segments = tuple(_span(item) for item in truth["segments"])
        return SampleCopy(path, source, edit, segments, bool(truth["mirrored"]))

    def _build(self, path: Path, recipe: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        key = path.relative_to(self._root).as_posix()
        recipe = {"version": _VERSION, **recipe}
        noted = self._files.get(key)
        size = path.stat().st_size if path.is_file() else -1
        if noted is None or noted.get("recipe") != recipe or noted.get("size") != size:
            path.parent.mkdir(parents=True, exist_ok=True)
            if noted is not None:  # made here by another recipe, or damaged since
                path.unlink(missing_ok=True)
            truth = make()
            noted = {"recipe": recipe, "size": path.stat().st_size, "truth": truth}
            self._files[key] = noted
            write_text(self._root / _MANIFEST, json.dumps({"files": self._files}, indent=1))
            self.built += 1
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._total, path)
        known_truth: dict[str, Any] = noted["truth"]
        return known_truth


def _span(item: Any) -> tuple[float, float, float, float]:
    source_start, source_end, copy_start, copy_end = (float(value) for value in item[:4])
    return source_start, source_end, copy_start, copy_end


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


# Photographs that ship inside scikit-image, and a camera that flies over them.


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
