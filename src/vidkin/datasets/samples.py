"""A short film with known cuts, for the demonstration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike, write_text
from vidkin._base.values import read_json
from vidkin.datasets.labeled_samples import PHOTOGRAPHS, camera_flight
from vidkin.errors import InvalidArgumentError
from vidkin.media import apply_edit, write_video

SAMPLE_SHOTS = (("coffee", 3.0), ("rocket", 2.4), ("chelsea", 2.8), ("motorcycle", 3.2), ("hubble", 2.2))

"""(photograph, seconds) of each shot; all cuts are hard but the last, a dissolve."""

_DISSOLVE = 0.8


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
    write_video(path, _joined(shots, overlap), rate=rate)
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
        """The folder of the videos."""
        return self.folder / "videos"

    @property
    def copies_folder(self) -> Path:
        """The folder of the copies."""
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
            write_video(path, camera_flight(name, seconds=seconds, **self._flight), rate=self._flight["rate"])
            return {}

        self._build(path, recipe, make)
        return path

    def copy(self, path: Path, source: Path, edit: str, filler: Path) -> SampleCopy:
        """An edited copy."""
        recipe = {"source": source.stem, "edit": edit, "seconds": self._seconds, **self._flight}

        def make() -> dict[str, Any]:
            result = apply_edit(source, path, edit, seed=self._flight["seed"], filler=filler)
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
