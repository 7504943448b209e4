"""One image, or some frames of a video, as squares; a frame can have a neighbor, another frame of the same moment."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vidkin._base.extensions import VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import iter_frames, probe, read_frames
from vidkin.media.time import SAME_TIME, is_same_time

__all__ = ["ImageSettings", "Square", "read_squares", "to_square"]

Square = NDArray[np.uint8]
"""Pixels [side, side, 3] uint8 RGB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """How images become squares.

    Attributes:
        side: Side of the squares in pixels. The whole image is squeezed into the square, as views of frames are.
        frames_per_video: Number of frames taken from each video, evenly spaced over its length.
        neighbor_seconds: The edited view of a frame of a video shows another frame of the video, up to this many
            seconds earlier or later; 0 makes both views from the same frame. Images are edited themselves.
    """

    side: int = 96
    frames_per_video: int = 4
    neighbor_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.side < 1 or self.frames_per_video < 1:
            raise InvalidArgumentError(f"side and frames_per_video must be at least 1, got {self}")
        if not 0 <= self.neighbor_seconds < math.inf:
            raise InvalidArgumentError(
                f"neighbor_seconds must be a number of seconds from 0 on, got {self.neighbor_seconds}"
            )


def read_squares(path: Path, settings: ImageSettings) -> list[tuple[Square, Square | None]]:
    """The square of an image, or the squares of frames from the middles of equal parts of a video.

    Each comes with its neighbor: a frame drawn among all others of the video up to ``neighbor_seconds`` before or
    after, by their timestamps. The draw depends only on the file's name and the place of the frame. None: there is no
    such frame, or it cannot be read.
    """
    side = settings.side
    if path.suffix.lower() in VIDEO_EXTENSIONS:
        duration = max(probe(path).duration, 1e-3)
        step = duration / settings.frames_per_video
        frames = read_frames(
            path, rate=1.0 / step, start=step / 2, end=duration, short_side=2 * side, threads=1
        )
        squares = [to_square(Image.fromarray(image), side) for image in frames.images]
        if not settings.neighbor_seconds:
            return [(square, None) for square in squares]
        times = frames.timestamps.tolist()
        return [
            (
                square,
                _read_neighbor(
                    path, time, np.random.default_rng([position, *os.fsencode(path.name)]), settings
                ),
            )
            for position, (square, time) in enumerate(zip(squares, times, strict=True))
        ]
    with warnings.catch_warnings(action="ignore"), Image.open(path) as image:
        # JPEG can be decoded at a fraction of its size; twice the side is decoded for a good reduction.
        image.draft("RGB", (2 * side, 2 * side))
        return [(to_square(ImageOps.exif_transpose(image).convert("RGB"), side), None)]


def _read_neighbor(
    path: Path, time: float, random: np.random.Generator, settings: ImageSettings
) -> Square | None:
    reach = settings.neighbor_seconds + SAME_TIME
    neighbor = None
    others = 0
    try:
        for frames in iter_frames(
            path,
            rate=None,
            start=max(time - reach, 0.0),
            end=time + reach,
            short_side=2 * settings.side,
            threads=1,
            # Reading the frames themselves reported it.
            on_damage=lambda _: None,
        ):
            for image, other in zip(frames.images, frames.timestamps.tolist(), strict=True):
                if is_same_time(other, time):
                    continue
                # Each of n frames remains with probability 1 / n, without knowing n before.
                others += 1
                if random.integers(others) == 0:
                    neighbor = image
    except (MediaError, OSError):
        # The frame itself was read, and is worth keeping without a neighbor.
        return None
    return None if neighbor is None else to_square(Image.fromarray(neighbor), settings.side)


def to_square(image: Image.Image, side: int) -> Square:
    """Squeeze the whole image into a square [side, side, 3]."""
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))
