"""Find boxes in the frames of a video that may hold a video of their own: insets, split screens, images in borders.

Anything placed around or next to an image meets it in straight lines that stay while the image changes. A box is a
rectangle whose sides are such lines or borders of the frame; a small network, trained on composed videos, predicts
which boxes hold an image.
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
"""Inputs of the network for a box: means over its sides, or minima ("least"). ``edge`` is the share of frames with an
edge, ``exact`` the share with one at the same pixel, ``beyond`` the share along the continuations of the sides,
``step`` the contrast."""
MAX_BOXES = 4
"""Maximum number of boxes in a video."""

BOX_NETWORK_FILE = Path(__file__).with_name("data") / "boxes.json"
"""The network, with a description of its training."""

# Side of the luma that is searched, and maximum number of frames.
_SIDE = 128
_MAX_FRAMES = 24
# Minimum contrast of an edge in gray levels, after blurring along it.
_EDGE = 5.0
# Maximum number of lines in either direction, in videos and in still images; minimum share of frames for an edge to
# count.
_MAX_LINES, _MAX_LINES_OF_STILL, _MIN_SHARE = 20, 40, 0.25
_MIN_SIDE = 0.18
# Maximum number of candidates for the network, and minimum share of frames with an edge along each side of a candidate.
_MAX_CANDIDATES, _MIN_EDGE = 120, 0.35
# In pixels: the neighborhood of a line, the length of the continuations of a side, and the width of the strips along
# it.
_NEIGHBORS, _BEYOND, _STRIP = 8, 10, 4
# Minimum standard deviation in gray levels of a changing pixel, and minimum share of such pixels within a box.
_CHANGES, _MIN_CHANGING = 3.0, 0.6
# Overlap from which two boxes count as one, and area from which a box counts as the full frame.
_SAME_BOX, _WHOLE_BOX = 0.5, 0.8


@dataclass(frozen=True, slots=True, eq=False)
class BoxCandidates:
    """Rectangles with edges along their sides.

    Attributes:
        boxes: [N, 4] left, top, right, bottom as shares of the frame.
        numbers: [N, F] `BOX_NUMBERS` of each box.
    """

    boxes: Floats
    numbers: Floats


@check_arguments
def find_content_boxes(images: NDArray[np.uint8], *, least: float = 0.12) -> Floats:
    """Find boxes [N, 4] (left, top, right, bottom as shares of the frame) that may hold a video of their own, best
    first.

    Up to 24 frames are searched, as 128 x 128 luma. A pixel is an edge if the difference across it is at least 5 gray
    levels and larger than at its neighbors. Candidates are rectangles between the lines with the most persistent edges
    and the borders of the frame, and the rectangle around everything that changes; a network with one hidden layer over
    `BOX_NUMBERS` gives the probability that each holds an image.

    Args:
        images: [T, H, W, 3] uint8, frames of one video; for a still image, the image twice.
        least: Minimum probability.

    Returns:
        At most 4 boxes, none of them nearly the full frame, no two with an intersection over union of .5 or more.

    Raises:
        InvalidArgumentError: The images have another shape.
    """
    return _shipped().choose(find_box_candidates(images), least)


@check_arguments
def find_box_candidates(images: NDArray[np.uint8]) -> BoxCandidates:
    """Find the rectangles among which `find_content_boxes` chooses, at most 120, with their `BOX_NUMBERS`.

    Args:
        images: [T, H, W, 3] uint8, frames of one video.

    Raises:
        InvalidArgumentError: The images have another shape.
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
    # [M, 4, C, R] means of the maps along each side of every rectangle; nan for a border of the frame.
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
    changes, lights = _Sums(change), _Sums(luma.mean(axis=0))
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
    """A network with one hidden layer over `BOX_NUMBERS`: the probability that a box holds an image.

    ``sigmoid(out . tanh(hidden @ ((x - mean) / deviation) + hidden_bias) + out_bias)``

    Attributes:
        mean, deviation: [F] of the numbers in training.
        hidden: [U, F] weights; hidden_bias: [U].
        out: [U] weights; out_bias: a number.
    """

    mean: Floats
    deviation: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> BoxNetwork:
        """The network that training wrote as JSON."""
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
def _shipped() -> BoxNetwork:
    return BoxNetwork.from_dict(read_json(BOX_NETWORK_FILE))


def _edges(luma: Floats) -> Floats:
    """[M, S + 1, S] for each line between two columns of frames [T, S, S] and each row: the share of frames with an
    edge within one column, the share with an edge exactly there, the mean step, and how far the first exceeds
    neighboring lines."""
    # Sums of up to five rows, two on either side, divided by their number.
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
    # An edge is at least as large as both neighboring steps.
    edge = steps >= _EDGE
    edge[..., 1:] &= steps[..., 1:] >= steps[..., :-1]
    edge[..., :-1] &= steps[..., :-1] >= steps[..., 1:]
    exact = np.add.reduce(edge, axis=0, dtype=np.float32) / np.float32(len(edge))
    # A line can lie between two columns in one row and be shifted by one column in the next.
    near = _max_of_three(exact)
    around = np.pad(near, ((0, 0), (_NEIGHBORS, _NEIGHBORS)), mode="reflect")
    usual = sliding_window_view(around, 2 * _NEIGHBORS + 1, axis=1).mean(axis=-1)
    maps = np.stack([near, exact, np.minimum(steps.mean(axis=0), 48) / 48, near - usual])
    return np.pad(maps.transpose(0, 2, 1), ((0, 0), (1, 1), (0, 0)))


