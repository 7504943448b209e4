"""Differences in detail between two copies: a logo or caption that only one of them has, and edges.

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

# A block differs if its mean difference is at least this many gray levels and this many times the median.
_LEAST_DIFFERENCE, _TIMES_USUAL = 6.0, 3.0

# Share of the frames in which a block must differ, and shares of the picture that an overlay may take.
_LASTING = 0.6

_SMALLEST, _LARGEST = 0.004, 0.4

# How much stronger the edges of the copy with the overlay are there.
_MORE_EDGES = 2.0

# Blocks of one overlay lie at most this many columns apart.
_APART = 3


@dataclass(frozen=True, slots=True)
class LaidOver:
    """Something that is laid over one of two copies.

    Attributes:
        side: The copy that has it.
        box: Left, top, right and bottom of it, shares of the picture.
    """

    side: Literal["first", "second"]
    box: tuple[float, float, float, float]


def find_overlays(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> tuple[LaidOver, ...]:
    """Find each thing that only one of two copies has over its pictures [T, H, W, 3] of the same moments, and where it
    is; the largest first."""
    ones, others = (images.astype(np.float32) @ _LUMA for images in (first, second))
    edges = [block_means(measure_edges(luma)) for luma in (ones, others)]
    ones, others = (luma - luma.mean(axis=(1, 2), keepdims=True) for luma in (ones, others))
    variances = np.square(others).mean(axis=(1, 2), keepdims=True)
    shared = (ones * others).mean(axis=(1, 2), keepdims=True) / np.maximum(variances, 1.0)
    gains = np.where(variances > 1, np.maximum(shared, 0.1), 1.0)
    apart = block_means(np.abs(ones - gains * others))
    usual = np.median(apart, axis=(1, 2), keepdims=True)
    lasting = (apart > np.maximum(_LEAST_DIFFERENCE, _TIMES_USUAL * usual)).mean(axis=0) >= _LASTING
    # Copies are seldom cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    if not _SMALLEST <= float(lasting.mean()) <= _LARGEST:
        return ()
    one, other = edges[0].mean(axis=0), (gains * edges[1]).mean(axis=0)
    # Where one of them is blurred as a whole, it has fewer edges everywhere.
    other = other * float(one[~lasting].mean()) / max(float(other[~lasting].mean()), 1e-6)
    height, width = lasting.shape
    found: list[tuple[int, LaidOver]] = []
    for rows, columns in _connected(lasting):
        edge, edge_there = float(one[rows, columns].mean()), float(other[rows, columns].mean())
        # The copy with clearly more edges in these blocks has it.
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
        for row, column in waiting:  # which grows
            near = {(row + down, column + across) for down in (-1, 0, 1) for across in range(-_APART, _APART + 1)}
            waiting += near & left
            left -= near
        rows, columns = np.array(group, dtype=np.int64).T
        groups.append((rows, columns))
    return groups


def block_means(values: NDArray[np.number]) -> NDArray[np.float32]:
    """Means [T, H / 8, W / 8, ...] of the blocks of pictures [T, H, W, ...]."""
    count, height, width, *rest = values.shape
    # Lines first: a tenth of the time of a mean over two axes at once.
    lines = values.reshape(count, height // BLOCK, BLOCK, -1).sum(axis=2, dtype=np.float32)
    blocks = lines.reshape(count, height // BLOCK, width // BLOCK, BLOCK, *rest).sum(axis=3)
    return np.asarray(blocks / BLOCK**2, np.float32)


def measure_edges(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """[..., H, W]: how much each pixel of gray pictures differs from the one below and the one to its right."""
    down = np.abs(np.diff(images, axis=-2, append=images[..., -1:, :]))
    across = np.abs(np.diff(images, axis=-1, append=images[..., -1:]))
    return np.asarray(down + across, dtype=np.float32)
