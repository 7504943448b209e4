"""Views: which boxes of a picture are described beside the whole.

A copy may show a part of the original (a crop, a 9:16 reframe), or the original may be a part of the copy (blurred
borders, split screens, insets). A frame is therefore seen in several views, and two frames are compared by the best
pair of views in which one side is the whole picture: views of the query detect material that was added around the
original, views of stored videos detect material that was cut off.

Some boxes are found in the frames: the picture inside borders, the parts of a split screen, the rectangle of an inset.
Anything added around or beside a picture meets it in straight lines that stay in place while the picture changes. A box
is a rectangle each side of which is such a line or a border of the frame. Mirrored and turned pictures are views, too:
their vectors are predicted from those of the picture without reading it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.values import check_choice, short_digest
from vidkin.errors import ExtractorError, InvalidArgumentError
from vidkin.features.contracts import ClipExtractor, FrameExtractor, Turn, Views
from vidkin.features.information import bar_boxes, distinct_boxes, frame_information, look_at, remember_look, small_luma
from vidkin.media import Frames, ProbedVideo, iter_frames
from vidkin.media.frames import join_frames
from vidkin.similarity import WHOLE, Box, FrameFeatures

# Least intersection over union at which a box counts as one found before.
_SAME = 0.8

_THIRDS = (0.0, 1 / 3, 2 / 3)
_BETWEEN_THIRDS = (1 / 6, 1 / 2)
_CORNERS = (0.57, 0.8)
_CENTERS = (0.85, 0.7)

# Boxes found in the frames: side of the luminance that is searched, and frames at most.
_SIDE = 128
_MOST_FRAMES = 24
# Least contrast of a box's edge in gray levels, after blurring along the edge.
_EDGE = 5.0
# Share of frames in which a pixel of a line shows an edge, averaged along the side of a box.
_LEAST_COVERAGE = 0.5
# Lines examined in either direction, of a single picture in which nothing moves, and boxes returned.
_MOST_LINES, LINES_OF_PICTURE = 20, 40
MOST_BOXES = 4
_SMALLEST_SIDE = 0.18
# An inset that shows a room has lines inside; the rectangles they form with its sides are smaller than the inset.
_OF_LARGE = 0.3
# Least deviation in gray levels of a pixel that changes, and the least share of such pixels within a box.
_CHANGES = 3.0
_LEAST_CHANGING = 0.6
_SAME_BOX = 0.8

TURNS: tuple[Turn, ...] = get_args(Turn)
TURNS_FILE = Path(__file__).with_name("data") / "frame_encoder_turns.safetensors"
"""A matrix [D, D] for each turn, fitted by ``research/benchmarks/ship_turns.py``; its metadata names the encoder."""

_Number = TypeVar("_Number", bound=np.generic)


def _column(left: float) -> Box:
    return (left, 0.0, left + 1 / 3, 1.0)


def _row(top: float) -> Box:
    return (0.0, top, 1.0, top + 1 / 3)


_FIXED: tuple[Box, ...] = (
    WHOLE,
    *(((1 - side) / 2, (1 - side) / 2, (1 + side) / 2, (1 + side) / 2) for side in _CENTERS),
    *(
        (left, top, left + side, top + side)
        for side in _CORNERS[::-1]
        for top in (0.0, 1.0 - side)
        for left in (0.0, 1.0 - side)
    ),
    *map(_column, _THIRDS),
    *map(_row, _THIRDS),
    (0.0, 0.0, 0.5, 1.0),
    (0.5, 0.0, 1.0, 1.0),
    (0.0, 0.0, 1.0, 0.5),
    (0.0, 0.5, 1.0, 1.0),
)
GRID: tuple[Box, ...] = (*_FIXED, *map(_column, _BETWEEN_THIRDS))
"""The fixed views of a wide picture: left, top, right, bottom as shares of it, the whole picture first.

