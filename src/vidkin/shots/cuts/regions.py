"""How much of the picture stays from one frame to another, for example under a graphic that pops up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RegionChange", "changed_blocks", "compare_regions", "measure_rectangle"]

# Blocks across and down, and pixels per block side, for luma averaged to 64 x 64.
_BLOCKS, _SIDE = 8, 8
# Deviation of luma that counts as noise, and the change of a block's mean, relative to all blocks, that counts as
# none.
_NOISE, _SAME = 4.0, 8.0
_LIKE = 0.6
# Rows and columns belong to a rectangle if they have this share of the largest number of differing pixels in any.
_SIDES = 0.5

RegionChange = tuple[float, float]
"""Share of blocks that stay, and how well the others fill the rectangle around them; both in 0..1."""


def compare_regions(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> RegionChange:
    """Compare two frames, luma [128, 128], block by block; changes of overall brightness are ignored."""
    changed = changed_blocks(one, other)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    if not len(rows):
        return 1.0, 0.0
    area = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    return float(1 - changed.mean()), float(changed.sum() / area)


def changed_blocks(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each of the blocks [8, 8] differs between two frames, luma [128, 128]."""
    first, second = _blocks(one), _blocks(other)
    means = second.mean(1) - first.mean(1)
    first -= first.mean(1, keepdims=True)
    second -= second.mean(1, keepdims=True)
    noise = _NOISE**2
    like = (2 * (first * second).mean(1) + noise) / ((first**2).mean(1) + (second**2).mean(1) + noise)
    stays = (like > _LIKE) & (np.abs(means - np.median(means)) < _SAME)
    changed: NDArray[np.bool_] = ~stays.reshape(_BLOCKS, _BLOCKS)
    return changed


def measure_rectangle(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """How well differing pixels, of luma [128, 128], fill one upright rectangle and nothing else, in -1..1.

    A graphic that pops up is a rectangle with straight sides; a person who moved is not.
    """
    step = other[::2, ::2].astype(np.int16) - one[::2, ::2]
    changed = np.abs(step - int(np.median(step))) > _SAME
    down, across = changed.sum(1), changed.sum(0)
    rows, columns = down > _SIDES * down.max(), across > _SIDES * across.max()
    if not rows.any():
        return 0.0
    inside = rows[:, None] & columns[None]
    return float(changed[inside].mean() - (changed & ~inside).sum() / inside.sum())


def _blocks(luma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Blocks as rows: [64 blocks, 64 pixels]."""
    # Sums of slices, because a mean over two axes that are not adjacent takes many times longer.
    rows = luma[::2].astype(np.uint16) + luma[1::2]
    small = (rows[:, ::2] + rows[:, 1::2]).astype(np.float32) / np.float32(4)
    cut = small.reshape(_BLOCKS, _SIDE, _BLOCKS, _SIDE).swapaxes(1, 2)
    blocks: NDArray[np.float32] = np.ascontiguousarray(cut).reshape(_BLOCKS * _BLOCKS, _SIDE * _SIDE)
    return blocks
