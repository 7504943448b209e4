"""Find boxes in the frames of a video that may hold a video of their own: insets, split screens, images in borders.

Anything added around or beside an image meets it in straight lines that stay in place while the image changes. A box is
a rectangle each side of which is such a line or a border of the frame.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.features.information import look_at

__all__ = ["LINES_OF_PICTURE", "MAX_BOXES", "find_content_boxes", "overlap"]

# Side of the luminance that is searched, and frames at most.
_SIDE = 128
_MOST_FRAMES = 24
# Least contrast of a box's edge in gray levels, after blurring along the edge.
_EDGE = 5.0
# Share of frames in which a pixel of a line shows an edge, averaged along the side of a box. At .5, 22 of 26 clips that
# show one scene have boxes, which cost time and space; at .6 insets in moving footage are lost.
_LEAST_COVERAGE = 0.55
# Lines examined in either direction, of a single picture in which nothing moves, and boxes returned.
_MOST_LINES, LINES_OF_PICTURE = 20, 40
MAX_BOXES = 4
_SMALLEST_SIDE = 0.18
# An inset that shows a room has lines inside; the rectangles they form with its sides are smaller than the inset.
_OF_LARGE = 0.3
# Least deviation in gray levels of a pixel that changes, and the least share of such pixels within a box.
_CHANGES = 3.0
_LEAST_CHANGING = 0.6
_SAME_BOX = 0.8


@check_arguments
def find_content_boxes(
    images: NDArray[np.uint8],
    *,
    only_lines: bool = False,
    most_lines: int = _MOST_LINES,
) -> NDArray[np.float32]:
    """Boxes [N, 4] (left, top, right, bottom; shares of the picture) that may hold a video of their own, best first.

    Luma at 128 x 128; in each of up to 24 frames a pixel is an edge of a column where the difference across it is the
    largest among its neighbors and at least 5 gray levels; its persistence is the share of frames in which it is one.
    Boxes are made of the lines with the most persistent pixels and of the frame's borders; the coverage of a side is
    the mean persistence along it (1 for a border of the frame). A box counts if every side has a coverage of at least
    .55 and is at least 18 % as long as the picture. If everything that changes lies in one such rectangle and fills
    60 % of it, that counts, too: the sides of a screen in a photograph are not upright.

    Args:
        images: [T, H, W, 3] uint8, frames of one video.
        only_lines: Leave out the rectangle around everything that changes.
        most_lines: Lines examined in either direction: a page has more of them than its picture has sides.

    Returns:
        At most 4 boxes, none of them nearly the whole picture or nearly another one (intersection over union .8).

    Raises:
        InvalidArgumentError: The images have another shape.
    """
    if images.ndim != 4 or images.shape[3] != 3:
        raise InvalidArgumentError(f"images must be [T, H, W, 3], got {list(images.shape)}")
    if len(images) < 2:
        return np.zeros((0, 4), np.float32)
    chosen = sorted(set(np.linspace(0, len(images) - 1, _MOST_FRAMES).round().astype(int).tolist()))
    small = look_at(images).luma[chosen]
    across, down = _persistence(small), _persistence(small.transpose(0, 2, 1))
    columns, rows = _spans(_lines(across, most_lines)), _spans(_lines(down, most_lines))
    sides = [_coverage(across, columns[:, end], rows) for end in (0, 1)]
    sides += [_coverage(down, rows[:, end], columns).T for end in (0, 1)]
    least = np.minimum(np.minimum(sides[0], sides[1]), np.minimum(sides[2], sides[3]))
    column, row = np.nonzero((least >= _LEAST_COVERAGE) & (least < np.inf))
    inner = np.sum([np.isfinite(side[column, row]) for side in sides], axis=0)
    boxes = np.stack([columns[column, 0], rows[row, 0], columns[column, 1], rows[row, 1]], axis=1)
    size = np.sqrt((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
    certainty = least[column, row] + 0.1 * inner + np.where(inner == 4, _OF_LARGE * size / _SIDE, 0.0)
    for sure, box in [] if only_lines else _changing_boxes(_changing(small)):
        boxes, certainty = np.concatenate([boxes, [box]]), np.append(certainty, sure)
    # The most certain first; of equally certain ones the one farthest to the right.
    boxes = boxes[np.lexsort((*boxes.T[::-1], certainty))[::-1]]
    boxes = boxes[_overlaps(boxes, (0, 0, _SIDE, _SIDE)) < _SAME_BOX]
    distinct: list[tuple[int, ...]] = []
    while len(boxes) and len(distinct) < MAX_BOXES:
        distinct.append(tuple(boxes[0].tolist()))
        boxes = boxes[_overlaps(boxes, distinct[-1]) < _SAME_BOX]
    return np.array(distinct, dtype=np.float32).reshape(-1, 4) / np.float32(_SIDE)


def _overlaps(boxes: NDArray[np.int64], other: tuple[int, ...]) -> NDArray[np.float64]:
    """:func:`overlap` of each of the boxes [N, 4] with another one, [N]."""
    left, top, right, bottom = boxes.T
    width = np.minimum(right, other[2]) - np.maximum(left, other[0])
    height = np.minimum(bottom, other[3]) - np.maximum(top, other[1])
    both = np.maximum(width, 0) * np.maximum(height, 0)
    areas = (right - left) * (bottom - top) + (other[2] - other[0]) * (other[3] - other[1])
    return np.asarray(both / (areas - both))


def _changing(luma: NDArray[np.float32]) -> NDArray[np.bool_]:
    """[S, S] where frames [T, S, S] change: most of the 25 samples around a sample do."""
    variance = np.square(luma).mean(axis=0) - np.square(luma.mean(axis=0))
    # Beyond the border nothing changes.
    near = np.pad((variance > _CHANGES**2).astype(np.int64), 2)
    for axis in (0, 1):
        near = sliding_window_view(near, 5, axis=axis).sum(axis=-1)
    return np.asarray(near > 12)


def _changing_boxes(changing: NDArray[np.bool_]) -> list[tuple[float, tuple[int, int, int, int]]]:
    """The rectangle around everything that changes [S, S] while the rest stands still, with its certainty."""
    rows, columns = np.flatnonzero(changing.any(axis=1)).tolist(), np.flatnonzero(changing.any(axis=0)).tolist()
    if not rows or min(rows[-1] - rows[0], columns[-1] - columns[0]) + 1 < _SMALLEST_SIDE * _SIDE:
        return []
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    inside = changing[box[1] : box[3], box[0] : box[2]]
    if inside.mean() < _LEAST_CHANGING:
        return []
    return [(1.4 + _OF_LARGE * math.sqrt(inside.size) / _SIDE, box)]


def _persistence(luma: NDArray[np.float32]) -> NDArray[np.float32]:
    """[S + 1, S]: for each line between two columns of frames [T, S, S], the share of frames with an edge in each
    row."""
    # Sums of up to five rows, two on either side, divided by their number.
    sums = luma.copy()
    counts = np.ones(luma.shape[1], np.float32)
    for shift in (1, 2):
        sums[:, shift:] += luma[:, :-shift]
        sums[:, :-shift] += luma[:, shift:]
        counts[shift:] += 1
        counts[:-shift] += 1
    sums /= counts[:, None]
    difference = np.diff(sums, axis=2)
    np.abs(difference, out=difference)
    # The largest of the pixel and its two neighbors.
    edge = difference >= _EDGE
    edge[..., 1:] &= difference[..., 1:] >= difference[..., :-1]
    edge[..., :-1] &= difference[..., :-1] >= difference[..., 1:]
    # A line can lie between two columns in one row and be shifted by one column in the next.
    share = _largest_of_three(np.add.reduce(edge, axis=0, dtype=np.float32) / np.float32(len(edge)))
    return np.pad(share.T, ((1, 1), (0, 0)))


def _largest_of_three(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest of each value and its neighbors along the last axis."""
    largest = values.copy()
    np.maximum(largest[..., 1:], values[..., :-1], out=largest[..., 1:])
    np.maximum(largest[..., :-1], values[..., 1:], out=largest[..., :-1])
    return largest


