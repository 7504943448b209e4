"""Measure the detail in frames, find black bars, and resize frames quickly."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.blas import median
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import LUMINANCE
from vidkin.similarity.contracts import THUMBNAIL

# frame_information
_GRID = 16  # cells per side
_CELL = 8  # samples per side of a cell
_SIDE = _GRID * _CELL
_NOISE_FLOOR = 1.0  # gray levels; averaged sensor and compression noise on a flat background stays below this
_RELATIVE_CONTRAST = 0.01  # relative to the frame's brightness
# bar_boxes: deviations from the bar's color in gray levels, lengths as fractions of the side
_FLAT_DEVIATION = 10
_FLAT_MEAN_DEVIATION = 4
_FLAT_FRACTION = 0.99
_EDGE_DEVIATION = 24
_EDGE_FRACTION = 0.5
_LONE_EDGE_FRACTION = 0.8
_LONE_BRIGHTEST = 32
_MIN_BAR = 0.015
_MAX_BAR = 0.4
_ASYMMETRY = 0.05
_EDGE_REACH = 0.02
_BLOCK = 8  # lines; compression smears an edge over one transform block


@check_arguments
def frame_information(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Weight each frame by its detail: the squared, scaled fraction of the frame that has detail.

    The luma (0.299 R + 0.587 G + 0.114 B) is averaged down to 128 x 128 and divided into 16 x 16 cells. In each cell,
    the mean of each row and of each column is subtracted, which removes smooth gradients and straight edges parallel to
    the sides of the frame. The cell has detail if the standard deviation of the remainder exceeds ``max(1, 0.01 p)``
    gray levels, where the brightness p is the 95th percentile of the cell means. With s the fraction of such cells,

        ``information = min(1, 3 s)^2``

    Black, white and flat frames, fades between them, gradients and color bars score 0; a small logo or a line of text
    on a plain background scores less than 0.1; a frame with detail in at least a third of its area scores 1. Darkening
    a frame has no effect until its detail falls below the noise floor of one gray level.

    Args:
        images: [T, H, W, 3] uint8.

    Returns:
        [T] float32 in [0, 1], the same for a frame and its mirror image.
    """
    _check(images)
    return information_of_share(detailed_cells(small_luma(images)).mean(axis=(1, 2), dtype=np.float32))


