"""Video frames as small squares, decoded once and cached in one file per video, and training windows."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from vidkin._base.files import VIDEO_EXTENSIONS, check_regular_file, open_regular_file, replace_file
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import iter_frames
from vidkin.media.frames import Fit, fit_to_square
from vidkin.training.image_set import find_media

_log = logging.getLogger(__name__)

# Part of the cache key; increment it whenever the squares of a file would change.
_REVISION = 2

_MIN_FRAMES = 4


@dataclass(frozen=True, slots=True, eq=False)
class VideoSquares:
    """Frames of a video, resized to squares.

    Attributes:
        path: Path of the video.
        count: T, number of frames.
        key: Hash of the content and the settings used to read it.
        file: Safetensors file with the squares; None if they are in ``values``.
        values: [T, 3, side, side] uint8 squares; None if they are in ``file``.
    """

    path: str
    count: int
    key: str
    file: Path | None
    values: torch.Tensor | None = None

    def read(self, start: int, stop: int) -> torch.Tensor:
        """Read frames [start, stop) as [n, 3, side, side] uint8."""
        if self.values is not None:
            return self.values[start:stop]
        assert self.file is not None
        with safe_open(os.fspath(self.file), framework="pt") as file:
            frames: torch.Tensor = file.get_slice("frames")[start:stop]
        return frames


def read_squares(
    folders: Sequence[Path],
    *,
    rate: float,
    side: int,
    fit: Fit = "stretch",
    cache: Path | None,
    on_video: Callable[[int, int], None] | None = None,
) -> tuple[list[VideoSquares], list[tuple[str, str]]]:
    """Read all videos in the folders as squares, in a fixed order; also return (file, cause) for each unusable video.

    Args:
        folders: Folders or single files.
        rate: Frames per second.
        side: Side of the squares in pixels.
        fit: How frames are made square, see :func:`vidkin.media.frames.fit_to_square`.
        cache: Folder for one cache file per video; None keeps all squares in memory.
        on_video: Callback that receives (videos done, total number of videos) after each video.

    Raises:
        DatasetError: A folder does not exist, or fewer than two videos can be used.
    """
    paths = [file.path for file in find_media(folders) if file.path.suffix.lower() in VIDEO_EXTENSIONS]
    videos: list[VideoSquares] = []
    broken: list[tuple[str, str]] = []
    for done, path in enumerate(paths, 1):
        try:
            video = _read(path, rate, side, fit, cache)
        except MediaError as error:
            broken.append((str(path), error.cause))
        else:
            if video.count >= _MIN_FRAMES:
                videos.append(video)
            else:
                cause = f"must have at least {_MIN_FRAMES} frames at {rate:g} per second, got {video.count}"
                broken.append((str(path), cause))
        if on_video is not None:
            on_video(done, len(paths))
    if len(videos) < 2:
        first = f"; the first unusable one is {': '.join(broken[0])}" if broken else ""
        raise DatasetError(
            f"{', '.join(map(str, folders))}: must contain at least 2 videos with {_MIN_FRAMES} frames at {rate:g} per "
            f"second (data.options.rate), got {len(videos)} of {len(paths)} videos{first}"
        )
    return videos, broken


def cache_tensors(path: Path | None, make: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Load tensors from a cache file, or compute and store them if the file is missing or damaged.

    Args:
        path: Path of the file; None disables the cache.
        make: Function that computes the tensors.
    """
    if path is not None and path.is_file():
        try:
            check_regular_file(path)
            return load_file(path)
        except (OSError, SafetensorError) as error:
            _log.warning("%s is damaged and will be rebuilt: %s", path, error)
    tensors = make()
    if path is not None:
        _store(path, tensors)
    return tensors


def _read(path: Path, rate: float, side: int, fit: Fit, cache: Path | None) -> VideoSquares:
    # The key includes a hash of the content, so that the cache stays valid if videos are moved or copied.
    try:
        with open_regular_file(path) as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise MediaError(path, f"cannot be read: {error.strerror or error}", temporary=True) from error
    facts: list[object] = [_REVISION, content, rate, side]
    facts += [] if fit == "stretch" else [fit]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    if cache is None:
        values = _decode(path, rate, side, fit)
        return VideoSquares(str(path), len(values), key, None, values)
    file = cache / f"{key}.safetensors"
    count = _stored_count(file)
    if count is None:
        values = _decode(path, rate, side, fit)
        _store(file, {"frames": values})
        count = len(values)
    return VideoSquares(str(path), count, key, file)


def _stored_count(path: Path) -> int | None:
    """Return the number of frames in a file of squares; None if the file is missing or damaged."""
    if not path.is_file():
        return None
    try:
        check_regular_file(path)
        with safe_open(os.fspath(path), framework="pt") as file:
            return int(file.get_slice("frames").get_shape()[0])
    except (OSError, SafetensorError) as error:
        _log.warning("%s is damaged; reading the video again: %s", path, error)
        return None


def _store(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary)
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"{path.parent}: cannot be written: {error}") from error


def _decode(path: Path, rate: float, side: int, fit: Fit) -> torch.Tensor:
    squares = [
        torch.from_numpy(fit_to_square(image, side, fit).copy()).permute(2, 0, 1)
        for frames in iter_frames(path, rate=rate, short_side=2 * side, threads=1)
        for image in frames.images
    ]
    return torch.stack(squares)


@dataclass(frozen=True, slots=True)
class Window:
    """Frames [start, stop) of a video.

    Attributes:
        number: Index of this window among all windows.
        video: Index of the video.
        start: First frame.
        stop: First frame after the window.
    """

    number: int
    video: int
    start: int
    stop: int


def cut_windows(videos: Sequence[VideoSquares], frames: int) -> list[Window]:
    """Split every video into windows of equal length, about ``frames``; a shorter video becomes a single window."""
    windows: list[Window] = []
    for number, video in enumerate(videos):
        parts = max(1, round(video.count / frames))
        edges = [round(position * video.count / parts) for position in range(parts + 1)]
        for start, stop in pairwise(edges):
            windows.append(Window(len(windows), number, start, stop))
    return windows


def split_windows(
    windows: Sequence[Window], *, share: float, seed: int
) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """Split windows into (training, validation); all windows of a video are in the same split.

    Args:
        windows: All windows.
        share: Fraction of the videos for validation, in (0, 1).
        seed: Seed for the random choice.

    Returns:
        The two splits; validation is empty if either split would have fewer than two videos.
    """
    videos = sorted({window.video for window in windows})
    count = round(share * len(videos))
    if min(count, len(videos) - count) < 2:
        return tuple(windows), ()
    order = torch.randperm(len(videos), generator=torch.Generator().manual_seed(seed))
    held = {videos[position] for position in order[:count].tolist()}
    return (
        tuple(window for window in windows if window.video not in held),
        tuple(window for window in windows if window.video in held),
    )
