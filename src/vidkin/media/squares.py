"""Images of any shape as squares, for networks."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["Fit", "fit_to_square"]

Fit = Literal["letterbox", "crop", "stretch"]


def fit_to_square(image: Image.Image | NDArray[np.uint8], size: int, fit: Fit) -> NDArray[np.uint8]:
    """An RGB image as a square [size, size, 3]: with black bars, its middle, or squeezed.

    Training and search share these steps, so that search sees the same images as training.

    Args:
        image: RGB image of any shape; an array [H, W, 3] that already is such a square is returned unchanged.
        size: Side of the square in pixels.
        fit: ``letterbox``, ``crop`` or ``stretch``.
    """
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