@check_arguments
def small_luma(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Average (or repeat) the luma of images [T, H, W, 3] to 128 x 128: [T, 128, 128] in 0..255.

    Frames are processed one at a time, because values must not depend on the batch.
    """
    if images.ndim != 4 or images.shape[-1] != 3:
        raise InvalidArgumentError(f"images must be [T, H, W, 3], got {list(images.shape)}")
    weights = np.array(LUMINANCE, dtype=np.float32)
    luma = np.empty((len(images), _SIDE, _SIDE), np.float32)
    for image, small in zip(images, luma, strict=True):
        small[:] = pool_plane(image @ weights, _SIDE)
    return luma


def detailed_cells(luma: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return whether each of the 16 x 16 cells of luma [T, 128, 128] has detail (see :func:`frame_information`):
    [T, 16, 16]."""
    cells = luma.reshape(-1, _GRID, _CELL, _SIDE)
    columns = cells.mean(axis=2, keepdims=True)
    # Means of eight neighbors in a row, as a product: NumPy takes ten times as long for an axis of eight.
    means = np.repeat(np.eye(_GRID, dtype=np.float32), _CELL, axis=0) / np.float32(_CELL)
    brightness = np.sort((columns[:, :, 0] @ means).reshape(-1, _GRID * _GRID), axis=1)
    detail = cells - columns
    # Variance after also subtracting the row means: the mean square minus the squared means.
    rest = np.square(detail).mean(axis=2) @ means - np.square(detail @ means).mean(axis=2)
    # The 95th percentile of 256 values lies a quarter of the way from the 243rd to the 244th.
    position, share = divmod(0.95 * (_GRID * _GRID - 1), 1)
    low, high = brightness[:, int(position)], brightness[:, int(position) + 1]
    least = np.maximum(_RELATIVE_CONTRAST * (low + np.float32(share) * (high - low)), _NOISE_FLOOR)
    detailed: NDArray[np.bool_] = rest > np.square(least)[:, None, None]
    return detailed


def information_of_share(share: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute ``min(1, 3 s)^2`` from the fraction s of cells that have detail."""
    return np.square(np.minimum(3 * share, np.float32(1)))


@check_arguments
def bar_boxes(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find the content area of each frame: everything except letterbox and pillarbox bars.

    A bar is a run of rows (columns) from the frame border that keeps the color of the outermost line, covers 1.5 % to
    40 % of the side (and at least 4 lines), and ends in an edge that is straighter than content edges: within 8 lines
    or 2 % of the side, at least half of a line differs from the bar's color by 24 gray levels or more. Bars come in
    pairs with the same color and about the same size (within 5 % of the side). A lone bar must be black, and four
    fifths of its edge must be straight; the same applies to black that forms an L next to shifted content, and to black
    of unequal width on all sides. Dark scenes, night skies, flat skies and gradients have no such edge and are kept
    unchanged; so are entirely flat frames, even if other frames of the video have bars.

    Args:
        images: [T, H, W, 3] uint8.

    Returns:
        [T, 4] int64: top, bottom, left, right, so that ``images[t, top:bottom, left:right]`` is the content.
    """
    _check(images)
    height, width = images.shape[1:3]
    boxes = np.tile(np.array([0, height, 0, width], dtype=np.int64), (len(images), 1))
    # Most frames have no bars; in these, none of the outermost lines has a single color.
    outermost = (images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1])
    flat = np.stack([_flat_lines(lines) for lines in outermost], axis=1)
    for position in np.flatnonzero(flat.any(axis=1)).tolist():
        boxes[position] = _content_box(images[position], *flat[position].tolist())
    return boxes


@dataclass(frozen=True, slots=True)
class FrameLook:
    """Properties of T frames, computed before their views are described.

    Attributes:
        luma: [T, 128, 128] float32, see :func:`small_luma`.
        information: [T] float32, see :func:`frame_information`.
    """

    luma: NDArray[np.float32]
    information: NDArray[np.float32]


# Cache of recent batches, because boxes are searched in a batch before it is described.
_looks: tuple[tuple[weakref.ref[NDArray[np.uint8]], FrameLook], ...] = ()
_MAX_LOOKS = 3


@check_arguments
def look_at(images: NDArray[np.uint8]) -> FrameLook:
    """Return the luma and detail of images [T, H, W, 3]. The result is cached by array; do not modify the array."""
    global _looks
    for known, look in _looks:
        if known() is images:
            return look
    luma = small_luma(images)
    look = FrameLook(luma, information_of_share(detailed_cells(luma).mean(axis=(1, 2), dtype=np.float32)))
    _looks = ((weakref.ref(images), look), *_looks[: _MAX_LOOKS - 1])
    return look


@check_arguments
def make_thumbnails(luma: NDArray[np.float32], boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Make thumbnails of the views of frames, [T, V, 8, 8]: the luma averaged over 64 cells per box.

    Args:
        luma: [T, 128, 128], see :func:`small_luma`.
        boxes: [V, 4] left, top, right, bottom as fractions of the frame.
    """
    if luma.ndim != 3 or boxes.ndim != 2 or boxes.shape[-1] != 4:
        raise InvalidArgumentError(
            f"luma must be [T, S, S] and boxes [V, 4], got {list(luma.shape)} and {list(boxes.shape)}"
        )
    side = luma.shape[-1]
    small = np.empty((len(luma), len(boxes), THUMBNAIL, THUMBNAIL), np.uint8)
    for view, (left, top, right, bottom) in enumerate(np.rint(boxes * side).astype(int).tolist()):
        rows = _area_weights(max(bottom - top, 1), THUMBNAIL)
        columns = _area_weights(max(right - left, 1), THUMBNAIL)
        part = luma[:, min(top, side - 1) : max(bottom, top + 1), min(left, side - 1) : max(right, left + 1)]
        small[:, view] = np.rint(rows @ part @ columns.T)
    return small


@dataclass(frozen=True, slots=True)
class _BarSide:
    """A candidate bar along one side of the frame; lines are counted from the border inward.

    Attributes:
        depth: Width of the bar in lines; 0 if there is none.
        color: [3], color of the outermost line.
        deviation: [N, L], deviation of the first N lines from the color, maximum of the three channels; empty if there
            is no bar.
        reach: Number of lines after the bar within which its edge must lie.
    """

    depth: int
    color: NDArray[np.float64]
    deviation: NDArray[np.int16]
    reach: int

    def edge_fraction(self, interior: slice) -> float:
        """Return the largest fraction of a line near the edge, within the interior, that differs from the bar's
        color."""
        lines = self.deviation[self.depth : self.depth + self.reach, interior]
        return float((lines >= _EDGE_DEVIATION).mean(axis=1).max()) if lines.size else 0.0


_NO_BAR = _BarSide(0, np.zeros(3), np.zeros((0, 0), dtype=np.int16), 0)


def _side(lines: NDArray[np.uint8], flat_border: bool) -> _BarSide:
    """Return the candidate bar of a side, given its lines [N, L, 3] from the border inward; ``flat_border`` says
    whether the outermost line can have a single color."""
    if not flat_border:
        return _NO_BAR
    length = len(lines)
    reach = max(_BLOCK, round(_EDGE_REACH * length))
    least = max(4, math.ceil(_MIN_BAR * length))
    color = median(lines[0], 0)
    # Most frames have no bars, which is visible in their first lines.
    if not _flat(lines[:least], color)[0].all():
        return _NO_BAR
    flat, deviation = _flat(lines[: int(_MAX_BAR * length) + reach + 1], color)
    depth = length if flat.all() else int(np.argmin(flat))
    return _BarSide(depth if depth <= _MAX_BAR * length else 0, color, deviation, reach)


def _flat_lines(lines: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each line [T, L, 3] can have a single color: few of its pixels are far from the median color."""
    if not len(lines):
        return np.zeros(0, np.bool_)
    color = median(lines, 1).astype(np.int16)[:, None]
    far = (np.abs(lines - color) > _FLAT_DEVIATION).any(axis=2)
    few: NDArray[np.bool_] = far.mean(axis=1) <= 1 - _FLAT_FRACTION + 1e-9
    return few


def _flat(lines: NDArray[np.uint8], color: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
    """Return whether each line [N] has the color, and the deviations [N, L] from it."""
    # Process channels separately, with sums as products: NumPy takes twenty times as long for an axis of three. Sums of
    # so few bytes are exact.
    whole = color.astype(np.int16)
    red, green, blue = (np.abs(lines[..., channel] - whole[channel]) for channel in range(3))
    deviation = np.maximum(np.maximum(red, green), blue)
    flat = (deviation <= _FLAT_DEVIATION).mean(axis=1) >= _FLAT_FRACTION
    length = lines.shape[1]
    means = (np.ones(length, np.float32) @ lines.astype(np.float32)).astype(np.float64) / length
    flat &= np.abs(means - color).max(axis=-1) <= _FLAT_MEAN_DEVIATION
    return flat, deviation


def _content_box(
    image: NDArray[np.uint8], flat_top: bool, flat_bottom: bool, flat_left: bool, flat_right: bool
) -> tuple[int, int, int, int]:
    """Return the top, bottom, left and right of the content of a frame [H, W, 3], given which of its outermost lines
    can have a single color."""
    height, width = image.shape[:2]
    columns_first = image.transpose(1, 0, 2)
    rows = (_side(image, flat_top), _side(image[::-1], flat_bottom))
    columns = (_side(columns_first, flat_left), _side(columns_first[::-1], flat_right))
    # Bars on all four sides hide each other's edges, so each pair is checked only within the other pair ...
    top, bottom = _pair(rows, _interior(columns, width), height)
    left, right = _pair(columns, _interior(rows, height), width)
    if not (top and left):
        # ... but only if both pairs are bars; otherwise, an edge must be straight across the whole frame.
        top, bottom = _pair(rows, slice(0, width), height)
        left, right = _pair(columns, slice(0, height), width)
        if not top and not left:
            top, bottom, left, right = _corner(rows, columns, height, width)
            if not (top or bottom or left or right):
                top, bottom = _lone(rows, slice(None))
                left, right = _lone(columns, slice(None))
    return top, height - bottom, left, width - right


def _interior(sides: tuple[_BarSide, _BarSide], length: int) -> slice:
    return slice(sides[0].depth, length - sides[1].depth)


def _pair(sides: tuple[_BarSide, _BarSide], interior: slice, length: int) -> tuple[int, int]:
    """Return the widths of two opposite bars; (0, 0) if they do not form a pair."""
    first, second = sides
    is_pair = (
        first.depth > 0
        and second.depth > 0
        and abs(first.depth - second.depth) <= max(3, _ASYMMETRY * length)
        and float(np.abs(first.color - second.color).max()) <= _FLAT_DEVIATION
        and min(first.edge_fraction(interior), second.edge_fraction(interior)) >= _EDGE_FRACTION
    )
    return (first.depth, second.depth) if is_pair else (0, 0)


def _lone(sides: tuple[_BarSide, _BarSide], interior: slice) -> tuple[int, int]:
    """Return the widths of black bars with sharp edges within the interior, each checked on its own."""
    first, second = (
        side.depth if _is_black(side) and side.edge_fraction(interior) >= _LONE_EDGE_FRACTION else 0 for side in sides
    )
    return first, second


def _is_black(side: _BarSide) -> bool:
    return side.depth > 0 and float(side.color.max()) <= _LONE_BRIGHTEST


def _corner(
    rows: tuple[_BarSide, _BarSide], columns: tuple[_BarSide, _BarSide], height: int, width: int
) -> tuple[int, int, int, int]:
    """Return the widths at the top, bottom, left and right of black that forms an L next to the content or surrounds
    it.

    Such bars hide each other's edges, so each is checked only along the side of the content. There must be a bar in
    both directions.
    """
    black = [tuple(side if _is_black(side) else _NO_BAR for side in sides) for sides in (rows, columns)]
    up_and_down, across = (black[0][0], black[0][1]), (black[1][0], black[1][1])
    top, bottom = _lone(up_and_down, _interior(across, width))
    left, right = _lone(across, _interior(up_and_down, height))
    return (top, bottom, left, right) if (top or bottom) and (left or right) else (0, 0, 0, 0)


def _check(images: NDArray[np.uint8]) -> None:
    if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8 or not all(images.shape[1:3]):
        raise InvalidArgumentError(
            f"images must be [T, H, W, 3] uint8 with at least one pixel, got {list(images.shape)} {images.dtype}"
        )


# Byte planes are resized by matrix products: bilinear with antialiasing, in fixed point, as in image libraries.
#
# Sums of bytes times 15-bit weights are integers below 2^24, which float32 represents exactly. Products of float32
# matrices are therefore exact in any order of summation, and many times faster than resizing image by image.


Edges = tuple[int, int, int, int]
"""Left, top, right and bottom of a part of a plane, in pixels."""

# First output, first input, and weights [outputs, inputs].
_ResizedBlock = tuple[int, int, NDArray[np.float32]]

# Outputs per product: few, because most weights in a longer row are zeros, but enough to fill the registers.
_OUTPUTS_PER_BLOCK = 16
# Above this number of multiplications per call, OpenBLAS wakes other threads, which cost more than they save here.
_MAX_PRODUCTS = 1 << 18
# Bits per weight, few enough for exact sums of products with bytes.
_BITS = 15
_MAX_PRECISION = 22
_HALF = np.float32(0.5)


def resize_planes(planes: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Resize planes [H, T, C, W] of whole numbers in 0..255 to squares [side, T, C, side], rounded.

    Rows are the first axis, so that one product processes the same rows of all planes.
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
    """Crop parts from planes and resize each to a square, rounded to whole numbers.

    Args:
        planes: [H, T, C, W] contiguous, whole numbers in 0..255; about a dozen planes at a time fit into the
            processor's cache.
        parts: V parts of the planes.
        side: Side of the squares.
        out: [T, V, C, side, side], receives the result.
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

    A window contains all pixels that its square touches, so windows overlap if the lengths are not divisible.
    """
    low = np.empty((side, plane.shape[1]), np.float32)
    _multiply_rows(_blocks(plane.shape[0], side, "area"), plane, low)
    pooled = np.empty((side, side), np.float32)
    _multiply_columns(_blocks(plane.shape[1], side, "area"), low, pooled)
    return pooled


def _resize_columns(lines: NDArray[np.float32], *, out: NDArray[np.float32]) -> None:
    """Resize lines [N, W] to [N, W'] and round; ``out`` can have any shape with N * W' elements that ends in W'."""
    before, after = lines.shape[1], out.shape[-1]
    outputs = out.reshape(-1, after)
    if before == after:
        outputs[:] = lines
        return
    _multiply_columns(_blocks(before, after, "bilinear"), lines, outputs)
    out += _HALF
    np.floor(out, out=out)


def _resize_rows(planes: NDArray[np.float32], *, out: NDArray[np.float32]) -> None:
    """Resize planes [H, ...] to [H', ...]; add 0.5 to interpolated results, so that truncation rounds them."""
    before, after = len(planes), len(out)
    if before == after:
        out[:] = planes
        return
    _multiply_rows(_blocks(before, after, "bilinear"), planes.reshape(before, -1), out.reshape(after, -1))
    out += _HALF


def _multiply_columns(blocks: Sequence[_ResizedBlock], lines: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Multiply lines [N, W] by the weights [W', W]: [N, W']."""
    for first, start, weights in blocks:
        count, length = weights.shape
        step = _MAX_PRODUCTS // weights.size
        for row in range(0, len(lines), step):
            inputs = lines[row : row + step, start : start + length]
            np.matmul(inputs, weights.T, out=out[row : row + step, first : first + count])


def _multiply_rows(blocks: Sequence[_ResizedBlock], lines: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Multiply the weights [H', H] by lines [H, N]: [H', N]."""
    for first, start, weights in blocks:
        count, length = weights.shape
        step = _MAX_PRODUCTS // weights.size
        for column in range(0, lines.shape[1], step):
            inputs = lines[start : start + length, column : column + step]
            np.matmul(weights, inputs, out=out[first : first + count, column : column + step])


@lru_cache(maxsize=512)
def _blocks(length: int, size: int, kind: Literal["bilinear", "area"]) -> tuple[_ResizedBlock, ...]:
    """Return the weights [size, length] in blocks of outputs, without inputs that no output of the block uses."""
    weights = _bilinear_weights(length, size) if kind == "bilinear" else _area_weights(length, size)
    blocks = []
    for first in range(0, size, _OUTPUTS_PER_BLOCK):
        block = weights[first : first + _OUTPUTS_PER_BLOCK]
        used = np.flatnonzero(block.any(axis=0))
        blocks.append((first, int(used[0]), np.ascontiguousarray(block[:, used[0] : used[-1] + 1])))
    return tuple(blocks)


def _area_weights(length: int, size: int) -> NDArray[np.float32]:
    outputs, inputs = np.arange(size)[:, None], np.arange(length)
    inside = (inputs >= outputs * length // size) & (inputs < -(-(outputs + 1) * length // size))
    weights: NDArray[np.float32] = (inside / inside.sum(axis=1, keepdims=True)).astype(np.float32)
    return weights


def _bilinear_weights(length: int, size: int) -> NDArray[np.float32]:
    """Return weights [size, length]: a triangle around the center of each output, as wide as two outputs but at least
    two inputs, in multiples of a power of two."""
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
    while precision < _MAX_PRECISION and int(0.5 + weights.max() * 2 ** (precision + 1)) < 2**_BITS:
        precision += 1
    rounded: NDArray[np.float32] = (np.floor(weights * 2**precision + 0.5) / 2**precision).astype(np.float32)
    return rounded
