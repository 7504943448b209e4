"""How much of the picture two files share: crops, insets and split screens.

A crop can be removed if what it was cut from stays. A film and a split screen that has it in one quarter must both
stay: the one is sharper, the other shows more.
"""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vidkin.features import bar_boxes
from vidkin.media import iter_frames_at, read_frames

SHOWS_MORE = "shows more of the picture"
"""What would be lost where a part of a picture is all that another file shows."""


"""A box with at least this share of the content is all of it: boxes of parts are on a coarse grid."""


"""A file is sharper if it has this many times the pixels of the same part."""


# Pictures of a file at given times, cropped to their content: no bars, no blurred borders.


# Gray levels by which a pixel changes, and the share of a bar that may change because of subtitles.
_CHANGE = 48

_MOST_CHANGES = 0.3

# Seconds before the end of a video at which its last frame is certainly on screen, and frames decoded at a time.
_BEFORE_END, _BATCH = 0.05, 8


def turned_images(images: NDArray[np.uint8], degrees: int) -> NDArray[np.uint8]:
    """Pictures [..., H, W, 3] turned clockwise by 0, 90, 180 or 270 degrees."""
    return np.rot90(images, -degrees // 90, axes=(-3, -2)) if degrees else images


def read_moments(
    path: str, times: NDArray[np.float64], length: float, *, short_side: int
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Read the frames [T, H, W, 3] on screen at these times, and their own times [T]; each once.

    Args:
        path: The file.
        times: Seconds, in any order; those beyond the ends count as the ends.
        length: Duration of the file in seconds.
        short_side: Pixels at the shorter side.

    Raises:
        MediaError: The file cannot be read.
    """
    last = max(0.0, length - _BEFORE_END)
    wanted = np.unique(np.round(np.clip(times, 0.0, last), 3)).tolist()
    images: NDArray[np.uint8] = np.empty(0, np.uint8)
    shown: list[float] = []
    for chosen in (wanted, [0.0]):
        # Straight into their places: joined at the end, they would be held twice.
        for batch in iter_frames_at(path, chosen, short_side=short_side, batch=_BATCH, threads=1):
            if not shown:
                images = np.empty((len(chosen), *batch.images.shape[1:]), np.uint8)
            images[len(shown) : len(shown) + len(batch.images)] = batch.images
            shown += batch.timestamps.tolist()
        if shown:
            break
    return images[: len(shown)], np.array(shown)


def read_stretch(
    path: str, start: float, end: float, *, rate: float, short_side: int, mirrored: bool = False
) -> NDArray[np.uint8]:
    """Read pictures [T, H, W, 3] of a stretch of a video.

    Args:
        path: The file.
        start, end: Seconds.
        rate: Pictures a second.
        short_side: Pixels at the shorter side.
        mirrored: Flip them left to right.

    Raises:
        MediaError: The file cannot be read.
    """
    status = os.stat(path)
    images = _held_stretch(path, (status.st_size, status.st_mtime_ns), start, end, rate, short_side)
    return images[:, :, ::-1] if mirrored else images


@lru_cache(maxsize=4)
def _held_stretch(
    path: str, identity: tuple[int, int], start: float, end: float, rate: float, short_side: int
) -> NDArray[np.uint8]:
    """The pictures of a stretch; the copies of one video are compared with it one after another."""
    images: NDArray[np.uint8] = read_frames(
        path, rate=rate, start=start, end=end, short_side=short_side, threads=1
    ).images
    images.flags.writeable = False
    return images


def cut_bars(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Crop the bars off pictures [T, H, W, 3] of one video."""
    top, bottom, left, right = find_bars(images)
    return images[:, top:bottom, left:right]


def find_bars(images: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of what is between the bars of pictures [T, H, W, 3] of one video, in pixels."""
    # Use the brightest and darkest values over time: bars never change, and a dark scene cannot pass for one.
    brightest, darkest = images.max(axis=0), images.min(axis=0)
    height, width = brightest.shape[:2]
    top, bottom, left, right = 0, height, 0, width
    for box in bar_boxes(np.stack([brightest, darkest])).tolist():
        if (box[1] - box[0]) * (box[3] - box[2]) >= (bottom - top) * (right - left):
            continue
        outside = np.ones((height, width), dtype=bool)
        outside[box[0] : box[1], box[2] : box[3]] = False
        # What is dark only at some moments is not a bar; a bar may have subtitles.
        changes = (brightest[outside] - darkest[outside]).max(axis=-1) > _CHANGE
        if changes.mean() < _MOST_CHANGES:
            top, bottom, left, right = box
    return top, bottom, left, right
