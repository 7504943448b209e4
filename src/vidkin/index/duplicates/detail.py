"""Overlays, such as logos or captions, that only one of two copies has, and block statistics to find them.

Shapes: T pairs of frames; H, W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BLOCK = 8
"""Side length in pixels of the blocks that are compared."""

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)

# A block differs if its mean difference exceeds this many gray levels and this multiple of the frame's median block.
_MIN_DIFFERENCE, _MEDIAN_FACTOR = 6.0, 3.0

# Minimum fraction of frames in which a block of an overlay differs.
_MIN_PRESENCE = 0.6

# Minimum and maximum fraction of the frame covered by overlays.
_MIN_AREA, _MAX_AREA = 0.004, 0.4

# Minimum ratio of edge strength in the copy with the overlay to that in the copy without it.
_MORE_EDGES = 2.0

# Maximum distance in columns between blocks of one overlay.
_MAX_GAP = 3


@dataclass(frozen=True, slots=True)
class CopyOverlay:
    """An overlay that only one of two copies has.

    Attributes:
        side: The copy with the overlay.
        box: Left, top, right and bottom of the overlay, as fractions of the frame size.
    """

    side: Literal["first", "second"]
    box: tuple[float, float, float, float]


def find_overlays(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> tuple[CopyOverlay, ...]:
    """Find overlays that only one of two copies has, largest first.

    Args:
        first, second: [T, H, W, 3] frames of the copies at the same moments.
    """
    ones, others = (images.astype(np.float32) @ _LUMA for images in (first, second))
    edges = [block_means(measure_edges(luma)) for luma in (ones, others)]
    ones, others = (luma - luma.mean(axis=(1, 2), keepdims=True) for luma in (ones, others))
    variances = np.square(others).mean(axis=(1, 2), keepdims=True)
    shared = (ones * others).mean(axis=(1, 2), keepdims=True) / np.maximum(variances, 1.0)
    gains = np.where(variances > 1, np.maximum(shared, 0.1), 1.0)
    apart = block_means(np.abs(ones - gains * others))
    usual = np.median(apart, axis=(1, 2), keepdims=True)
    lasting = (apart > np.maximum(_MIN_DIFFERENCE, _MEDIAN_FACTOR * usual)).mean(axis=0) >= _MIN_PRESENCE
    # Ignore blocks at the border, because copies are rarely cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    if not _MIN_AREA <= float(lasting.mean()) <= _MAX_AREA:
        return ()
    one, other = edges[0].mean(axis=0), (gains * edges[1]).mean(axis=0)
    # Compensate for a copy that is blurred everywhere.
    other = other * float(one[~lasting].mean()) / max(float(other[~lasting].mean()), 1e-6)
    height, width = lasting.shape
    found: list[tuple[int, CopyOverlay]] = []
    for rows, columns in _connected_groups(lasting):
        edge, edge_there = float(one[rows, columns].mean()), float(other[rows, columns].mean())
        # The copy with clearly more edges in these blocks has the overlay.
        if len(rows) < _MIN_AREA * lasting.size or max(edge, edge_there) <= _MORE_EDGES * min(edge, edge_there):
            continue
        box = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
        left, top, right, bottom = map(float, box)
        found.append((len(rows), CopyOverlay("first" if edge > edge_there else "second", (left, top, right, bottom))))
    return tuple(overlay for _, overlay in sorted(found, key=lambda item: -item[0]))


def _connected_groups(blocks: NDArray[np.bool_]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of each connected group of blocks; letters in a line of text may be up to two blocks apart."""
    left = {(int(row), int(column)) for row, column in np.argwhere(blocks)}
    groups = []
    while left:
        group = waiting = [left.pop()]
        for row, column in waiting:  # the list grows in the loop
            near = {(row + down, column + across) for down in (-1, 0, 1) for across in range(-_MAX_GAP, _MAX_GAP + 1)}
            waiting += near & left
            left -= near
        rows, columns = np.array(group, dtype=np.int64).T
        groups.append((rows, columns))
    return groups


def block_means(values: NDArray[np.number]) -> NDArray[np.float32]:
    """Means [T, H / 8, W / 8, ...] over blocks of images [T, H, W, ...]."""
    count, height, width, *rest = values.shape
    # Summing lines first is ten times faster than a mean over two axes.
    lines = values.reshape(count, height // BLOCK, BLOCK, -1).sum(axis=2, dtype=np.float32)
    blocks = lines.reshape(count, height // BLOCK, width // BLOCK, BLOCK, *rest).sum(axis=3)
    return np.asarray(blocks / BLOCK**2, np.float32)


def measure_edges(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Edge strength [..., H, W] of gray images: the absolute differences to the pixels below and to the right."""
    down = np.abs(np.diff(images, axis=-2, append=images[..., -1:, :]))
    across = np.abs(np.diff(images, axis=-1, append=images[..., -1:]))
    return np.asarray(down + across, dtype=np.float32)
