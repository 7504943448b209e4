"""An extractor of your own: each picture as the brightness of 8 x 8 parts, without a network.

In the ``pyproject.toml`` of your package::

    [project.entry-points."vidkin.extractors"]
    gray-grid = "gray_grid:open_gray_grid"

Then ``vidkin index ~/Videos --index gray.vidkin --extractor gray-grid``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.features import features_of_views
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures

_PARTS = 8


class GrayGrid:
    """Brightness of the parts of a picture, less its mean, as one unit vector."""

    # Changes whenever the same picture would get other values: an index refuses to mix them.
    fingerprint = "gray-grid-1"
    # What its scores tell: copies of the same footage. Others are "kinds" and "learned".
    scorer = "copies"
    # Whether rectangles that are found in frames are described, too.
    describes_boxes = False
    # Pixels of the shorter side of the frames it gets.
    short_side = 64

    def __init__(self, name: str) -> None:
        self.name = name

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames, or boxes in them."""
        return features_of_views(self._describe, frames, self.fingerprint, boxes=boxes)

    def _describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Vectors [T, 1, 64] of pictures [T, H, W, 3]."""
        gray = images.mean(axis=3, dtype=np.float32)
        rows = [row for band in np.array_split(gray, _PARTS, axis=1) for row in np.array_split(band, _PARTS, axis=2)]
        grid = np.stack([part.mean(axis=(1, 2)) for part in rows], axis=1)
        grid -= grid.mean(axis=1, keepdims=True)
        return (grid / np.maximum(np.linalg.norm(grid, axis=1, keepdims=True), 1e-6))[:, None]


def open_gray_grid(name: str, *, weights: Any, whitening: Any, device: str) -> GrayGrid:
    """Open the extractor, as the entry point; it has no weights."""
    return GrayGrid(name)
