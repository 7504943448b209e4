"""Decoded frames with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from PIL import Image

LUMINANCE = (0.299, 0.587, 0.114)

"""Shares of red, green and blue in the luminance (ITU-R BT.601), as codecs and image tools use them."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one video in the order of their times.

    Attributes:
        images: [T, H, W, 3] uint8 RGB, upright and with square pixels.
        timestamps: [T] float64, presentation time of each frame in seconds from the start of the file's
            video (the first frame of every file is at 0.0 or later), strictly increasing.
    """

    images: NDArray[np.uint8]
    timestamps: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.images.shape[-1] != 3 or self.images.dtype != np.uint8:
            raise InvalidArgumentError(
                f"images must be [T, H, W, 3] uint8, got {list(self.images.shape)} {self.images.dtype}"
            )
        if self.timestamps.shape != self.images.shape[:1]:
            raise InvalidArgumentError(
                f"timestamps must be one per image, [{len(self.images)}], got {list(self.timestamps.shape)}"
            )
        if len(self.timestamps) > 1 and not bool(np.all(np.diff(self.timestamps) > 0)):
            raise InvalidArgumentError("timestamps must be strictly increasing")

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        span = f"{self.timestamps[0]:.3f}..{self.timestamps[-1]:.3f} s" if len(self) else "empty"
        return f"Frames(images={list(self.images.shape)}, timestamps={span})"

    def __getitem__(self, item: Any) -> Frames:
        """Frames selected by a slice, or by an index array in increasing order."""
        return Frames(self.images[item], self.timestamps[item])


def join_frames(parts: Sequence[Frames]) -> Frames:
    """Consecutive batches of one video, at least one, as one; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    return Frames(np.concatenate([part.images for part in parts]), np.concatenate([part.timestamps for part in parts]))


class EvenFrames:
    """Some of the frames that pass by, evenly spread, however many there are.

    Args:
        most: So many are never reached; half as many or more are kept if so many passed.

    Attributes:
        kept: The frames, one in each.
    """

    def __init__(self, most: int) -> None:
        self.kept: list[Frames] = []
        self._most, self._stride, self._passed = most, 1, 0

    def add(self, frames: Frames) -> None:
        """Keep every so many of these frames, and fewer of those before once there are enough."""
        for image, time in zip(frames.images, frames.timestamps, strict=True):
            if self._passed % self._stride == 0:
                self.kept.append(Frames(image[None].copy(), np.array([time])))
            if len(self.kept) == self._most:
                self.kept, self._stride = self.kept[::2], 2 * self._stride
            self._passed += 1


# Images of any shape as squares, for networks.


Fit = Literal["letterbox", "crop", "stretch"]


def fit_to_square(image: Image.Image | NDArray[np.uint8], size: int, fit: Fit) -> NDArray[np.uint8]:
    """An RGB image as a square [size, size, 3]: with black bars, its middle, or squeezed.

    Training and search share these steps, so that search sees the same images as training.

    Args:
        image: RGB image of any shape; an array [H, W, 3] that already is such a square is returned unchanged.
        size: Side of the square in pixels.
        fit: ``letterbox``, ``crop`` or ``stretch``.
    """
    from PIL import Image

    if not isinstance(image, Image.Image):
        if image.shape[:2] == (size, size):
            return image
        image = Image.fromarray(np.ascontiguousarray(image))
    width, height = image.size
    if fit == "crop" and width != height:
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    inner = (size, size)
    if fit == "letterbox":
        scale = size / max(width, height)
        inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    if image.size != inner:
        image = image.resize(inner, Image.Resampling.BILINEAR)
    if inner != (size, size):
        square = Image.new("RGB", (size, size))
        square.paste(image, ((size - inner[0]) // 2, (size - inner[1]) // 2))
        image = square
    return np.asarray(image)
