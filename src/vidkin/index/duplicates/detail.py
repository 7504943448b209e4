"""Detailed differences between two copies: logos or captions that only one of them has, and edges.

Shapes: T pairs of frames; H, W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BLOCK = 8
"""Pixels along a side of the blocks that are compared."""

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)

# A block differs if its mean difference is at least the first value in gray levels, and the second times the median.
_MIN_DIFFERENCE, _TIMES_USUAL = 6.0, 3.0

# Minimum share of the frames in which a block differs, and minimum and maximum share of the frame of an overlay.
_LASTING = 0.6

_SMALLEST, _LARGEST = 0.004, 0.4

# Minimum ratio of the edges of the copy with the overlay to those of the copy without.
_MORE_EDGES = 2.0

# Maximum distance in columns between blocks of one overlay.
_APART = 3


@dataclass(frozen=True, slots=True)
class LaidOver:
    """An overlay that only one of two copies has.

    Attributes:
        side: The copy with the overlay.
        box: Left, top, right and bottom of the overlay, shares of the frame.
    """

    side: Literal["first", "second"]
    box: tuple[float, float, float, float]


def find_overlays(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> tuple[LaidOver, ...]:
    """Find each overlay that only one of two copies has, in frames [T, H, W, 3] of the same moments; the largest
    first."""
    ones, others = (images.astype(np.float32) @ _LUMA for images in (first, second))
    edges = [block_means(measure_edges(luma)) for luma in (ones, others)]
    ones, others = (luma - luma.mean(axis=(1, 2), keepdims=True) for luma in (ones, others))
    variances = np.square(others).mean(axis=(1, 2), keepdims=True)
    shared = (ones * others).mean(axis=(1, 2), keepdims=True) / np.maximum(variances, 1.0)
    gains = np.where(variances > 1, np.maximum(shared, 0.1), 1.0)
    apart = block_means(np.abs(ones - gains * others))
    usual = np.median(apart, axis=(1, 2), keepdims=True)
    lasting = (apart > np.maximum(_MIN_DIFFERENCE, _TIMES_USUAL * usual)).mean(axis=0) >= _LASTING
    # Copies are seldom cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    if not _SMALLEST <= float(lasting.mean()) <= _LARGEST:
        return ()
    one, other = edges[0].mean(axis=0), (gains * edges[1]).mean(axis=0)
    # A copy that is blurred as a whole has fewer edges everywhere.
    other = other * float(one[~lasting].mean()) / max(float(other[~lasting].mean()), 1e-6)
    height, width = lasting.shape
    found: list[tuple[int, LaidOver]] = []
    for rows, columns in _connected(lasting):
        edge, edge_there = float(one[rows, columns].mean()), float(other[rows, columns].mean())
        # The copy with clearly more edges in these blocks has the overlay.
        if len(rows) < _SMALLEST * lasting.size or max(edge, edge_there) <= _MORE_EDGES * min(edge, edge_there):
            continue
        box = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
        left, top, right, bottom = map(float, box)
        found.append((len(rows), LaidOver("first" if edge > edge_there else "second", (left, top, right, bottom))))
    return tuple(overlay for _, overlay in sorted(found, key=lambda item: -item[0]))


def _connected(blocks: NDArray[np.bool_]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of each group of blocks; letters of one line lie up to two blocks apart."""
    left = {(int(row), int(column)) for row, column in np.argwhere(blocks)}
    groups = []
    while left:
        group = waiting = [left.pop()]
        for row, column in waiting:  # the list grows in the loop
            near = {(row + down, column + across) for down in (-1, 0, 1) for across in range(-_APART, _APART + 1)}
            waiting += near & left
            left -= near
        rows, columns = np.array(group, dtype=np.int64).T
        groups.append((rows, columns))
    return groups


def block_means(values: NDArray[np.number]) -> NDArray[np.float32]:
    """Means [T, H / 8, W / 8, ...] of the blocks of images [T, H, W, ...]."""
    count, height, width, *rest = values.shape
    # Sum lines first: ten times as fast as a mean over two axes.
    lines = values.reshape(count, height // BLOCK, BLOCK, -1).sum(axis=2, dtype=np.float32)
    blocks = lines.reshape(count, height // BLOCK, width // BLOCK, BLOCK, *rest).sum(axis=3)
    return np.asarray(blocks / BLOCK**2, np.float32)


def measure_edges(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """[..., H, W]: how much each pixel of gray images differs from its neighbors below and to the right."""
    down = np.abs(np.diff(images, axis=-2, append=images[..., -1:, :]))
    across = np.abs(np.diff(images, axis=-1, append=images[..., -1:]))
    return np.asarray(down + across, dtype=np.float32)
