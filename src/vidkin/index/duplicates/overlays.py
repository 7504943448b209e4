"""What only one of two copies has: a logo, a caption, colors.

Shapes: T pairs of frames; H, W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["colorfulness", "find_overlay", "measure_edges"]

_CANVAS = (192, 256)
_BLOCK = 8
# A block differs if its mean difference is at least this many gray levels and this many times the median.
_LEAST_DIFFERENCE, _TIMES_USUAL = 6.0, 3.0
# Share of the frames in which a block must differ, and shares of the picture that an overlay may take.
_LASTING = 0.6
_SMALLEST, _LARGEST = 0.004, 0.4
# How much stronger the edges of the copy with the overlay are there.
_MORE_EDGES = 1.2


def find_overlay(
    first: Sequence[NDArray[np.uint8]], second: Sequence[NDArray[np.uint8]]
) -> Literal["first", "second"] | None:
    """Find which of two copies has an overlay that the other one lacks.

    The pictures are resized and matched in brightness. Blocks that differ in most frames, far more than the rest, are
    an overlay of the copy that has more edges there.

    Args:
        first: T pictures [H, W, 3], without bars.
        second: The same moments of the other copy.
    """
    ones, others = [_canvas(image) for image in first], [_canvas(image) for image in second]
    differing, edges = [], []
    for one, other in zip(ones, others, strict=True):
        difference = _block_means(np.abs(one - _fitted(other, one)))
        usual = float(np.median(difference))
        differing.append(difference > max(_LEAST_DIFFERENCE, _TIMES_USUAL * usual))
        edges.append((_block_means(measure_edges(one)), _block_means(measure_edges(_fitted(other, one)))))
    lasting = np.mean(differing, axis=0) >= _LASTING
    # Copies are seldom cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    if not _SMALLEST <= float(lasting.mean()) <= _LARGEST:
        return None
    one_edges, other_edges = (float(np.mean([pair[side][lasting] for pair in edges])) for side in (0, 1))
    if one_edges > _MORE_EDGES * other_edges:
        return "first"
    return "second" if other_edges > _MORE_EDGES * one_edges else None


def colorfulness(images: Sequence[NDArray[np.uint8]]) -> float:
    """Mean distance of pixels from gray, in gray levels; about 0 for a black and white copy."""
    spreads = [float((image.max(axis=-1) - image.min(axis=-1)).mean()) for image in images]
    return sum(spreads) / len(spreads)


def _canvas(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    from PIL import Image

    small = Image.fromarray(image).convert("L").resize(_CANVAS[::-1], Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)


def _fitted(image: NDArray[np.float32], like: NDArray[np.float32]) -> NDArray[np.float32]:
    """Match the brightness and contrast of a picture to another one."""
    deviation = float(image.std())
    gain = (
        float(((image - image.mean()) * (like - like.mean())).mean()) / deviation**2 if deviation > 1 else 1.0
    )
    return np.asarray((image - image.mean()) * max(gain, 0.1) + like.mean(), dtype=np.float32)


def _block_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = values.shape
    blocks = values.reshape(height // _BLOCK, _BLOCK, width // _BLOCK, _BLOCK)
    return np.asarray(blocks.mean(axis=(1, 3)), dtype=np.float32)


def measure_edges(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """[H, W]: how much each pixel of a gray picture differs from the one below and the one to its right."""
    down = np.abs(np.diff(image, axis=0, append=image[-1:]))
    across = np.abs(np.diff(image, axis=1, append=image[:, -1:]))
    return np.asarray(down + across, dtype=np.float32)
