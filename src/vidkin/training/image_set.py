"""Images and video frames as small squares for unsupervised training, optionally with neighboring frames."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import Dataset

from vidkin._base.arguments import check_constructor
from vidkin._base.files import (
    IMAGE_EXTENSIONS,
    VIDEO_EXTENSIONS,
    check_regular_file,
    open_regular_file,
    replace_file,
)
from vidkin._base.values import parse_json
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import iter_frames, probe, read_frames
from vidkin.media.frames import earliest, is_same_time, latest

Square = NDArray[np.uint8]

"""Pixels [side, side, 3] uint8 RGB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """How images are converted to squares.

    Attributes:
        side: Side of the squares in pixels. The whole image is resized to a square, like views of frames.
        frames_per_video: Number of frames to take from each video, evenly spaced.
        neighbor_seconds: The edited view of a video frame is created from another frame of the video, at most this many
            seconds earlier or later; 0 creates both views from the same frame. Images have no neighbors.
    """

    side: int = 96
    frames_per_video: int = 4
    neighbor_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.side < 1 or self.frames_per_video < 1:
            raise InvalidArgumentError(f"side and frames_per_video must be at least 1, got {self}")
        if not 0 <= self.neighbor_seconds < math.inf:
            raise InvalidArgumentError(f"neighbor_seconds must be a number of at least 0, got {self.neighbor_seconds}")


def read_squares(path: Path, settings: ImageSettings) -> list[tuple[Square, Square | None]]:
    """Read the square of an image, or the squares of the middle frames of equal parts of a video.

    Each square comes with its neighbor: a random frame among all other frames of the video that are at most
    ``neighbor_seconds`` earlier or later. The choice depends only on the file name and the index of the frame. The
    neighbor is None if there is no such frame or it cannot be read.
    """
    side = settings.side
    if path.suffix.lower() in VIDEO_EXTENSIONS:
        duration = max(probe(path).duration, 1e-3)
        step = duration / settings.frames_per_video
        frames = read_frames(path, rate=1.0 / step, start=step / 2, end=duration, short_side=2 * side, threads=1)
        squares = [to_square(Image.fromarray(image), side) for image in frames.images]
        if not settings.neighbor_seconds:
            return [(square, None) for square in squares]
        times = frames.timestamps.tolist()
        return [
            (
                square,
                _read_neighbor(path, time, np.random.default_rng([position, *os.fsencode(path.name)]), settings),
            )
            for position, (square, time) in enumerate(zip(squares, times, strict=True))
        ]
    with warnings.catch_warnings(action="ignore"), open_regular_file(path) as file, Image.open(file) as image:
        # Decode JPEG files at reduced size; twice the side is enough for good downscaling.
        image.draft("RGB", (2 * side, 2 * side))
        return [(to_square(ImageOps.exif_transpose(image).convert("RGB"), side), None)]


def _read_neighbor(path: Path, time: float, random: np.random.Generator, settings: ImageSettings) -> Square | None:
    neighbor = None
    others = 0
    try:
        for frames in iter_frames(
            path,
            rate=None,
            start=max(earliest(time - settings.neighbor_seconds), 0.0),
            end=latest(time + settings.neighbor_seconds),
            short_side=2 * settings.side,
            threads=1,
            # Already reported when the frames themselves were read.
            on_damage=lambda _: None,
        ):
            for image, other in zip(frames.images, frames.timestamps.tolist(), strict=True):
                if is_same_time(other, time):
                    continue
                # Reservoir sampling: select each of n frames with probability 1 / n, without knowing n in advance.
                others += 1
                if random.integers(others) == 0:
                    neighbor = image
    except (MediaError, OSError):
        # The frame itself is readable, so keep it without a neighbor.
        return None
    return None if neighbor is None else to_square(Image.fromarray(neighbor), settings.side)


def to_square(image: Image.Image, side: int) -> Square:
    """Resize the whole image to a square [side, side, 3], ignoring its aspect ratio."""
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))


@check_constructor
@dataclass(frozen=True, eq=False)
class FrameNeighbors:
    """Neighbors of M out of N images; images without a neighbor take up no memory.

    Attributes:
        squares: [M, 3, side, side] uint8 RGB.
        positions: [N] int64, index of each image's neighbor in ``squares``; -1 for an image without a neighbor.

    Raises:
        InvalidArgumentError: A position is out of range.
    """

    squares: Tensor
    positions: Tensor

    def __post_init__(self) -> None:
        if self.squares.ndim != 4 or self.positions.ndim != 1:
            raise InvalidArgumentError(
                "squares must be [M, 3, side, side] and positions [N], got "
                f"{tuple(self.squares.shape)} and {tuple(self.positions.shape)}"
            )
        if bool((self.positions >= len(self.squares)).any() or (self.positions < -1).any()):
            raise InvalidArgumentError(
                f"positions must be at least -1 and below {len(self.squares)}, the number of neighbors, "
                f"got {self.positions.min()} to {self.positions.max()}"
            )

    def of(self, images: Tensor, indices: Tensor) -> Tensor:
        """Return the neighbors [n, 3, side, side] of images by index, or the image itself if it has no neighbor."""
        chosen, positions = images[indices], self.positions[indices]
        chosen[positions >= 0] = self.squares[positions[positions >= 0]]
        return chosen

    def select(self, indices: Tensor) -> FrameNeighbors:
        """Select the neighbors of the images with these indices, in the given order."""
        positions = self.positions[indices]
        squares = self.squares[positions[positions >= 0]]
        positions[positions >= 0] = torch.arange(len(squares))
        return FrameNeighbors(squares, positions)


