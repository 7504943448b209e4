"""Features of a benchmark's videos by ID, read from files or computed and cached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from vidkin._base.files import VIDEO_EXTENSIONS, write_bytes
from vidkin._base.install import install_command
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError, MediaError, MissingPartError
from vidkin.features import FrameExtractor, describe_file
from vidkin.index.storage.records import sampling_rate
from vidkin.media import probe
from vidkin.similarity import FrameFeatures

__all__ = ["StoredFeatures", "describe_videos", "find_videos", "has_features"]

FeaturePlace = tuple[Path, tuple[int, int] | str | None]

_HDF5 = (".hdf5", ".h5")


def has_features(folder: Path) -> bool:
    """Whether a folder contains a feature file, at any depth."""
    return any(file.suffix in (".safetensors", *_HDF5) for file in folder.rglob("*"))


@dataclass(frozen=True, slots=True)
class StoredFeatures:
    """Features in a folder's safetensors and HDF5 files, each read when needed.

    A safetensors file contains ``values`` [T, R, D], and optionally ``timestamps`` [T] in seconds (default: one frame
    per second) and ``information`` [T]. Its name is the ID of the video; a file from ``vidkin embed`` contains several
    videos, whose IDs are their file names. An HDF5 file, as published by ViSiL, DnS, S2VS and HAP-VR, has a data set
    [T, R, D] or [T, D] for each video, named by its ID.

    Attributes:
        places: File by ID, with the first frame and number of frames in it, or the name of the data set; None for the
            whole file.
    """

    places: Mapping[str, FeaturePlace] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> StoredFeatures:
        """Find the feature files in a folder, at any depth.

        Raises:
            InvalidArgumentError: There are no feature files, one is damaged, or two contain the same video.
            MissingPartError: There is an HDF5 file, but h5py is not installed.
        """
        places: dict[str, FeaturePlace] = {}
        files = sorted(file for file in folder.rglob("*") if file.suffix in (".safetensors", *_HDF5))
        if not files:
            raise InvalidArgumentError(
                f"{folder}: no safetensors or HDF5 files; create them with `vidkin embed`, or pass the videos "
                "(--videos)"
            )
        for file in files:
            if file.suffix in _HDF5:
                for name in _names_in(file):
                    _add(places, name.rpartition("/")[2], (file, name))
                continue
            try:
                with safe_open(os.fspath(file), framework="np") as stored:
                    paths = parse_json((stored.metadata() or {}).get("paths", "null"))
                    if paths is None:
                        _add(places, file.stem, (file, None))
                        continue
                    first = 0
                    for path, length in zip(paths, stored.get_tensor("lengths").tolist(), strict=True):
                        _add(places, Path(path).stem, (file, (first, length)))
                        first += length
            except (SafetensorError, ValueError, TypeError) as error:
                raise InvalidArgumentError(f"{file}: cannot be read as features: {error}") from error
        return cls(places)

    def __contains__(self, video: str) -> bool:
        return video in self.places

    def read(self, video: str) -> FrameFeatures:
        """Read the features of an available video.

        Raises:
            InvalidArgumentError: The file is damaged.
        """
        file, place = self.places[video]
        if isinstance(place, str):
            return _read_hdf5(file, place, video)
        try:
            with safe_open(os.fspath(file), framework="np") as stored:
                names = set(stored.keys())
                first, length = place or (0, stored.get_slice("values").get_shape()[0])
                parts = {
                    name: stored.get_slice(name)[first : first + length]
                    for name in ("values", "timestamps", "information")
                    if name in names
                }
            values = parts["values"].astype(np.float32)
            times = parts.get("timestamps", np.arange(length)).astype(np.float64)
            return FrameFeatures.of_whole(values, times, parts.get("information"))
        except (SafetensorError, KeyError, IndexError, InvalidArgumentError) as error:
            raise InvalidArgumentError(f"{file}: must contain values [T, R, D] of {video}: {error}") from error


def _open_hdf5(file: Path) -> Any:
    """Open an HDF5 file.

    Raises:
        InvalidArgumentError: The file cannot be read.
        MissingPartError: h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingPartError(f"{file}: HDF5 files need h5py; install it with: {install_command('h5py')}") from error
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise InvalidArgumentError(f"{file}: cannot be read as HDF5: {error}") from error


def _names_in(file: Path) -> list[str]:
    """Return the names of the feature data sets in an HDF5 file, at any depth."""
    with _open_hdf5(file) as opened:
        names: list[str] = []
        opened.visititems(lambda name, item: names.append(name) if len(getattr(item, "shape", ())) in (2, 3) else None)
    if not names:
        raise InvalidArgumentError(f"{file}: must contain a data set [T, R, D] or [T, D] for each video")
    return names


def _read_hdf5(file: Path, name: str, video: str) -> FrameFeatures:
    with _open_hdf5(file) as opened:
        try:
            values = np.asarray(opened[name], np.float32)
            values = values[:, None] if values.ndim == 2 else values
            return FrameFeatures.of_whole(values, np.arange(len(values), dtype=np.float64), None)
        except (KeyError, OSError, ValueError, InvalidArgumentError) as error:
            raise InvalidArgumentError(f"{file}: must contain features [T, R, D] of {video}: {error}") from error


def find_videos(folder: Path, ids: Iterable[str]) -> dict[str, Path]:
    """Map IDs to video files in a folder, at any depth; the ID is the name of the file or of its folder."""
    wanted = set(ids)
    files: dict[str, Path] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix.lower() not in VIDEO_EXTENSIONS:
            continue
        for name in (file.stem, file.parent.name):
            if name in wanted and name not in files and file.is_file():
                files[name] = file
                break
    return files


def describe_videos(
    videos: Mapping[str, Path],
    extractor: FrameExtractor,
    folder: Path,
    *,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> tuple[StoredFeatures, dict[str, str]]:
    """Extract features as for an index, but only of full frames, and cache them.

    Args:
        videos: ID -> file.
        extractor: The extractor.
        folder: Folder for the cached features, with a subfolder per extractor and weights.
        on_progress: Callback that receives the number of videos done, the total, and the ID of the next video.

    Returns:
        The features, and ID -> cause for videos that cannot be read.
    """
    cache = folder / "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in extractor.fingerprint)
    cache.mkdir(parents=True, exist_ok=True)
    broken: dict[str, str] = {}
    places: dict[str, FeaturePlace] = {}
    for done, (video, path) in enumerate(videos.items()):
        if on_progress is not None:
            on_progress(done, len(videos), video)
        target = cache / f"{video}.safetensors"
        if not target.is_file():
            try:
                duration = probe(path).duration
                rate = sampling_rate(duration, 1.0)
                parts = describe_file(path, extractor, duration=duration, rate=rate)
                features = FrameFeatures.concatenate(list(parts))
            except (MediaError, InvalidArgumentError) as error:
                broken[video] = str(error)
                continue
            tensors: dict[str, NDArray[np.floating]] = {
                "values": np.ascontiguousarray(features.whole, np.float32),
                "timestamps": features.timestamps.astype(np.float64),
                "information": features.information.astype(np.float32),
            }
            write_bytes(target, save(tensors, {"fingerprint": extractor.fingerprint}))
        places[video] = (target, None)
    return StoredFeatures(places), broken


def _add(places: dict[str, FeaturePlace], video: str, place: FeaturePlace) -> None:
    if video in places:
        raise InvalidArgumentError(
            f"{video} is in both {places[video][0]} and {place[0]}; choose a folder with features from one extractor"
        )
    places[video] = place
