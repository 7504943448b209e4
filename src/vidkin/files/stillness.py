"""How much stiller one of two copies is: an encoder leaves out small changes, and a copy of its copy leaves out more.

Where the smaller of two copies does not change from one frame to the next, a source still has its noise. An enlargement
cannot move what its source holds still. That is the only trace of a soft source, which has no finer detail than a copy.

Shapes: T moments; H, W pixels; h, w pixels of the smaller copy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.files.small_frames import pool
from vidkin.media.frames import LUMINANCE

# Side of the blocks, pixels of the smaller copy: as large as a block of an encoder.
_BLOCK = 8
# Blocks whose gray levels change by less than this on average are still: what is left are roundings.
_STILL = 0.1
# Moments at which more of a frame than this is still show a frame twice, or a slide.
_REPEATED = 0.98
# So many blocks are as good as none: a share of a few blocks says little.
_FEW = 30.0

NeighborFrames = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""A frame [H, W] or [H, W, 3], and the one after it."""


def compare_stillness(large: Sequence[NeighborFrames], small: Sequence[NeighborFrames], *, gain: float = 1.0) -> float:
    """The logarithm of the odds that a block of the smaller copy is still, less that of the larger one.

    About 0 for an enlargement of the smaller copy, above 0 if the larger one has changes that the smaller one lacks.
    0 if there are no moments to compare.

    Args:
        large: T moments of the copy with more pixels, cut to the area that both copies show.
        small: The same moments of the other copy.
        gain: Strength of fine detail in the larger copy: sharpening makes its changes stronger, too.
    """
    still = np.zeros(2)
    count = 0
    for one, other in zip(large, small, strict=True):
        height, width = (side // _BLOCK * _BLOCK for side in other[0].shape[:2])
        blocks = height // _BLOCK, width // _BLOCK
        if not all(blocks):
            continue
        changes = (
            _changes(one, (height, width), blocks) / max(gain, 1.0),
            _changes(other, (height, width), blocks),
        )
        found = [float((change < _STILL).sum()) for change in changes]
        size = blocks[0] * blocks[1]
        if min(found) <= _REPEATED * size:
            still += found
            count += size
    odds = np.log((still + _FEW) / (count - still + _FEW))
    return float(odds[1] - odds[0])


def _changes(pair: NeighborFrames, size: tuple[int, int], blocks: tuple[int, int]) -> NDArray[np.float32]:
    """[rows, columns] mean absolute change of the pixels of each block, at a common size."""
    first, second = (to_gray(image) for image in pair)
    change = second - first
    down, across = pool(change.shape[0], size[0]), pool(change.shape[1], size[1])
    resized = np.abs(down @ change @ across.T)
    return np.asarray(resized.reshape(blocks[0], _BLOCK, blocks[1], _BLOCK).mean(axis=(1, 3)), np.float32)


def to_gray(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[H, W]: luminance."""
    if image.ndim == 2:
        return image.astype(np.float32)
    return np.asarray(image @ np.array(LUMINANCE, dtype=np.float32), dtype=np.float32)