Centers and corners are the parts a crop keeps; columns are where the window of an upright reframe can be (five places
along which it moves); halves and small corners are the parts of a split screen.
"""
_TALL_GRID: tuple[Box, ...] = (*_FIXED, *map(_row, _BETWEEN_THIRDS))
# Views of mirrored frames besides the boxes found: the whole and the parts a crop keeps.
_MIRRORED = 1 + len(_CENTERS) + 4
DISTINCT_VIEWS: tuple[Box, ...] = (WHOLE, *GRID[_MIRRORED:])
"""The views of the grid, except those that are nearly the whole picture."""


# What fingerprints without a suffix stand for: change nothing here when the grid changes.
_FIRST_GRID = "906c8e64dcde"


def grid_suffix(views: Views) -> str:
    """What an extractor with views adds to its fingerprint, so that features in other boxes are never mixed.

    Empty for the grid of the first version, with which existing indexes were made, and without views.
    """
    if views == "none":
        return ""
    grid = short_digest([GRID, _TALL_GRID, _MIRRORED, MOST_BOXES])
    return "" if grid == _FIRST_GRID else f"-grid-{grid}"


@check_arguments
def check_views(name: str) -> Views:
    """Return the name if it is ``none``, ``query`` or ``both``.

    Raises:
        InvalidArgumentError: The name is not one of these.
    """
    for views in get_args(Views):
        if name == views:
            return views  # type: ignore[no-any-return]
    raise InvalidArgumentError(f"views must be one of {', '.join(get_args(Views))}, got {name!r}")


def crop_box(images: NDArray[np.uint8], box: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    """The part of images [T, H, W, 3] inside a box of shares (left, top, right, bottom), at least one pixel wide."""
    height, width = images.shape[1:3]
    left, top = min(round(box[0] * width), width - 1), min(round(box[1] * height), height - 1)
    right, bottom = max(round(box[2] * width), left + 1), max(round(box[3] * height), top + 1)
    return images[:, top:bottom, left:right]


def mirror_boxes(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes [N, 4] in the picture flipped left to right."""
    return np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)


