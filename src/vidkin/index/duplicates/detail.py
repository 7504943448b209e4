"""Differences in detail between two copies: a logo or caption that only one of them has, their colors and edges.

Shapes: T pairs of frames; H, W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_CANVAS = (192, 256)

_BLOCK = 8

# A block differs if its mean difference is at least this many gray levels and this many times the median.
_LEAST_DIFFERENCE, _TIMES_USUAL = 6.0, 3.0

# Share of the frames in which a block must differ, and shares of the picture that an overlay may take.
_LASTING = 0.6

_SMALLEST, _LARGEST = 0.004, 0.4

# How much stronger the edges of the copy with the overlay are there.
_MORE_EDGES = 2.0

# Overlays that a copy has at most.
_MOST_OVERLAYS = 4

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


def find_overlays(first: Sequence[NDArray[np.uint8]], second: Sequence[NDArray[np.uint8]]) -> tuple[LaidOver, ...]:
    """Find each thing that only one of two copies has over its pictures [H, W, 3] of the same moments, and where it
    is; the largest first."""
    differing, strengths = [], []
    for ones in zip(first, second, strict=True):
        one, other = map(_canvas, ones)
        edges = [_block_means(measure_edges(canvas)) for canvas in (one, other)]
        one, other = one - one.mean(), other - other.mean()
        variance = float(np.square(other).mean())
        gain = max(float(np.vdot(one, other)) / one.size / variance, 0.1) if variance > 1 else 1.0
        difference = _block_means(np.abs(one - np.float32(gain) * other))
        differing.append(difference > max(_LEAST_DIFFERENCE, _TIMES_USUAL * float(np.median(difference))))
        strengths.append((edges[0], gain * edges[1]))
    lasting = np.mean(differing, axis=0) >= _LASTING
    # Copies are seldom cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    if not _SMALLEST <= float(lasting.mean()) <= _LARGEST:
        return ()
    one, other = np.mean(strengths, axis=0)
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
    # A picture that is blurred or sharpened differs in many places.
    if len(found) > _MOST_OVERLAYS:
        return ()
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


def colorfulness(images: Sequence[NDArray[np.uint8]]) -> float:
    """Mean distance of pixels from gray, in gray levels; about 0 for a black and white copy."""
    spreads = []
    for image in images:
        # Whole planes are compared many times as fast as the three numbers of each pixel.
        first, second, third = (image[..., channel] for channel in range(3))
        most = np.maximum(np.maximum(first, second), third)
        spreads.append(float((most - np.minimum(np.minimum(first, second), third)).mean()))
    return sum(spreads) / len(spreads)


def _canvas(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    from PIL import Image

    small = Image.fromarray(image).convert("L").resize(_CANVAS[::-1], Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)


def _block_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = values.shape
    blocks = values.reshape(height // _BLOCK, _BLOCK, width // _BLOCK, _BLOCK)
    return np.asarray(blocks.mean(axis=(1, 3)), dtype=np.float32)


def measure_edges(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """[H, W]: how much each pixel of a gray picture differs from the one below and the one to its right."""
    down = np.abs(np.diff(image, axis=0, append=image[-1:]))
    across = np.abs(np.diff(image, axis=1, append=image[:, -1:]))
    return np.asarray(down + across, dtype=np.float32)
