"""Resize planes of bytes by matrix products: bilinear with antialiasing, in fixed point as image libraries do it.

Sums of products of bytes and weights of 15 bits are whole numbers below 2^24, which float32 holds: products of float32
matrices are exact, whatever the order of their sums, and many times as fast as one image after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Edges = tuple[int, int, int, int]
"""Left, top, right, bottom of a part of planes, pixels."""

# First output, first input, weights [outputs, inputs].
_ResizedBlock = tuple[int, int, NDArray[np.float32]]

# Outputs a product: few, because most weights of a longer row are zeros; enough to fill the registers.
_BLOCK = 16
# Products a call: above them OpenBLAS wakes other threads, which cost more than they save here.
_MOST_PRODUCTS = 1 << 18
# Bits of a weight, so that its products with bytes can be added up.
_BITS = 15
_MOST_PRECISION = 22
_HALF = np.float32(0.5)


def resize_planes(planes: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Resize planes [H, T, C, W] with whole numbers in 0..255 to squares [side, T, C, side], rounded.

    Rows come first, so that a product takes the same rows of all planes at once.
    """
    height, count, channels, width = planes.shape
    narrow = np.empty((height, count, channels, side), np.float32)
    squares = np.empty((side, count, channels, side), np.float32)
    _resize_columns(planes.reshape(-1, width), out=narrow)
    _resize_rows(narrow, out=squares)
    return np.floor(squares, out=squares)


def resize_parts(
    planes: NDArray[np.float32], parts: Sequence[Edges], side: int, *, out: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Cut parts out of planes and resize each to a square, rounded to whole numbers.

    Args:
        planes: [H, T, C, W] contiguous, whole numbers in 0..255; a dozen planes at a time stay in the processor's
            cache.
        parts: V parts of the planes.
        side: Side of the squares.
        out: [T, V, C, side, side], where they are written.
    """
    height, count, channels, width = planes.shape
    lines = planes.reshape(-1, width)
    narrow = np.empty((height, count, channels, side), np.float32)
    square = np.empty((side, count, channels, side), np.float32)
    columns: tuple[int, int] | None = None
    # Parts with the same columns share the first step.
    for view in sorted(range(len(parts)), key=lambda view: (parts[view][0], parts[view][2])):
        left, top, right, bottom = parts[view]
        if (left, right) != columns:
            _resize_columns(lines[:, left:right], out=narrow)
            columns = (left, right)
        _resize_rows(narrow[top:bottom], out=square)
        np.floor(square.transpose(1, 2, 0, 3), out=out[:, view])
    return out


def pool_plane(plane: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Average a plane [H, W] over the windows of a grid: [side, side].

    A window is all pixels that its square touches, so that windows overlap where the lengths do not divide.
    """
    low = np.empty((side, plane.shape[1]), np.float32)
    _multiply_rows(_blocks(plane.shape[0], side, "area"), plane, low)
    pooled = np.empty((side, side), np.float32)
    _multiply_columns(_blocks(plane.shape[1], side, "area"), low, pooled)
    return pooled


def _resize_columns(lines: NDArray[np.float32], *, out: NDArray[np.float32]) -> None:
    """Resize lines [N, W] to [N, W'], rounded; ``out`` has any shape of this size."""
    before, after = lines.shape[1], out.shape[-1]
    outputs = out.reshape(-1, after)
    if before == after:
        outputs[:] = lines
        return
    _multiply_columns(_blocks(before, after, "bilinear"), lines, outputs)
    out += _HALF
    np.floor(out, out=out)


def _resize_rows(planes: NDArray[np.float32], *, out: NDArray[np.float32]) -> None:
    """Resize planes [H, ...] to [H', ...], plus one half where they must be rounded down."""
    before, after = len(planes), len(out)
    if before == after:
        out[:] = planes
        return
    _multiply_rows(_blocks(before, after, "bilinear"), planes.reshape(before, -1), out.reshape(after, -1))
    out += _HALF


def _multiply_columns(blocks: Sequence[_ResizedBlock], lines: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Lines [N, W] times the weights [W', W]: [N, W']."""
    for first, start, weights in blocks:
        count, length = weights.shape
        step = _MOST_PRODUCTS // weights.size
        for row in range(0, len(lines), step):
            inputs = lines[row : row + step, start : start + length]
            np.matmul(inputs, weights.T, out=out[row : row + step, first : first + count])


def _multiply_rows(blocks: Sequence[_ResizedBlock], lines: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """The weights [H', H] times lines [H, N]: [H', N]."""
    for first, start, weights in blocks:
        count, length = weights.shape
        step = _MOST_PRODUCTS // weights.size
        for column in range(0, lines.shape[1], step):
            inputs = lines[start : start + length, column : column + step]
            np.matmul(weights, inputs, out=out[first : first + count, column : column + step])


@lru_cache(maxsize=512)
def _blocks(length: int, size: int, kind: Literal["bilinear", "area"]) -> tuple[_ResizedBlock, ...]:
    """The weights [size, length] in blocks of outputs, without the inputs that no output of a block uses."""
    weights = _bilinear_weights(length, size) if kind == "bilinear" else _area_weights(length, size)
    blocks = []
    for first in range(0, size, _BLOCK):
        block = weights[first : first + _BLOCK]
        used = np.flatnonzero(block.any(axis=0))
        blocks.append((first, int(used[0]), np.ascontiguousarray(block[:, used[0] : used[-1] + 1])))
    return tuple(blocks)


def _area_weights(length: int, size: int) -> NDArray[np.float32]:
    places, inputs = np.arange(size)[:, None], np.arange(length)
    inside = (inputs >= places * length // size) & (inputs < -(-(places + 1) * length // size))
    weights: NDArray[np.float32] = (inside / inside.sum(axis=1, keepdims=True)).astype(np.float32)
    return weights


def _bilinear_weights(length: int, size: int) -> NDArray[np.float32]:
    """[size, length]: a triangle around the middle of each output, as wide as two outputs and at least as two inputs,
    in multiples of a power of two."""
    scale = length / size
    reach = max(scale, 1.0)
    centers = (np.arange(size) + 0.5) * scale
    starts = np.maximum((centers - reach + 0.5).astype(np.int64), 0)
    ends = np.minimum((centers + reach + 0.5).astype(np.int64), length)
    places = np.arange(length)
    weights = np.maximum(1 - np.abs((places - centers[:, None] + 0.5) * (1 / reach)), 0)
    weights[(places < starts[:, None]) | (places >= ends[:, None])] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    precision = 0
    while precision < _MOST_PRECISION and int(0.5 + weights.max() * 2 ** (precision + 1)) < 2**_BITS:
        precision += 1
    rounded: NDArray[np.float32] = (np.floor(weights * 2**precision + 0.5) / 2**precision).astype(np.float32)
    return rounded
