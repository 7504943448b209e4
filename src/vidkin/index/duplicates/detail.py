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
_MORE_EDGES = 1.2

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


@dataclass(frozen=True, slots=True, eq=False)
class Sketches:
    """What is compared of T pictures to find what is laid over them.

    Attributes:
        lumas: [T, 192, 256] without their means.
        variances: [T] of the lumas.
        edges: [T, 24, 32] mean strength of the edges in each block.
    """

    lumas: NDArray[np.float32]
    variances: NDArray[np.float32]
    edges: NDArray[np.float32]

    @classmethod
    def of(cls, images: Sequence[NDArray[np.uint8]]) -> Sketches:
        """Those of pictures [H, W, 3]."""
        canvases = [_canvas(image) for image in images]
        edges = np.stack([_block_means(measure_edges(canvas)) for canvas in canvases])
        lumas = np.stack([canvas - canvas.mean() for canvas in canvases])
        return cls(lumas, np.square(lumas).mean(axis=(1, 2)), edges)


def find_overlays(first: Sketches, second: Sketches) -> tuple[LaidOver, ...]:
    """Find each thing that only one of two copies has over its picture, as `find_overlay` does, and where it is; the
    largest first."""
    lasting, edges = _lasting_blocks(first, second)
    if not _SMALLEST <= float(lasting.mean()) <= _LARGEST:
        return ()
    height, width = lasting.shape
    # Where one of them is blurred as a whole, it has fewer edges everywhere.
    usual = float(edges[0][~lasting].mean()) / max(float(edges[1][~lasting].mean()), 1e-6)
    edges = edges[0], edges[1] * usual
    found = []
    for rows, columns in _connected(lasting):
        part = np.zeros_like(lasting)
        part[rows, columns] = True
        side = _side_of(part, edges)
        if side is not None and float(part.mean()) >= _SMALLEST:
            box = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
            found.append(
                (float(part.mean()), LaidOver(side, (float(box[0]), float(box[1]), float(box[2]), float(box[3]))))
            )
    # A picture that is blurred or sharpened differs in many places.
    if len(found) > _MOST_OVERLAYS:
        return ()
    return tuple(overlay for _, overlay in sorted(found, key=lambda item: -item[0]))


def _lasting_blocks(
    first: Sketches, second: Sketches
) -> tuple[NDArray[np.bool_], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """[24, 32] blocks that differ in most frames, and the mean strength of the edges of both copies in each block."""
    differing, gains = [], []
    for one, other, variance in zip(first.lumas, second.lumas, second.variances.tolist(), strict=True):
        gain = max(float(np.vdot(one, other)) / one.size / variance, 0.1) if variance > 1 else 1.0
        difference = _block_means(np.abs(one - np.float32(gain) * other))
        usual = float(np.median(difference))
        differing.append(difference > max(_LEAST_DIFFERENCE, _TIMES_USUAL * usual))
        gains.append(gain)
    lasting = np.mean(differing, axis=0) >= _LASTING
    # Copies are seldom cropped at exactly the same pixel.
    lasting[[0, -1]] = lasting[:, [0, -1]] = False
    fitted = second.edges * np.array(gains, np.float32)[:, None, None]
    return lasting, (first.edges.mean(axis=0, dtype=np.float64), fitted.mean(axis=0, dtype=np.float64))


def _side_of(
    blocks: NDArray[np.bool_], edges: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> Literal["first", "second"] | None:
    """The copy with clearly more edges in these blocks."""
    one, other = (float(strength[blocks].mean()) for strength in edges)
    if one > _MORE_EDGES * other:
        return "first"
    return "second" if other > _MORE_EDGES * one else None


def _connected(blocks: NDArray[np.bool_]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of each group of blocks; letters of one line lie up to two blocks apart."""
    left = {(int(row), int(column)) for row, column in np.argwhere(blocks)}
    groups = []
    while left:
        waiting = [left.pop()]
        group = []
        while waiting:
            row, column = waiting.pop()
            group.append((row, column))
            near = {
                (row + down, column + across) for down in (-1, 0, 1) for across in range(-_APART, _APART + 1)
            } & left
            left -= near
            waiting += near
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