_log = logging.getLogger(__name__)

OnFile = Callable[[int, int], None]

# Part of the cache key; increment it whenever the squares of a file would change.
_REVISION = 1


@dataclass(frozen=True, slots=True)
class BrokenImage:
    """A file that cannot be read, and the cause."""

    path: str
    cause: str


@check_constructor
class ImageSet(Dataset[torch.Tensor]):
    """Squares [N, 3, side, side] uint8, each with its group and optionally a neighboring frame of the same video.

    Attributes:
        images: [N, 3, side, side] uint8 RGB.
        groups: [N] int64, group of each square: all images in a folder, or all frames of a video, form a group.
        group_names: Folder or video of each group, relative to the parent of the input folder.
        sources: [N] int64, input folder of each square.
        source_names: Last two parts of each input folder's path, such as ``flowers/train``.
        broken: Files that could not be read.
        neighbors: Neighbors of video frames; None if no image has a neighbor.

    Raises:
        InvalidArgumentError: The shapes of the tensors do not match.
    """

    def __init__(
        self,
        images: torch.Tensor,
        groups: torch.Tensor,
        group_names: Sequence[str],
        sources: torch.Tensor,
        source_names: Sequence[str],
        broken: Sequence[BrokenImage] = (),
        neighbors: FrameNeighbors | None = None,
    ) -> None:
        if images.ndim != 4 or images.shape[1] != 3 or images.dtype != torch.uint8:
            raise InvalidArgumentError(
                f"images must be [N, 3, side, side] uint8, got {list(images.shape)} {images.dtype}"
            )
        for name, values in (("groups", groups), ("sources", sources)):
            if values.shape != images.shape[:1]:
                raise InvalidArgumentError(f"{name} must be [{len(images)}], got {list(values.shape)}")
        if neighbors is not None and (
            neighbors.positions.shape != images.shape[:1] or neighbors.squares.shape[1:] != images.shape[1:]
        ):
            raise InvalidArgumentError(
                f"neighbors must belong to the {len(images)} images of shape {list(images.shape[1:])}, "
                f"got neighbors of {len(neighbors.positions)} images of shape {list(neighbors.squares.shape[1:])}"
            )
        self.images = images
        self.groups = groups
        self.group_names = tuple(group_names)
        self.sources = sources
        self.source_names = tuple(source_names)
        self.broken = tuple(broken)
        self.neighbors = neighbors

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.images[index]

    def counts(self) -> dict[str, int]:
        """Return the number of images from each input folder, for a model's provenance; neighbors are not counted."""
        sizes = torch.bincount(self.sources, minlength=len(self.source_names)).tolist()
        counts: dict[str, int] = {}
        for name, size in zip(self.source_names, sizes, strict=True):
            counts[name] = counts.get(name, 0) + size
        return counts

    def select(self, indices: torch.Tensor) -> ImageSet:
        """Select the squares with these indices, in the given order."""
        return ImageSet(
            self.images[indices],
            self.groups[indices],
            self.group_names,
            self.sources[indices],
            self.source_names,
            self.broken,
            None if self.neighbors is None else self.neighbors.select(indices),
        )

    def save(self, path: str | os.PathLike[str], key: str = "") -> None:
        """Write the set to a safetensors file."""
        notes = {
            "key": key,
            "group_names": json.dumps(self.group_names),
            "source_names": json.dumps(self.source_names),
            "broken": json.dumps([asdict(file) for file in self.broken]),
        }
        tensors = {"images": self.images, "groups": self.groups, "sources": self.sources}
        if self.neighbors is not None:
            tensors |= {"neighbors": self.neighbors.squares, "neighbor_places": self.neighbors.positions}
        with replace_file(path) as temporary:
            save_file(tensors, temporary, notes)

    @classmethod
    def load(cls, path: str | os.PathLike[str], key: str | None = None) -> ImageSet:
        """Load a set written by `save`.

        Raises:
            DatasetError: The file cannot be read, or has a different key.
        """
        try:
            check_regular_file(path)
            with safe_open(path, "pt") as file:
                notes = file.metadata() or {}
                if key is not None and notes.get("key") != key:
                    raise DatasetError(f"{path}: created from other files or settings; delete it to read them again")
                images, groups, sources = (file.get_tensor(name) for name in ("images", "groups", "sources"))
                neighbors = None
                if "neighbors" in set(file.keys()):
                    neighbors = FrameNeighbors(file.get_tensor("neighbors"), file.get_tensor("neighbor_places"))
            broken = [BrokenImage(**entry) for entry in parse_json(notes.get("broken", "[]"))]
            group_names, source_names = (parse_json(notes.get(name, "[]")) for name in ("group_names", "source_names"))
        except (OSError, SafetensorError, ValueError, TypeError) as error:
            raise DatasetError(f"{path}: {error}; delete it to read the images again") from error
        return cls(images, groups, group_names, sources, source_names, broken, neighbors)


