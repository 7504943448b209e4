"""How much of the picture stays from one frame to another, for example under a graphic that pops up."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def halved_sums(luma: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """[..., H / 2, W / 2] sums of 2 x 2 samples."""
    # Pairs of samples in a row are one number of 16 bits: both bytes are read at once.
    pairs = np.ascontiguousarray(luma).view(np.uint16)
    sums = pairs & np.uint16(0xFF)
    sums += pairs >> np.uint16(8)
    total: NDArray[np.uint16] = sums[..., ::2, :] + sums[..., 1::2, :]
    return total


# Blocks across and down, and pixels per block side, for luma averaged to 64 x 64.
_BLOCKS, _SIDE = 8, 8

_MEAN = np.full(_SIDE * _SIDE, 1 / (_SIDE * _SIDE), np.float32)

# Deviation of luma that counts as noise, and the change of a block's mean, relative to all blocks, that counts as
# none.
NOISE, _SAME = 4.0, 8.0

_LIKE = 0.6

# Rows and columns belong to a rectangle if they have this share of the largest number of differing pixels in any.
_SIDES = 0.5

RegionChange = tuple[float, float]

"""Share of blocks that stay, and how well the others fill the rectangle around them; both in 0..1."""


class PictureBlocks:
    """A frame's luma in blocks, with what its comparisons with other frames share.

    Args:
        luma: [128, 128].

    Attributes:
        means: [64] mean of each block.
        centered: [64, 64] pixels of each block, without its mean.
        variances: [64] variance of each block.
    """

    __slots__ = ("centered", "means", "variances")

    def __init__(self, luma: NDArray[np.uint8]) -> None:
        cut = halved_sums(luma).reshape(_BLOCKS, _SIDE, _BLOCKS, _SIDE).swapaxes(1, 2)
        self.centered = cut.astype(np.float32, order="C").reshape(_BLOCKS * _BLOCKS, _SIDE * _SIDE)
        self.centered *= np.float32(0.25)
        self.means = self.centered @ _MEAN
        self.centered -= self.means[:, None]
        self.variances = _mean_products(self.centered, self.centered)


def compare_regions(one: PictureBlocks, other: PictureBlocks) -> RegionChange:
    """Compare two frames block by block; changes of overall brightness are ignored."""
    return region_change(changed_blocks(one, other))


def region_change(changed: NDArray[np.bool_]) -> RegionChange:
    """What stays and what is filled if these blocks [8, 8] differ."""
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    if not len(rows):
        return 1.0, 0.0
    area = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    count = np.count_nonzero(changed)
    return float(1 - count / changed.size), float(count / area)


def changed_blocks(one: PictureBlocks, other: PictureBlocks) -> NDArray[np.bool_]:
    """Whether each of the blocks [8, 8] differs between two frames."""
    means = other.means - one.means
    noise = np.float32(NOISE**2)
    like = (2 * _mean_products(one.centered, other.centered) + noise) / (one.variances + other.variances + noise)
    # The median, without the detours of NumPy's.
    ranked = np.sort(means)
    middle = (ranked[len(ranked) // 2 - 1] + ranked[len(ranked) // 2]) / 2
    stays = (like > _LIKE) & (np.abs(means - middle) < _SAME)
    changed: NDArray[np.bool_] = ~stays.reshape(_BLOCKS, _BLOCKS)
    return changed


def _mean_products(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """[64] means over pixels of the products of blocks [64, 64]."""
    products: NDArray[np.float32] = np.einsum("bp,bp->b", one, other)
    products /= np.float32(one.shape[1])
    return products


class PictureStep:
    """Two frames at half their size as whole numbers [64, 64], and how far each pixel changes beyond the median."""

    def __init__(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> None:
        self.old, self.new = one[::2, ::2].astype(np.int16), other[::2, ::2].astype(np.int16)
        step = self.new - self.old
        # Half of the pixels change at most by the lower median, half at least by the upper one; all are whole numbers.
        counts = np.bincount((step + 255).ravel(), minlength=511).cumsum()
        low, high = np.searchsorted(counts, [step.size // 2, step.size // 2 + 1])
        self.beyond = np.abs(step - int((int(low) + int(high) - 510) / 2))


def measure_filled_rectangle(step: PictureStep) -> float:
    """How well differing pixels fill one upright rectangle and nothing else, in -1..1.

    A graphic that pops up is a rectangle with straight sides; a person who moved is not.
    """
    return measure_filled((step.beyond > _SAME).astype(np.float32))


def measure_filled(changed: NDArray[np.float32]) -> float:
    """How well what changed [rows, columns], 1 or 0, fills one upright rectangle and nothing else."""
    # Whole numbers as floats, which are added up many times faster.
    down, across = changed.sum(1), changed.sum(0)
    rows, columns = ((sums > _SIDES * sums.max()).astype(np.float32) for sums in (down, across))
    inside = float(rows.sum() * columns.sum())
    if not inside:
        return 0.0
    filled = float(rows @ changed @ columns)
    return (2 * filled - float(down.sum())) / inside


# Change of luma of a pixel that letters cover, the largest share of the picture that they cover, and the least
# deviation of luma of the picture around them.
_COVERED, _MOST_LETTERS, _AROUND_LETTERS = 20, 0.6, 12.0


def measure_uniform_change(step: PictureStep) -> float:
    """How uniform the pixels are that change, in the frame where they are more so; 0 means all alike, 1 and more not.

    Letters that appear over a picture, or leave it, have one color, and the picture around them stays. Where too much
    or nothing changes, or around it is no picture, the number is 1.
    """
    covered = step.beyond > _COVERED
    size, count = covered.size, int(np.count_nonzero(covered))
    if not 0.005 < count / size < _MOST_LETTERS:
        return 1.0
    # Sums over all pixels and over those covered, of both frames and of their squares; all are exact whole numbers.
    values = np.stack([step.old.ravel(), step.new.ravel()]).astype(float)
    chosen = np.ones((2, size))
    chosen[1] = covered.ravel()
    totals, squares = chosen @ values.T, chosen @ (values * values).T
    if _deviation(size - count, totals[0, 0] - totals[1, 0], squares[0, 0] - squares[1, 0]) < _AROUND_LETTERS:
        return 1.0
    whole, own = (
        [_deviation(number, totals[row, frame], squares[row, frame]) for frame in (0, 1)]
        for row, number in enumerate((size, count))
    )
    return min(own) / max(whole)


def _deviation(count: int, total: float, squares: float) -> float:
    """Standard deviation of so many numbers from their sum and that of their squares."""
    return math.sqrt(count * squares - total * total) / count