def _lines(persistence: NDArray[np.float32], most: int) -> list[int]:
    """Positions of the lines with the most persistent pixels, and of the borders."""
    strength = (persistence * (persistence >= _LEAST_COVERAGE / 2)).sum(axis=1)
    peak = (strength >= _largest_of_three(strength)) & (strength >= _SMALLEST_SIDE * _SIDE * 0.5)
    places = np.flatnonzero(peak)
    best = places[np.argsort(-strength[places], kind="stable")[:most]].tolist()
    return sorted({0, _SIDE, *best})


def _spans(lines: list[int]) -> NDArray[np.int64]:
    """[N, 2], the first and last line of every span that is long enough for a side."""
    pairs = [pair for pair in combinations(lines, 2) if pair[1] - pair[0] >= _SMALLEST_SIDE * _SIDE]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _coverage(
    persistence: NDArray[np.float32], lines: NDArray[np.int64], spans: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[N, M], mean persistence of lines [N] along spans [M, 2]; infinite for a border of the frame."""
    sums = np.pad(persistence.cumsum(axis=1, dtype=np.float64), ((0, 0), (1, 0)))[lines]
    coverage: NDArray[np.float64] = (sums[:, spans[:, 1]] - sums[:, spans[:, 0]]) / (spans[:, 1] - spans[:, 0])
    coverage[(lines == 0) | (lines == _SIDE)] = np.inf
    return coverage


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return both / (areas - both)