def read_images(
    folders: Iterable[str | os.PathLike[str]],
    settings: ImageSettings | None = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    on_file: OnFile | None = None,
) -> ImageSet:
    """Read all images and several frames of all videos in the folders, in a fixed order.

    Images are rotated according to their EXIF data. Unreadable files do not raise an error, but are listed in
    ``broken`` of the result.

    Args:
        folders: Folders or single files.
        settings: Side of the squares, frames per video, and distance of their neighbors.
        cache: Cache file for the squares. It is used as long as the files (name, size, modification time) and settings
            are unchanged, and rewritten otherwise.
        on_file: Callback that receives (files done, total number of files) after each file.

    Raises:
        DatasetError: A folder does not exist, or no image was found.
    """
    settings = settings or ImageSettings()
    roots = [Path(folder) for folder in folders]
    files = find_media(roots)
    # The key depends on all files and settings. If neighbors are not used, their setting is omitted, so that caches
    # from before neighbors were introduced remain valid.
    values = asdict(settings)
    if not settings.neighbor_seconds:
        del values["neighbor_seconds"]
    entries: list[Any] = [_REVISION, values]
    for file in files:
        state = file.path.stat()
        entries.append([str(file.path), file.group, file.source, state.st_size, state.st_mtime_ns])
    key = hashlib.sha256(json.dumps(entries).encode()).hexdigest()
    if cache is not None and os.path.exists(cache):
        try:
            return ImageSet.load(cache, key)
        except DatasetError as error:
            # An outdated or damaged cache is not an error, because the images can be read again.
            _log.warning("reading all images again: %s", error)
    images = _read_all(files, roots, settings, on_file)
    if cache is not None:
        images.save(cache, key)
    return images


@dataclass(frozen=True, slots=True)
class MediaFile:
    """An image or video with its group and the index of its input folder."""

    path: Path
    group: str
    source: int


def _read_all(
    files: Sequence[MediaFile], roots: Sequence[Path], settings: ImageSettings, on_file: OnFile | None
) -> ImageSet:
    squares: list[Square] = []
    neighbors: list[Square] = []
    positions: list[int] = []
    groups: list[int] = []
    sources: list[int] = []
    numbers: dict[tuple[int, str], int] = {}
    broken: list[BrokenImage] = []
    for done, file in enumerate(files, 1):
        try:
            read = read_squares(file.path, settings)
        # Pillow raises any of these for damaged files.
        except (MediaError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            broken.append(BrokenImage(str(file.path), cause))
        else:
            number = numbers.setdefault((file.source, file.group), len(numbers))
            for square, neighbor in read:
                squares.append(square)
                positions.append(-1 if neighbor is None else len(neighbors))
                neighbors += [] if neighbor is None else [neighbor]
            groups.extend([number] * len(read))
            sources.extend([file.source] * len(read))
        if on_file is not None:
            on_file(done, len(files))
    if not squares:
        raise DatasetError(f"no image could be read: found {len(files)} files, {len(broken)} of them unreadable")
    return ImageSet(
        _stack(squares),
        torch.tensor(groups),
        [group for _, group in numbers],
        torch.tensor(sources),
        ["/".join(root.absolute().parts[-2:]) for root in roots],
        broken,
        FrameNeighbors(_stack(neighbors), torch.tensor(positions)) if neighbors else None,
    )


def _stack(squares: Sequence[Square]) -> torch.Tensor:
    return torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2).contiguous()


def find_media(roots: Iterable[Path]) -> list[MediaFile]:
    """Find all images and videos in the folders, ordered by folder and then by name.

    Raises:
        DatasetError: A folder does not exist.
    """
    files = []
    for source, root in enumerate(roots):
        if not root.exists():
            raise DatasetError(f"{root}: does not exist; choose a folder of images or videos")
        paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
        for path in paths:
            kind = path.suffix.lower()
            if kind in IMAGE_EXTENSIONS:
                files.append(MediaFile(path, path.parent.relative_to(root.parent).as_posix(), source))
            elif kind in VIDEO_EXTENSIONS:
                files.append(MediaFile(path, path.relative_to(root.parent).as_posix(), source))
    return files
