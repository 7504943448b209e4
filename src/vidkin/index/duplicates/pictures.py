"""Read frames of a video at given times, and detect bars around the picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.features import bar_boxes
from vidkin.media import iter_frames_at

# Minimum change of a pixel in gray levels, and maximum fraction of changing pixels in a bar, which may have subtitles.
_CHANGE = 48
_MAX_CHANGING = 0.3

# Seconds before the end of a video at which its last frame is certainly on screen, and number of frames per batch.
_BEFORE_END, _BATCH = 0.05, 8


def read_moments(
    path: str, times: NDArray[np.float64], length: float, *, short_side: int
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Read the frames [T, H, W, 3] on screen at these times, without duplicates; return them and their times [T].

    Args:
        path: The file.
        times: Seconds, in any order; times beyond the ends are clipped.
        length: Duration of the file in seconds.
        short_side: Shorter side of the frames in pixels.

    Raises:
        MediaError: The file cannot be read.
    """
    last = max(0.0, length - _BEFORE_END)
    wanted = np.unique(np.round(np.clip(times, 0.0, last), 3)).tolist()
    images: NDArray[np.uint8] = np.empty(0, np.uint8)
    shown: list[float] = []
    for chosen in (wanted, [0.0]):
        # Fill a preallocated array, because concatenating would need twice the memory.
        for batch in iter_frames_at(path, chosen, short_side=short_side, batch=_BATCH, threads=1):
            if not shown:
                images = np.empty((len(chosen), *batch.images.shape[1:]), np.uint8)
            images[len(shown) : len(shown) + len(batch.images)] = batch.images
            shown += batch.timestamps.tolist()
        if shown:
            break
    return images[: len(shown)], np.array(shown)


def find_bars(images: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Return top, bottom, left and right, in pixels, of the content area without bars in frames [T, H, W, 3] of a
    video."""
    # Use the brightest and darkest values over time, so that a dark scene is not mistaken for bars, which never change.
    brightest, darkest = images.max(axis=0), images.min(axis=0)
    height, width = brightest.shape[:2]
    top, bottom, left, right = 0, height, 0, width
    for box in bar_boxes(np.stack([brightest, darkest])).tolist():
        if (box[1] - box[0]) * (box[3] - box[2]) >= (bottom - top) * (right - left):
            continue
        outside = np.ones((height, width), dtype=bool)
        outside[box[0] : box[1], box[2] : box[3]] = False
        # An area that is dark only at some moments is not a bar, but a bar may contain subtitles.
        changes = (brightest[outside] - darkest[outside]).max(axis=-1) > _CHANGE
        if changes.mean() < _MAX_CHANGING:
            top, bottom, left, right = box
    return top, bottom, left, right
