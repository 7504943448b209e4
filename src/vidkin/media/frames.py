"""Decoded frames with their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

__all__ = ["LUMINANCE", "Frames"]

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