def _max_of_three(values: Floats) -> Floats:
    """Maximum of each value and its two neighbors along the last axis."""
    largest = values.copy()
    np.maximum(largest[..., 1:], values[..., :-1], out=largest[..., 1:])
    np.maximum(largest[..., :-1], values[..., 1:], out=largest[..., :-1])
    return largest


def _lines(edges: Floats, most: int) -> list[int]:
    """Positions of the lines with the most persistent edges [S + 1, S], and of the borders."""
    strength = (edges * (edges >= _MIN_SHARE)).sum(axis=1)
    peak = (strength >= _max_of_three(strength)) & (strength >= _MIN_SIDE * _SIDE * 0.5)
    peaks = np.flatnonzero(peak)
    best = peaks[np.argsort(-strength[peaks], kind="stable")[:most]].tolist()
    return sorted({0, _SIDE, *best})


def _spans(lines: list[int]) -> Whole:
    """[N, 2], the first and last line of every span that is long enough for a side."""
    pairs = [pair for pair in combinations(lines, 2) if pair[1] - pair[0] >= _MIN_SIDE * _SIDE]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _changing_box(luma: Floats) -> tuple[int, ...]:
    """The rectangle around everything that changes in frames [T, S, S] while the rest stands still, if changes fill it;
    finds tilted screens, which have no upright edges. Empty if there is none."""
    variance = np.square(luma).mean(axis=0) - np.square(luma.mean(axis=0))
    # A sample counts if most of the 25 samples around it change; there are none beyond the border.
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
    """[M, N, K], means of maps [M, S + 1, S] on lines [N] along spans [K, 2]; nan on a border of the frame."""
    sums = np.pad(maps.cumsum(axis=2, dtype=np.float64), ((0, 0), (0, 0), (1, 0)))[:, lines]
    means: NDArray[np.float64] = (sums[..., spans[:, 1]] - sums[..., spans[:, 0]]) / (spans[:, 1] - spans[:, 0])
    means[:, (lines == 0) | (lines == _SIDE)] = np.nan
    return means


def _mean_beyond(edges: Floats, lines: Whole, spans: Whole) -> NDArray[np.float64]:
    """[N] means of edges [S + 1, S] on lines [N] just before and after spans [N, 2]; nan if a span reaches both
    borders."""
    sums = np.pad(edges.cumsum(axis=1, dtype=np.float64), ((0, 0), (1, 0)))
    before, after = np.maximum(spans[:, 0] - _BEYOND, 0), np.minimum(spans[:, 1] + _BEYOND, _SIDE)
    total = sums[lines, spans[:, 0]] - sums[lines, before] + sums[lines, after] - sums[lines, spans[:, 1]]
    count = spans[:, 0] - before + after - spans[:, 1]
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _mean(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """[N] means over the sides [4, N] that are not borders; 0 if all are."""
    known = ~np.isnan(sides)
    return np.asarray(np.where(known, sides, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


class _Sums:
    """Means of a map [S, S] over rectangles, from a summed-area table."""

    def __init__(self, values: Floats) -> None:
        self._sums = np.pad(values.cumsum(axis=0, dtype=np.float64).cumsum(axis=1), ((1, 0), (1, 0)))

    def inside(self, boxes: Whole) -> NDArray[np.float64]:
        """[N] means inside boxes [N, 4]; 0 for boxes without area."""
        return np.asarray(self._total(boxes) / np.maximum(_area(boxes), 1))

    def outside(self, boxes: Whole) -> NDArray[np.float64]:
        """[N] means outside boxes [N, 4]."""
        return np.asarray((self._sums[-1, -1] - self._total(boxes)) / np.maximum(_SIDE**2 - _area(boxes), 1))

    def _total(self, boxes: Whole) -> NDArray[np.float64]:
        left, top, right, bottom = np.clip(boxes, 0, _SIDE).T
        sums = self._sums
        return np.asarray(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def _area(boxes: Whole) -> Whole:
    left, top, right, bottom = np.clip(boxes, 0, _SIDE).T
    return np.asarray((right - left) * (bottom - top))


def _change_across(changes: _Sums, boxes: Whole) -> NDArray[np.float64]:
    """[4, N] relative difference of the change just inside and just outside each side, 0 to 1."""
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
    """Intersection over union of two boxes (left, top, right, bottom), 0 to 1.

    Raises:
        InvalidArgumentError: A box has another number of sides.
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
