"""Read the frames of a video that a detector uses, as small square images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.errors import MediaError
from vidkin.media import iter_frames
from vidkin.media.frames import earliest, fit_to_square, is_before, is_same_time, latest

if TYPE_CHECKING:
    from vidkin.media.frames import Fit

_BATCH = 16


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """A batch of video frames as square images.

    Attributes:
        images: [n, S, S, 3] uint8 RGB images.
        numbers: [n] int64 frame numbers in the video, counted from 0 in presentation order.
        times: [n] float64 times in seconds.
        read: Number of frames decoded so far.
    """

    images: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    times: NDArray[np.float64]
    read: int


def iter_squares(path: PathLike, *, size: int, fit: Fit = "stretch", rate: float | None = None) -> Iterator[Squares]:
    """Yield frames of a video in batches: all of them, or at most ``rate`` per second.

    As in the learned detector, sample k is the first unused frame at or after k / rate seconds. A video with a lower
    frame rate yields all frames.

    Raises:
        MediaError: The file cannot be read as video.
    """
    read = taken = 0
    for batch in iter_frames(path, rate=None, short_side=size, batch=_BATCH):
        rows = []
        for row, time in enumerate(batch.timestamps.tolist()):
            if rate is None or not is_before(time, taken / rate):
                rows.append(row)
                taken += 1
        numbers = np.array([read + row for row in rows], dtype=np.int64)
        read += len(batch.images)
        if rows:
            images = np.stack([fit_to_square(batch.images[row], size, fit) for row in rows])
            yield Squares(images, numbers, batch.timestamps[rows], read)


@dataclass(frozen=True, eq=False)
class VideoFrames:
    """The frames of a video at a given rate, as a sequence of images that are kept in memory or decoded when needed.

    Attributes:
        path: The video.
        numbers: [T] int64 frame numbers in the video.
        times: [T] float64 times in seconds.
        size: S, side of the images.
        fit: How frames are made square.
        images: [T, S, S, 3] uint8 images; None decodes the frames again for each slice.
    """

    path: Path
    numbers: NDArray[np.int64]
    times: NDArray[np.float64]
    size: int
    fit: Fit
    images: NDArray[np.uint8] | None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """Size in bytes of the images in memory."""
        return 0 if self.images is None else self.images.nbytes

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        """Return images [n, S, S, 3] of consecutive frames.

        Raises:
            MediaError: The images are not kept, and the file can no longer be read or has changed.
        """
        if self.images is not None:
            return self.images[part]
        times = self.times[part]
        if len(times) == 0:
            return np.zeros((0, self.size, self.size, 3), dtype=np.uint8)
        images: list[NDArray[np.uint8]] = []
        frames = iter_frames(
            self.path,
            rate=None,
            start=max(0.0, earliest(float(times[0]))),
            end=latest(float(times[-1])),
            short_side=self.size,
            batch=_BATCH,
        )
        for batch in frames:
            for image, time in zip(batch.images, batch.timestamps.tolist(), strict=True):
                if len(images) < len(times) and is_same_time(time, float(times[len(images)])):
                    images.append(fit_to_square(image, self.size, self.fit))
        if len(images) < len(times):
            raise MediaError(self.path, "has changed since it was first read")
        return np.stack(images)


def read_video_frames(
    path: PathLike,
    *,
    size: int,
    fit: Fit = "stretch",
    rate: float | None = None,
    most_bytes: int | None = None,
) -> tuple[VideoFrames, int]:
    """Read the frames of a video at a given rate; return them with the total number of frames.

    Args:
        path: The video.
        size: S, side of the square images.
        fit: How frames are made square, see `fit_to_square`.
        rate: Maximum frames per second; None reads all frames.
        most_bytes: Maximum size in bytes of images to keep in memory; None for no limit.

    Raises:
        MediaError: The file cannot be read as video.
    """
    images, numbers, times = [], [], []
    used = read = 0
    for squares in iter_squares(path, size=size, fit=fit, rate=rate):
        numbers.append(squares.numbers)
        times.append(squares.times)
        used += squares.images.nbytes
        read = squares.read
        if most_bytes is None or used <= most_bytes:
            images.append(squares.images)
        else:
            images.clear()
    kept = np.concatenate(images) if most_bytes is None or used <= most_bytes else None
    return VideoFrames(Path(path), np.concatenate(numbers), np.concatenate(times), size, fit, kept), read