@check_arguments
def place_boxes(boxes: NDArray[np.float32], pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Convert boxes [V, 4] from shares of the pictures inside frames to shares of the frames, [T, V, 4].

    Args:
        boxes: [V, 4] left, top, right, bottom.
        pictures: [T, 4], where the picture is in each frame: the whole frame, or the part between black bars.

    Raises:
        InvalidArgumentError: One of them has another shape.
    """
    for name, given in (("boxes", boxes), ("pictures", pictures)):
        if given.ndim != 2 or given.shape[1] != 4:
            raise InvalidArgumentError(f"{name} must be [N, 4], got {list(given.shape)}")
    corner = pictures[:, None, [0, 1, 0, 1]]
    size = (pictures[:, 2:] - pictures[:, :2])[:, None, [0, 1, 0, 1]]
    return corner + size * boxes


def shares_of_edges(edges: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The pictures of :func:`vidkin.features.bar_boxes` as boxes: left, top, right, bottom as shares, [T, 4] float32.

    Args:
        edges: [T, 4] top, bottom, left, right in pixels.
        shape: Shape of the frames, (T, H, W, 3).
    """
    height, width = shape[1:3]
    return (edges[:, [2, 0, 3, 1]] / [width, height, width, height]).astype(np.float32)


@check_arguments
def features_of_views(
    describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    frames: Frames,
    fingerprint: str,
    *,
    mirror: bool = False,
    boxes: NDArray[np.float32] | None = None,
) -> FrameFeatures:
    """Features of frames in every view, for extractors that know only whole images.

    Views are cut from the picture between black bars; the whole is described as the extractor sees it.

    Args:
        describe: Function from images [T, H, W, 3] to descriptors [T, R, D].
        frames: T frames.
        fingerprint: Fingerprint of the extractor.
        mirror: Flip the frames first.
        boxes: [V, 4] shares of the (flipped) picture, the whole first; None describes only the whole.

    Returns:
        Features with the boxes as shares of every frame.
    """
    images = np.ascontiguousarray(frames.images[:, :, ::-1]) if mirror else frames.images
    timestamps = frames.timestamps.copy()
    if boxes is None:
        return FrameFeatures.of_whole(describe(images), timestamps, frame_information(frames.images), fingerprint)
    whole = describe(images)
    values = np.zeros((len(images), len(boxes), *whole.shape[1:]), whole.dtype)
    values[:, 0] = whole
    look = look_at(frames.images)
    edges = bar_boxes(images) if mirror else look.edges
    for top, bottom, left, right in distinct_boxes(edges):
        rows = np.flatnonzero((edges == (top, bottom, left, right)).all(axis=1))
        pictures = images[rows, top:bottom, left:right]
        for view, box in enumerate(boxes.tolist()[1:], start=1):
            values[rows, view] = describe(np.ascontiguousarray(crop_box(pictures, tuple(box))))
    placed = place_boxes(boxes, shares_of_edges(edges, images.shape))
    return FrameFeatures(values, timestamps, look.information, fingerprint, boxes=placed)


class ViewPlan:
    """Boxes in which consecutive stretches of a video are described: the grid, then up to four found in the frames.

    A box found again in the next stretch keeps its place, so that a view means the same throughout the video.
    """

    def __init__(self) -> None:
        self._found: list[tuple[float, ...] | None] = [None] * MOST_BOXES
        self._grid: tuple[Box, ...] | None = None

    def boxes(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Boxes [V, 4] for frames [T, H, W, 3] that follow those of the last call; zeros where there is no box.

        Shares of the picture between black bars.
        """
        if self._grid is None:
            top, bottom, left, right = look_at(images).edges[0].tolist() if len(images) else (0, 0, 0, 0)
            self._grid = GRID if right - left >= bottom - top else _TALL_GRID
        boxes = [tuple(box) for box in find_content_boxes(images, between_bars=True).tolist()]
        places: list[tuple[float, ...] | None] = [None] * MOST_BOXES
        for place, before in enumerate(self._found):
            again = next((box for box in boxes if before is not None and overlap(box, before) >= _SAME), None)
            if again is not None:
                places[place] = again
                boxes.remove(again)
        # New boxes prefer places without a box, so that earlier boxes are not mixed with others.
        free = sorted(
            (at for at in range(MOST_BOXES) if places[at] is None), key=lambda at: self._found[at] is not None
        )
        for place, box in zip(free, boxes, strict=False):
            places[place] = box
        self._found = [box or before for box, before in zip(places, self._found, strict=True)]
        return np.array([*self._grid, *(box or (0.0, 0.0, 0.0, 0.0) for box in places)], dtype=np.float32)


@check_arguments
def describe_views(
    extractor: FrameExtractor,
    frames: Frames,
    boxes: NDArray[np.float32],
    *,
    mirrors: tuple[bool, ...] = (False,),
    begun: int = 0,
    stride: int = 1,
) -> tuple[FrameFeatures, ...]:
    """Features of frames in the boxes of a :class:`ViewPlan`; mirrored frames in the whole, the crops and the found
    boxes.

    The whole picture is described in every frame, its parts in every ``stride``-th frame of a video; their features
    are zero in the other frames.

    Args:
        extractor: An extractor of frames.
        frames: T frames.
        boxes: [V, 4] shares of the unflipped picture between black bars; zeros where there is no box.
        mirrors: Orientations to describe: unchanged (False), flipped left to right (True).
        begun: Number of frames of the video before these frames.
        stride: Distance of frames whose parts are described; 1 describes them in every frame.

    Returns:
        Features [T, V, R, D] for each of ``mirrors``; the boxes are shares of the unflipped frame, bars included.
    """
    seen = (np.arange(len(frames)) + begun) % stride == 0
    stretches = [(rows, _chosen(frames, rows), parts) for rows, parts in ((seen, True), (~seen, False)) if rows.any()]
    results = []
    for mirror in mirrors:
        places = np.concatenate([boxes[:_MIRRORED], boxes[len(GRID) :]]) if mirror else boxes
        there = np.flatnonzero(places.any(axis=1))
        cut = places[there]
        if mirror:
            cut = mirror_boxes(cut)
        described = [
            (
                np.flatnonzero(rows)[:, None],
                parts,
                extractor.extract(stretch, mirror=mirror, boxes=cut[: None if parts else 1]),
            )
            for rows, stretch, parts in stretches
        ]
        first = described[0][2]
        values = np.zeros((len(frames), len(places), *first.values.shape[2:]), first.values.dtype)
        information = np.zeros(len(frames), np.float32)
        placed = np.tile(places, (len(frames), 1, 1))
        for rows, parts, features in described:
            information[rows[:, 0]] = features.information
            if features.boxes is not None:
                pictures = features.boxes[:, 0]
                placed[rows, there] = place_boxes(places[there], mirror_boxes(pictures) if mirror else pictures)
            values[rows, there if parts else there[:1]] = features.values
        results.append(FrameFeatures(values, frames.timestamps.copy(), information, first.fingerprint, boxes=placed))
    return tuple(results)


def _chosen(frames: Frames, rows: NDArray[np.bool_]) -> Frames:
    """Some of the frames, of which the same is known."""
    if rows.all():
        return frames
    chosen = frames[rows]
    remember_look(chosen.images, look_at(frames.images).of(rows))
    return chosen


@check_arguments
def find_content_boxes(
    images: NDArray[np.uint8],
    *,
    between_bars: bool = False,
    only_lines: bool = False,
    most_lines: int = _MOST_LINES,
) -> NDArray[np.float32]:
    """Boxes [N, 4] (left, top, right, bottom; shares of the picture) that may hold a video of their own, best first.

    Luma at 128 x 128; in each of up to 24 frames a pixel is an edge of a column where the difference across it is the
    largest among its neighbors and at least 5 gray levels; its persistence is the share of frames in which it is one.
    Boxes are made of the lines with the most persistent pixels and of the frame's borders; the coverage of a side is
    the mean persistence along it (1 for a border of the frame). A box counts if every side has a coverage of at least
    .5 and is at least 18 % as long as the picture. If everything that changes lies in one such rectangle and fills 60
    % of it, that counts, too: the sides of a screen in a photograph are not upright.

    Args:
        images: [T, H, W, 3] uint8, frames of one video.
        between_bars: Examine only the picture between the black bars of each frame; boxes are shares of that picture.
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
    small = look_at(images).luma[chosen] if between_bars else small_luma(images[chosen])
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
    for sure, box in [] if only_lines else _changing_boxes(small):
        boxes, certainty = np.concatenate([boxes, [box]]), np.append(certainty, sure)
    # The most certain first; of equally certain ones the one farthest to the right.
    boxes = boxes[np.lexsort((*boxes.T[::-1], certainty))[::-1]]
    boxes = boxes[_overlaps(boxes, (0, 0, _SIDE, _SIDE)) < _SAME_BOX]
    distinct: list[tuple[int, ...]] = []
    while len(boxes) and len(distinct) < MOST_BOXES:
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


def _changing_boxes(luma: NDArray[np.float32]) -> list[tuple[float, tuple[int, int, int, int]]]:
    """The rectangle around everything that changes in frames [T, S, S] while the rest stands still, with its
    certainty."""
    variance = np.square(luma).mean(axis=0) - np.square(luma.mean(axis=0))
    # Most of the 25 samples around a sample; beyond the border nothing changes.
    near = np.pad((variance > _CHANGES**2).astype(np.int64), 2)
    for axis in (0, 1):
        near = sliding_window_view(near, 5, axis=axis).sum(axis=-1)
    changing = near > 12
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


def turned(images: NDArray[_Number], turn: Turn) -> NDArray[_Number]:
    """Images [..., H, W] after the turn."""
    if turn == "mirrored":
        return images[..., ::-1]
    return np.rot90(images, -int(turn.split()[1]) // 90, axes=(-2, -1))


def turn_frames(frames: Frames, degrees: int) -> Frames:
    """The frames turned clockwise by 0, 90, 180 or 270 degrees."""
    if degrees == 0:
        return frames
    images = np.ascontiguousarray(np.rot90(frames.images, -degrees // 90, axes=(1, 2)))
    return Frames(images, frames.timestamps)


@check_arguments
def turn_boxes_back(boxes: NDArray[_Number], degrees: int) -> NDArray[_Number]:
    """Boxes [..., 4] in a picture turned clockwise, as boxes in the picture before; boxes of zeros stay.

    Args:
        boxes: Left, top, right, bottom as shares of the turned picture.
        degrees: 0, 90, 180 or 270.

    Raises:
        InvalidArgumentError: The boxes have another shape, or frames cannot be turned by so many degrees.
    """
    check_choice("degrees", degrees, (0, 90, 180, 270))
    if not boxes.ndim or boxes.shape[-1] != 4:
        raise InvalidArgumentError(f"boxes must be [..., 4], got {list(boxes.shape)}")
    left, top, right, bottom = np.moveaxis(boxes, -1, 0)
    one = boxes.dtype.type(1)
    back = {
        0: (left, top, right, bottom),
        90: (top, one - right, bottom, one - left),
        180: (one - right, one - bottom, one - left, one - top),
        270: (one - bottom, left, one - top, right),
    }[degrees]
    return np.where(boxes.any(axis=-1, keepdims=True), np.stack(back, axis=-1), boxes)


def predict_turned(features: FrameFeatures, turn: Turn, *, encoder: str) -> FrameFeatures | None:
    """Features of whole pictures as they would be after the turn; None if nobody fitted that for this encoder.

    A vector v becomes ``v M / |v M|``. For footage that the matrices were not fitted to, the median cosine with the
    true vector is about .88 (mirrored), and with those of other videos about .1: enough to choose the pairs that
    deserve a look, not to score them.

    Args:
        features: [T, V, 1, D]; only the first view is used.
        turn: What is done to the picture.
        encoder: Digest of the encoder's settings and weights.
    """
    fitted, matrices = _shipped()
    if encoder != fitted or features.values.shape[2:] != (1, len(matrices[turn])):
        return None
    values = features.whole[:, 0].astype(np.float32) @ matrices[turn]
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    values /= np.where(lengths > 0, lengths, 1.0)
    return replace(features.views([0]), values=values[:, None, None])


@cache
def _shipped() -> tuple[str, dict[str, NDArray[np.float32]]]:
    """Digest of the encoder that the matrices were fitted to, and the matrices."""
    from safetensors import safe_open

    with safe_open(TURNS_FILE, framework="np") as file:
        return file.metadata()["encoder"], {name: file.get_tensor(name).astype(np.float32) for name in TURNS}


# Extract the features of a file: the one place that distinguishes extractors of frames and of clips. Who reads a file
# beats at every sign of life; `Silence` measures how long there was none.


Phase = Literal["decoding", "describing"]
"""What is happening to a file: its frames are being decoded, or the extractor is describing them."""

HANG_TIMEOUT = 120.0
"""Seconds without a packet read or a frame decoded after which a decoder counts as hung."""

# At most this many seconds of silence are counted between two checks: longer gaps mean that the checking process was
# busy or stopped, or the machine asleep, and say nothing about the reader.
_MOST_UNSEEN = 1.0
# An extractor can be silent this many times as long as a decoder.
_DESCRIBING_FACTOR = 5

# Frames described at a time, and bytes of them: networks like batches, and memory must grow neither with the length of
# the video nor with the size of its frames.
_FRAMES_A_CHUNK = 32
_BYTES_A_CHUNK = 64 << 20


@check_arguments
def describe_file(
    path: PathLike | ProbedVideo,
    extractor: FrameExtractor,
    *,
    duration: float,
    rate: float,
    start: float = 0.0,
    end: float | None = None,
    mirrors: tuple[bool, ...] = (False,),
    turned: int = 0,
    views: bool = False,
    part_rate: float | None = None,
    batch: int = 32,
    threads: int = 0,
    beat: Callable[[Phase], None] = lambda phase: None,
    on_damage: Callable[[str], None] | None = None,
    on_frames: Callable[[Frames], None] | None = None,
) -> Iterator[tuple[FrameFeatures, ...]]:
    """Extract features of consecutive stretches of a file, in order; memory does not grow with its length.

    Args:
        path: A video or an image; a ProbedVideo is not reopened for its first pass.
        extractor: An extractor of frames or of clips.
        duration: Duration of the file in seconds; 0 if unknown.
        rate: Descriptors per second.
        start, end: Limits of the stretch in seconds; an ``end`` of None is the end of the file.
        mirrors: Orientations in which each stretch is described: unchanged (False), flipped left to right (True).
        turned: Degrees, 0, 90, 180 or 270, by which frames are turned clockwise first; boxes stay those of the picture
            as it is.
        views: Describe every frame in views (:class:`vidkin.features.ViewPlan`), not only as a whole. Mirrored frames
            are described as a whole and in the boxes found in them; clips only as a whole.
        part_rate: How many times per second parts of the picture are described, rounded to a whole multiple of the
            frame interval; None describes them in every frame.
        batch: Frames decoded at a time, between two calls of ``beat``.
        threads: Decoder threads, as in :func:`vidkin.media.iter_frames`.
        beat: Callback for every packet read and every change of phase.
        on_damage: Callback as in :func:`vidkin.media.iter_frames`, called for each pass over the file.
        on_frames: Callback for the frames before they are turned and described.

    Returns:
        For each stretch, one FrameFeatures per orientation in ``mirrors``.

    Raises:
        MediaError: The file cannot be read.
    """

    def read(rate: float | None, start: float, end: float | None) -> Iterator[Frames]:
        for frames in iter_frames(
            path,
            rate=rate,
            start=start,
            end=end,
            short_side=extractor.short_side,
            batch=batch,
            threads=threads,
            on_read=lambda: beat("decoding"),
            on_damage=on_damage,
        ):
            beat("describing")
            if on_frames is not None:
                on_frames(frames)
            yield turn_frames(frames, turned)
            beat("decoding")
        beat("describing")  # frames not yet described

    if isinstance(extractor, ClipExtractor):
        plan = extractor.plan(duration, rate=rate, start=start, end=end)
        streams = [
            extractor.describe_clips(read(plan.rate, plan.start, plan.end), plan, mirror=mirror) for mirror in mirrors
        ]
        yield from zip(*streams, strict=True)
        return
    plan_of_views = ViewPlan()
    begun = 0
    stride = 1 if part_rate is None else max(1, round(rate / part_rate))
    for frames in _chunks(read(rate, start, end)):
        if views:
            boxes = plan_of_views.boxes(frames.images)
            described = describe_views(extractor, frames, boxes, mirrors=mirrors, begun=begun, stride=stride)
            begun += len(frames)
        else:
            described = tuple(_features(extractor.name, extractor.extract(frames, mirror=mirror)) for mirror in mirrors)
        yield tuple(_turned_back(features, turned) for features in described)


def _features(name: str, described: object) -> FrameFeatures:
    """What an extractor has returned, which may be anybody's."""
    if not isinstance(described, FrameFeatures):
        raise ExtractorError(f"{name}: extract must return FrameFeatures, got {type(described).__name__}")
    return described


def _turned_back(features: FrameFeatures, turned: int) -> FrameFeatures:
    """Features whose boxes are those of the frames before they were turned."""
    if turned == 0 or features.boxes is None:
        return features
    return replace(features, boxes=turn_boxes_back(features.boxes, turned))


class Silence:
    """Measures the silence of one reader of files.

    Args:
        hang_timeout: Seconds that a decoder can be silent; an extractor can be silent five times as long.
    """

    def __init__(self, hang_timeout: float = HANG_TIMEOUT) -> None:
        self._hang_timeout = hang_timeout
        self._phase: Phase = "decoding"
        self.seconds = 0.0
        self._looked = time.monotonic()

    def end(self, phase: Phase | None = None) -> None:
        """Note a sign of life; ``phase`` is the new phase of the work, None if it has not changed."""
        self.seconds = 0.0
        self._looked = time.monotonic()
        self._phase = phase or self._phase

    def measure(self) -> str | None:
        """Add the time since the last call; returns the cause in one line once this counts as a hang."""
        now = time.monotonic()
        self.seconds += min(now - self._looked, _MOST_UNSEEN)
        self._looked = now
        who, limit = "decoder", self._hang_timeout
        if self._phase == "describing":
            who, limit = "extractor", _DESCRIBING_FACTOR * self._hang_timeout
        return f"the {who} hung: no progress for {limit:g} s" if self.seconds > limit else None


def _chunks(batches: Iterator[Frames]) -> Iterator[Frames]:
    """Batches, joined until there are enough frames to describe together."""
    waiting: list[Frames] = []
    for batch in batches:
        waiting.append(batch)
        size = sum(part.images.nbytes for part in waiting)
        if sum(map(len, waiting)) >= _FRAMES_A_CHUNK or size >= _BYTES_A_CHUNK:
            yield join_frames(waiting)
            waiting = []
    if waiting:
        yield join_frames(waiting)
