"""Find boxes in the frames of a video that may contain a video of their own: insets, split screens, bordered images.

Anything next to or around such an image meets it in straight lines that stay while the image changes. A box is a
rectangle whose sides are such lines or frame borders; a small network, trained on composed videos, predicts which boxes
contain an image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.features.information import look_at

__all__ = [
    "BOX_NETWORK_FILE",
    "BOX_NUMBERS",
    "MAX_BOXES",
    "BoxCandidates",
    "BoxNetwork",
    "find_box_candidates",
    "find_content_boxes",
    "overlap",
]

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]

BOX_NUMBERS = (
    "least edge",
    "edge",
    "exact edge",
    "least exact edge",
    "step",
    "least step",
    "edge above neighbors",
    "least edge above neighbors",
    "beyond",
    "sides inside",
    "size",
    "shorter side",
    "frames",
    "change inside",
    "change outside",
    "change",
    "luma across",
    "candidates",
    "change across",
    "least change across",
    "all that changes",
)
"""Inputs of the network for a box: means over its sides, or minima ("least"). ``edge`` is the fraction of frames with
an edge, ``exact`` the fraction with an edge at exactly this pixel, ``beyond`` the fraction along the continuations of
the sides, and ``step`` the contrast."""
MAX_BOXES = 4
"""Maximum number of boxes per video."""

BOX_NETWORK_FILE = Path(__file__).with_name("data") / "boxes.json"
"""The network, including a description of its training."""

# Side of the luma plane to search, and maximum number of frames.
_SIDE = 128
_MAX_FRAMES = 24
# Minimum contrast of an edge in gray levels, after smoothing along the edge.
_EDGE = 5.0
# Maximum number of lines per direction in videos and in still images, and the minimum fraction of frames for an edge to
# count.
_MAX_LINES, _MAX_LINES_OF_STILL, _MIN_EDGE_FRACTION = 20, 40, 0.25
_MIN_SIDE = 0.18
# Maximum number of candidates for the network, and minimum fraction of frames with an edge along each side of one.
_MAX_CANDIDATES, _MIN_EDGE = 120, 0.35
# In pixels: the neighborhood of a line, the length of the continuations of a side, and the width of the strips along a
# side.
_NEIGHBORS, _BEYOND, _STRIP = 8, 10, 4
# Minimum standard deviation of a changing pixel in gray levels, and minimum fraction of such pixels in a box.
_CHANGES, _MIN_CHANGING = 3.0, 0.6
# Minimum overlap for two boxes to count as one, and minimum area for a box to count as the full frame.
_SAME_BOX, _WHOLE_BOX = 0.5, 0.8


@dataclass(frozen=True, slots=True, eq=False)
class BoxCandidates:
    """Rectangles with edges along their sides.

    Attributes:
        boxes: [N, 4] left, top, right, bottom as fractions of the frame.
        numbers: [N, F] values of `BOX_NUMBERS` for each box.
    """

    boxes: Floats
    numbers: Floats


@check_arguments
def find_content_boxes(images: NDArray[np.uint8], *, least: float = 0.12) -> Floats:
    """Find boxes [N, 4] (left, top, right, bottom as fractions of the frame) that may contain a video of their own,
    best first.

    Up to 24 frames are searched as 128 x 128 luma. A pixel is an edge if the difference across it is at least 5 gray
    levels and larger than at its neighbors. Candidates are the rectangles between frame borders and the lines with the
    most persistent edges, and the rectangle around everything that changes. A network with one hidden layer predicts
    from `BOX_NUMBERS` the probability that a candidate contains an image.

    Args:
        images: [T, H, W, 3] uint8, frames of one video; for a still image, pass the image twice.
        least: Minimum probability.

    Returns:
        At most 4 boxes. None covers nearly the full frame, and no two have an intersection over union of 0.5 or more.

    Raises:
        InvalidArgumentError: The images have the wrong shape.
    """
    return _load_bundled_network().choose(find_box_candidates(images), least)


@check_arguments
def find_box_candidates(images: NDArray[np.uint8]) -> BoxCandidates:
    """Find the candidates that `find_content_boxes` chooses from, at most 120, with their `BOX_NUMBERS`.

    Args:
        images: [T, H, W, 3] uint8, frames of one video.

    Raises:
        InvalidArgumentError: The images have the wrong shape.
    """
    if images.ndim != 4 or images.shape[3] != 3:
        raise InvalidArgumentError(f"images must be [T, H, W, 3], got {list(images.shape)}")
    none = BoxCandidates(np.zeros((0, 4), np.float32), np.zeros((0, len(BOX_NUMBERS)), np.float32))
    if len(images) < 2:
        return none
    chosen = sorted(set(np.linspace(0, len(images) - 1, _MAX_FRAMES).round().astype(int).tolist()))
    luma = look_at(images).luma[chosen]
    change = np.abs(np.diff(luma, axis=0)).mean(axis=0)
    moving = _changing_box(luma)
    across, down = _edges(luma), _edges(luma.transpose(0, 2, 1))
    most = _MAX_LINES if change.any() else _MAX_LINES_OF_STILL
    columns, rows = (
        _spans(sorted({*_lines(maps[0], most), *ends})) for maps, ends in ((across, moving[0::2]), (down, moving[1::2]))
    )
    if not len(columns) or not len(rows):
        return none
    # [M, 4, C, R] means of the maps along each side of each rectangle; NaN for a frame border.
    sides = np.stack(
        [
            *(_mean_along(across, columns[:, end], rows) for end in (0, 1)),
            *(_mean_along(down, rows[:, end], columns).transpose(0, 2, 1) for end in (0, 1)),
        ],
        axis=1,
    )
    least = np.fmin.reduce(sides[0], axis=0)
    is_moving = np.zeros(least.shape, np.bool_)
    if moving:
        is_moving = (columns == moving[0::2]).all(axis=1)[:, None] & (rows == moving[1::2]).all(axis=1)[None]
    column, row = np.nonzero((least >= _MIN_EDGE) | (is_moving & ~np.isnan(least)))
    found = len(column)
    boxes = np.stack([columns[column, 0], rows[row, 0], columns[column, 1], rows[row, 1]], axis=1)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    size = np.sqrt(width * height) / _SIDE
    along = sides[:, :, column, row]
    inner = (~np.isnan(along[0])).sum(axis=0)
    promise = 9.0 * is_moving[column, row] + least[column, row] + _mean(along[3]) + 0.1 * inner + 0.2 * size
    promise[width * height >= _WHOLE_BOX * _SIDE**2] = -np.inf
    order = np.argsort(-promise, kind="stable")[:_MAX_CANDIDATES]
    order = order[np.isfinite(promise[order])]
    if not len(order):
        return none
    boxes, along, column, row = boxes[order], along[:, :, order], column[order], row[order]
    beyond = np.stack(
        [
            *(_mean_beyond(across[0], columns[column, end], rows[row]) for end in (0, 1)),
            *(_mean_beyond(down[0], rows[row, end], columns[column]) for end in (0, 1)),
        ]
    )
    changes, lights = _AreaMeans(change), _AreaMeans(luma.mean(axis=0))
    strips = np.where(np.isnan(along[0]), np.nan, _change_across(changes, boxes))
    each = [
        np.fmin.reduce(along[0]), _mean(along[0]), _mean(along[1]), np.fmin.reduce(along[1]),
        _mean(along[2]), np.fmin.reduce(along[2]), _mean(along[3]), np.fmin.reduce(along[3]),
        _mean(np.where(np.isnan(along[0]), np.nan, beyond)),
        inner[order],
        size[order],
        np.minimum(width, height)[order] / _SIDE,
        math.log(len(luma)),
        np.minimum(changes.inside(boxes), 40) / 40,
        np.minimum(changes.outside(boxes), 40) / 40,
        min(float(change.mean()), 40.0) / 40,
        np.abs(lights.inside(boxes) - lights.outside(boxes)) / 64,
        math.log(1 + found),
        _mean(strips),
        np.fmin.reduce(strips),
        is_moving[column, row],
    ]  # fmt: skip
    numbers = np.stack([np.broadcast_to(number, len(boxes)) for number in each], axis=1).astype(np.float32)
    return BoxCandidates(boxes.astype(np.float32) / np.float32(_SIDE), numbers)


@dataclass(frozen=True, slots=True, eq=False)
class BoxNetwork:
    """A network with one hidden layer that computes the probability that a box contains an image from `BOX_NUMBERS`.

    ``sigmoid(out . tanh(hidden @ ((x - mean) / deviation) + hidden_bias) + out_bias)``

    Attributes:
        mean, deviation: [F] mean and standard deviation of the inputs in training.
        hidden: [U, F] weights; hidden_bias: [U].
        out: [U] weights; out_bias: a scalar.
    """

    mean: Floats
    deviation: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> BoxNetwork:
        """Create the network from the values that training stored as JSON."""
        names = ("mean", "deviation", "hidden", "hidden_bias", "out")
        mean, deviation, hidden, hidden_bias, out = (np.array(stored[name], np.float32) for name in names)
        return BoxNetwork(mean, deviation, hidden, hidden_bias, out, float(stored["out_bias"]))

    def choose(self, candidates: BoxCandidates, least: float) -> Floats:
        """Choose the boxes [N, 4] with at least this probability, best first and without duplicates."""
        units = np.tanh((candidates.numbers - self.mean) / self.deviation @ self.hidden.T + self.hidden_bias)
        probabilities = 1 / (1 + np.exp(-(units @ self.out + np.float32(self.out_bias))))
        distinct: list[tuple[float, ...]] = []
        for row in np.argsort(-probabilities, kind="stable").tolist():
            if probabilities[row] < least or len(distinct) == MAX_BOXES:
                break
            box = tuple(candidates.boxes[row].tolist())
            if all(overlap(box, other) < _SAME_BOX for other in distinct):
                distinct.append(box)
        return np.array(distinct, np.float32).reshape(-1, 4)


@cache
def _load_bundled_network() -> BoxNetwork:
    return BoxNetwork.from_dict(read_json(BOX_NETWORK_FILE))


def _edges(luma: Floats) -> Floats:
    """Return [M, S + 1, S] for each line between two columns of frames [T, S, S] and each row: the fraction of frames
    with an edge within one column of the line, the fraction with an edge exactly there, the mean step, and the excess
    of the first value over neighboring lines."""
    # Means over up to five rows, two on either side.
    sums = luma.copy()
    counts = np.ones(luma.shape[1], np.float32)
    for shift in (1, 2):
        sums[:, shift:] += luma[:, :-shift]
        sums[:, :-shift] += luma[:, shift:]
        counts[shift:] += 1
        counts[:-shift] += 1
    sums /= counts[:, None]
    steps = np.diff(sums, axis=2)
    np.abs(steps, out=steps)
    # At an edge, the step is at least as large as both neighboring steps.
    edge = steps >= _EDGE
    edge[..., 1:] &= steps[..., 1:] >= steps[..., :-1]
    edge[..., :-1] &= steps[..., :-1] >= steps[..., 1:]
    exact = np.add.reduce(edge, axis=0, dtype=np.float32) / np.float32(len(edge))
    # A line can be shifted by one column from row to row.
    near = _max_of_three(exact)
    around = np.pad(near, ((0, 0), (_NEIGHBORS, _NEIGHBORS)), mode="reflect")
    usual = sliding_window_view(around, 2 * _NEIGHBORS + 1, axis=1).mean(axis=-1)
    maps = np.stack([near, exact, np.minimum(steps.mean(axis=0), 48) / 48, near - usual])
    return np.pad(maps.transpose(0, 2, 1), ((0, 0), (1, 1), (0, 0)))


def _max_of_three(values: Floats) -> Floats:
    """Compute the maximum of each value and its two neighbors along the last axis."""
    largest = values.copy()
    np.maximum(largest[..., 1:], values[..., :-1], out=largest[..., 1:])
    np.maximum(largest[..., :-1], values[..., 1:], out=largest[..., :-1])
    return largest


def _lines(edges: Floats, most: int) -> list[int]:
    """Return the positions of the lines with the most persistent edges [S + 1, S], and of the frame borders."""
    strength = (edges * (edges >= _MIN_EDGE_FRACTION)).sum(axis=1)
    peak = (strength >= _max_of_three(strength)) & (strength >= _MIN_SIDE * _SIDE * 0.5)
    peaks = np.flatnonzero(peak)
    best = peaks[np.argsort(-strength[peaks], kind="stable")[:most]].tolist()
    return sorted({0, _SIDE, *best})


def _spans(lines: list[int]) -> Whole:
    """Return the first and last line, [N, 2], of each span that is long enough for a side."""
    pairs = [pair for pair in combinations(lines, 2) if pair[1] - pair[0] >= _MIN_SIDE * _SIDE]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _changing_box(luma: Floats) -> tuple[int, ...]:
    """Return the rectangle around everything that changes in frames [T, S, S] while the rest is static, if changes fill
    the rectangle; otherwise an empty tuple. This finds tilted screens, which have no upright edges."""
    variance = np.square(luma).mean(axis=0) - np.square(luma.mean(axis=0))
    # A pixel counts if most of the 25 pixels around it change; pixels outside the frame do not.
    near = np.pad((variance > _CHANGES**2).astype(np.int64), 2)
    for axis in (0, 1):
        near = sliding_window_view(near, 5, axis=axis).sum(axis=-1)
    changing = near > 12
    rows, columns = np.flatnonzero(changing.any(axis=1)).tolist(), np.flatnonzero(changing.any(axis=0)).tolist()
    if not rows or min(rows[-1] - rows[0], columns[-1] - columns[0]) + 1 < _MIN_SIDE * _SIDE:
        return ()
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    return box if changing[box[1] : box[3], box[0] : box[2]].mean() >= _MIN_CHANGING else ()


def _mean_along(maps: Floats, lines: Whole, spans: Whole) -> NDArray[np.float64]:
    """Return the means [M, N, K] of maps [M, S + 1, S] on lines [N] along spans [K, 2]; NaN on a frame border."""
    sums = np.pad(maps.cumsum(axis=2, dtype=np.float64), ((0, 0), (0, 0), (1, 0)))[:, lines]
    means: NDArray[np.float64] = (sums[..., spans[:, 1]] - sums[..., spans[:, 0]]) / (spans[:, 1] - spans[:, 0])
    means[:, (lines == 0) | (lines == _SIDE)] = np.nan
    return means


def _mean_beyond(edges: Floats, lines: Whole, spans: Whole) -> NDArray[np.float64]:
    """Return the means [N] of edges [S + 1, S] on lines [N] just before and after spans [N, 2]; NaN if a span reaches
    both borders."""
    sums = np.pad(edges.cumsum(axis=1, dtype=np.float64), ((0, 0), (1, 0)))
    before, after = np.maximum(spans[:, 0] - _BEYOND, 0), np.minimum(spans[:, 1] + _BEYOND, _SIDE)
    total = sums[lines, spans[:, 0]] - sums[lines, before] + sums[lines, after] - sums[lines, spans[:, 1]]
    count = spans[:, 0] - before + after - spans[:, 1]
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _mean(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means [N] over those sides [4, N] that are not borders; 0 if all are borders."""
    known = ~np.isnan(sides)
    return np.asarray(np.where(known, sides, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


class _AreaMeans:
    """Means of a map [S, S] over rectangles, from a summed-area table."""

    def __init__(self, values: Floats) -> None:
        self._sums = np.pad(values.cumsum(axis=0, dtype=np.float64).cumsum(axis=1), ((1, 0), (1, 0)))

    def inside(self, boxes: Whole) -> NDArray[np.float64]:
        """Return the means [N] inside boxes [N, 4]; 0 for boxes without area."""
        return np.asarray(self._total(boxes) / np.maximum(_area(boxes), 1))

    def outside(self, boxes: Whole) -> NDArray[np.float64]:
        """Return the means [N] outside boxes [N, 4]."""
        return np.asarray((self._sums[-1, -1] - self._total(boxes)) / np.maximum(_SIDE**2 - _area(boxes), 1))

    def _total(self, boxes: Whole) -> NDArray[np.float64]:
        left, top, right, bottom = np.clip(boxes, 0, _SIDE).T
        sums = self._sums
        return np.asarray(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def _area(boxes: Whole) -> Whole:
    left, top, right, bottom = np.clip(boxes, 0, _SIDE).T
    return np.asarray((right - left) * (bottom - top))


def _change_across(changes: _AreaMeans, boxes: Whole) -> NDArray[np.float64]:
    """Return the relative difference [4, N], 0 to 1, between the change just inside and just outside each side."""
    rows = []
    # For left, right, top and bottom: the coordinate of the box, and the direction that leads inside.
    for edge, inward in ((0, 1), (2, -1), (1, 1), (3, -1)):
        means = []
        for direction in (inward, -inward):
            strip = boxes.copy()
            near, far = boxes[:, edge], boxes[:, edge] + direction * _STRIP
            strip[:, edge % 2], strip[:, edge % 2 + 2] = np.minimum(near, far), np.maximum(near, far)
            means.append(changes.inside(strip))
        rows.append(np.abs(means[0] - means[1]) / (means[0] + means[1] + 1))
    return np.stack(rows)


@check_arguments
def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Compute the intersection over union of two boxes (left, top, right, bottom), 0 to 1.

    Raises:
        InvalidArgumentError: A box does not have four sides.
    """
    if len(one) != 4 or len(other) != 4:
        raise InvalidArgumentError(f"boxes must have 4 sides, got {len(one)} and {len(other)}")
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return both / (areas - both)
