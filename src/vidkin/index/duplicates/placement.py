"""Align a copy with another video in time and in the frame, using a few frames of both.

The boxes and times of a match are approximate, because they come from sampled frames. The kind of copy can only be
determined from the exact alignment.

Shapes: N moments, M frames of the second video, L lags; H, W pixels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.files.frame_alignment import FrameAlignment, align_frames, measure_agreement
from vidkin.index.duplicates.pictures import find_bars, read_moments
from vidkin.match.pose import PLAIN, Pose
from vidkin.similarity import WHOLE, Box, Segment

# Number of moments compared, and shorter side of their frames in pixels. The moments are among ``_SPREAD`` evenly
# spread moments of the other video, so that all its copies are compared with the same frames, which are read once.
_MOMENTS, _SHORT_SIDE, _SPREAD = 4, 288, 8
# Lines of the small frames for the search, and of the larger frames for the exact alignment.
_LINES, _MORE_LINES = 72, 108
# Lags in seconds from the line of a match at which the same moment is searched for.
_LAGS = np.arange(-15, 16) / 25.0
# Step between the lags that are tried with an alignment of their own.
_LAGS_APART = 8
# Agreement from which no other alignment is tried; agreement from which the frames are not moved; and minimum gain in
# agreement of a later guess over an earlier one.
_SURE, _IN_PLACE, _MORE = 0.95, 0.985, 0.02
# A moment counts if its agreement is at least the first value, and at least the second value times the best agreement.
_MIN_AGREEMENT, _MIN_SHARE_OF_BEST = 0.75, 0.85
# Minimum lead in agreement of the best moment for its time to be exact, and number of lag steps by which it may deviate
# from the other moments, because frames come early or late at another speed.
_DISTINCT, _NEARBY = 0.01, 3
# Maximum deviation of a usual speed from 1, and maximum distance in seconds of moments from their line.
_USUAL_SPEED, _SAME_LINE = 0.01, 0.06
# Maximum error of moments in seconds while both videos run at the same speed: two frames at ten frames per second.
_OFF_BY_FRAMES = 0.21
# Minimum deviation from 1 of a speed that is used even if the moments do not show it.
_OTHER_SPEED = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class PlacedFrames:
    """Frames of two videos that show the same moments, and their alignment.

    Attributes:
        first: [N, H, W, 3] frames of the copy, flipped or rotated to match the other video.
        second: [N, H', W', 3] frames of the other video.
        first_times, second_times: [N] seconds.
        placement: Position of the copy's picture in the other video.
        agreement: Correlation in [-1, 1] of the common parts, over most of the picture.
        first_picture, second_picture: Boxes of the content areas without black bars.
        exact: Whether the moments agree better than the frames just before and after, so that the times are exact.
        pose: How the frames of the copy were rotated and flipped.
    """

    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    first_times: NDArray[np.float64]
    second_times: NDArray[np.float64]
    placement: FrameAlignment
    agreement: float
    first_picture: Box
    second_picture: Box
    exact: bool
    pose: Pose

    def common(self, size: tuple[int, int]) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        """The common part of each moment in both videos, as images [*size, 3]."""
        boxes = self.placement.inside_box, self.placement.covered_box
        for one, other in zip(self.first, self.second, strict=True):
            sides = (
                np.asarray(_cut(Image.fromarray(image), box, size))
                for image, box in zip((one, other), boxes, strict=True)
            )
            yield next(sides), next(sides)


def place_frames(first: str, second: str, segment: Segment, lengths: tuple[float, float]) -> PlacedFrames | None:
    """Find the moments of the second video that the first one shows, and their position in the frame.

    Four frames of the first video are read, and the frames of the second within .6 s of the same moments. The boxes of
    the match, or else the content areas without bars, or else the whole frames are aligned, with each lag along the
    line of the match as a guess; see :func:`vidkin.files.frame_alignment.align_frames`.

    Args:
        first, second: The files.
        segment: Where they match, the first as the query.
        lengths: Durations of both in seconds.

    Returns:
        None if the frames agree nowhere.

    Raises:
        MediaError: One of the files cannot be read.
    """
    moments = _moments(segment, lengths[1])
    there = segment.query_start + (moments - segment.target_start) / segment.speed
    images, times = read_moments(first, there, lengths[0], short_side=_SHORT_SIDE)
    pose = pose_of(segment)
    own = _Frames(np.asarray(pose.apply(images), np.uint8), times)
    status = os.stat(second)
    others = _read_around(second, status.st_size, status.st_mtime_ns, tuple(moments.tolist()), lengths[1])
    # The frames of the second video for each moment and lag [N, L].
    line = segment.target_start + segment.speed * (times - segment.query_start)
    rows = np.abs(others.times - (line[:, None] + _LAGS)[..., None]).argmin(axis=2)
    # The boxes of a segment refer to whole frames, including bars.
    boxes, pictures = (pose.apply_to_box(segment.query_box), segment.target_box), (own.picture, others.picture)
    own_part, part = (picture if box == WHOLE else box for box, picture in zip(boxes, pictures, strict=True))
    best: _Attempt | None = None
    for found in _try_alignments(own, others, rows, dict.fromkeys([(own_part, part), pictures, (WHOLE, WHOLE)])):
        if best is None or found.rank > best.rank + _MORE:
            best = found
        if best.rank >= _SURE:
            break
    if best is None or best.agreement < _MIN_AGREEMENT:
        return None
    kept = np.flatnonzero(best.counted)
    return PlacedFrames(
        own.images[kept],
        others.images[best.rows[kept]],
        times[kept],
        others.times[best.rows[kept]],
        best.placement,
        best.agreement,
        own.picture,
        others.picture,
        bool((best.ahead[kept] >= _DISTINCT).all()),
        pose,
    )


def pose_of(segment: Segment) -> Pose:
    """The pose that brings the query frames of a segment into the orientation of its target."""
    return Pose(segment.mirrored, segment.turned // 90)


def _moments(segment: Segment, length: float) -> NDArray[np.float64]:
    """Times of the target that are compared, in seconds."""
    spread = length * (np.arange(_SPREAD) + 0.5) / _SPREAD
    inside = spread[(spread >= segment.target_start) & (spread <= segment.target_end)]
    if len(inside) < _MOMENTS:
        inside = np.linspace(segment.target_start, segment.target_end, 2 * _MOMENTS + 1)[1::2]
    chosen: NDArray[np.float64] = inside[np.rint(np.linspace(0, len(inside) - 1, _MOMENTS)).astype(np.int64)]
    return chosen


class _Frames:
    """Frames [T, H, W, 3] and their times [T] in seconds.

    Attributes:
        picture: Box of the content area without black bars.
    """

    def __init__(self, images: NDArray[np.uint8], times: NDArray[np.float64]) -> None:
        self.images, self.times = images, times
        height, width = images.shape[1:3]
        top, bottom, left, right = find_bars(images)
        self.picture: Box = left / width, top / height, right / width, bottom / height
        self._small: dict[Box, NDArray[np.float32]] = {}

    def small(self, box: Box) -> NDArray[np.float32]:
        """A part of the frames in gray, small, with square pixels."""
        if box not in self._small:
            self._small[box] = _canvases(self.images, box, _size_of(self.images, box, _LINES))
        return self._small[box]


@lru_cache(maxsize=2)
def _read_around(path: str, size: int, changed: int, moments: tuple[float, ...], length: float) -> _Frames:
    """The frames around some moments of a file of this size and modification time; cached for its next copy.

    Raises:
        MediaError: The file cannot be read.
    """
    return _Frames(*read_moments(path, (np.array(moments)[:, None] + _LAGS).ravel(), length, short_side=_SHORT_SIDE))


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """An alignment, and for each frame of the first video the best matching frame of the second.

    Attributes:
        placement: Position of one picture in the other.
        rows: [N] rows of the frames of the second video.
        agreements: [N] agreement of the frames.
        ahead: [N] lead of the agreement over other lags.
        pictures: Content areas of both without bars.
    """

    placement: FrameAlignment
    rows: NDArray[np.int64]
    agreements: NDArray[np.float64]
    ahead: NDArray[np.float64]
    pictures: tuple[Box, Box]

    @property
    def rank(self) -> float:
        """Agreement, reduced if neither picture contains the other: at the wrong moment of a moving camera, each seems
        to have a border of its own."""
        parts = (self.placement.inside_box, self.placement.covered_box)
        shown = [
            max(
                (part[axis + 2] - part[axis]) / (whole[axis + 2] - whole[axis])
                for part, whole in zip(parts, self.pictures, strict=True)
            )
            for axis in (0, 1)
        ]
        return float(np.median(self.agreements)) - (1.0 - min(1.0, *shown))

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Mask [N] of the frames that agree; the others show something else."""
        highest = float(self.agreements.max())
        return np.asarray(self.agreements >= min(highest, max(_MIN_AGREEMENT, _MIN_SHARE_OF_BEST * highest)))

    @property
    def agreement(self) -> float:
        """Agreement of the frames that count."""
        return float(self.agreements[self.counted].mean())


def _try_alignments(
    own: _Frames, others: _Frames, rows: NDArray[np.int64], parts: Iterable[tuple[Box, Box]]
) -> Iterator[_Attempt]:
    """Align parts of both videos at the lag at which they agree best without moving them, then at three other lags,
    because a panning or zooming camera shows another crop a moment later."""
    shown = own.picture, others.picture
    for boxes in parts:
        ones, pictures = own.small(boxes[0]), others.small(boxes[1])
        plain, ahead = _best_rows(ones, pictures, rows, FrameAlignment())
        agreements = _agreements(ones, pictures[plain], FrameAlignment())
        if np.median(agreements) >= _IN_PLACE:
            yield _Attempt(_expand_placement(FrameAlignment(), boxes), plain, agreements, ahead, shown)
        for start in (plain, *rows[:, _LAGS_APART - 1 :: _LAGS_APART].T):
            alignment = align_frames(ones, pictures[start])[0]
            chosen, ahead = _best_rows(ones, pictures, rows, alignment)
            agreements = _agreements(ones, pictures[chosen], alignment)
            placement = _expand_placement(alignment, boxes)
            found = _Attempt(placement, chosen, agreements, ahead, shown)
            is_moved = np.abs(np.subtract((placement.inside_box, placement.covered_box), WHOLE)).max() > 1 / _LINES
            if (is_moved or (chosen != start).any()) and found.agreement >= _MIN_AGREEMENT:
                found = max(found, _refine(own, others, found), key=lambda each: each.rank)
            yield found


def _refine(own: _Frames, others: _Frames, found: _Attempt) -> _Attempt:
    """Refine an alignment with larger images of the common parts."""
    boxes = _clip_box(found.placement.inside_box), _clip_box(found.placement.covered_box)
    images = own.images, others.images[found.rows]
    ones, pictures = (
        _canvases(each, box, _size_of(each, box, _MORE_LINES)) for each, box in zip(images, boxes, strict=True)
    )
    alignment = align_frames(ones, pictures)[0]
    agreements = _agreements(ones, pictures, alignment)
    return replace(found, placement=_expand_placement(alignment, boxes), agreements=agreements)


def _best_rows(
    ones: NDArray[np.float32], pictures: NDArray[np.float32], rows: NDArray[np.int64], alignment: FrameAlignment
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Best matching frames [N] among [M, H', W'] for frames [N, H, W] in one alignment, at a common lag give or take a
    few frames, and their lead over other lags [N]."""
    inside = _inside(alignment, ones.shape[1:])
    similar = np.empty(rows.shape)
    for moment, near in enumerate(rows):
        once, back = np.unique(near, return_inverse=True)
        aligned = alignment.resample(pictures[once], (ones.shape[1], ones.shape[2]))
        one, others = (each[:, *inside].reshape(len(each), -1) for each in (ones[moment][None], aligned))
        one, others = (each - each.mean(axis=1, keepdims=True) for each in (one, others))
        spreads = np.maximum(np.linalg.norm(one) * np.linalg.norm(others, axis=1), one.size)
        similar[moment] = ((others @ one[0]) / spreads)[back]
    lag = int(np.median(similar, axis=0).argmax())  # one of the moments may be black
    first, moments = max(0, lag - _NEARBY), np.arange(len(rows))
    nearest = first + similar[:, first : lag + _NEARBY + 1].argmax(axis=1)
    columns = np.where(similar[moments, nearest] >= similar[:, lag] + _DISTINCT, nearest, lag)
    return rows[moments, columns], similar[:, lag] - np.median(similar, axis=1)


def _agreements(
    ones: NDArray[np.float32], others: NDArray[np.float32], alignment: FrameAlignment
) -> NDArray[np.float64]:
    """Agreement [N] of the common part; 0 for frames without content."""
    rows, columns = _inside(alignment, ones.shape[1:])
    aligned = alignment.resample(others, (ones.shape[1], ones.shape[2]))
    return np.nan_to_num(measure_agreement(ones[:, rows, columns], aligned[:, rows, columns]))


def _inside(alignment: FrameAlignment, size: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns of a frame of this size that the other frame shows, at least a few."""
    left, top, right, bottom = alignment.inside_box
    sides = ((top, bottom, size[0]), (left, right, size[1]))
    low = [min(round(first * count), count - 4) for first, _, count in sides]
    rows, columns = (
        slice(at, max(at + 4, round(last * count))) for at, (_, last, count) in zip(low, sides, strict=True)
    )
    return rows, columns


def _expand_placement(alignment: FrameAlignment, boxes: tuple[Box, Box]) -> FrameAlignment:
    """Position of one picture in another, given the position of a part of one in a part of the other."""
    scales, shifts = [], []
    for axis in (0, 1):
        (low, high), (there, end) = ((box[axis], box[axis + 2]) for box in boxes)
        scales.append(alignment.scale[axis] * (end - there) / (high - low))
        shifts.append(there + alignment.shift[axis] * (end - there) - scales[-1] * low)
    return FrameAlignment((scales[0], scales[1]), (shifts[0], shifts[1]))


def fit_line(placed: PlacedFrames, segment: Segment) -> tuple[float, float]:
    """Offset and speed of the line between two videos: second = offset + speed * first, in seconds.

    The line through the moments found, if they determine it; otherwise a line at the speed of the segment, or at 1 if
    that is near, because a match of a nearly still scene may have any speed.
    """
    one, other = placed.first_times, placed.second_times
    lag = float(np.median(other - one))
    if float(np.abs(other - one - lag).max()) <= _OFF_BY_FRAMES:
        return lag, 1.0
    if placed.exact and len(one) > 2:
        speed, offset = np.polyfit(one, other, 1).tolist()
        if float(np.abs(offset + speed * one - other).max()) <= _SAME_LINE and speed > 0:
            return (offset, speed) if abs(speed - 1) >= _USUAL_SPEED else (lag, 1.0)
    speed = segment.speed if abs(segment.speed - 1) >= _OTHER_SPEED else 1.0
    return float(np.median(other - speed * one)), speed


def follow_line(
    first: str,
    second: str,
    times: NDArray[np.float64],
    line: tuple[float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> NDArray[np.float64]:
    """Agreement [T] in [-1, 1] of two videos along a line: frames of the first at ``times`` and of the second at
    ``line[0] + line[1] * times``, in the alignment found.

    Raises:
        MediaError: One of the files cannot be read.
    """
    return _agreements(*_read_line(first, second, times, line, placed, lengths), FrameAlignment())


def compare_changes(
    first: str,
    second: str,
    times: NDArray[np.float64],
    line: tuple[float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> float:
    """Correlation in [-1, 1] of what changes in two videos along a line, as in :func:`follow_line`; 0 for stills.

    Two moments of a fixed camera look the same, but do not change in the same way.

    Raises:
        MediaError: One of the files cannot be read.
    """
    one, other = (side - side.mean(axis=0) for side in _read_line(first, second, times, line, placed, lengths))
    spread = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.vdot(one, other)) / spread if spread > 0 else 0.0


def _read_line(
    first: str,
    second: str,
    times: NDArray[np.float64],
    line: tuple[float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Small images [T, H, W] of the common part of two videos along a line."""
    sides = []
    wanted = times, line[0] + line[1] * times
    boxes = placed.placement.inside_box, placed.placement.covered_box
    poses = placed.pose, PLAIN
    for path, moments, box, length, pose in zip((first, second), wanted, boxes, lengths, poses, strict=True):
        images, shown = read_moments(path, moments, length, short_side=2 * _LINES)
        rows = np.clip(np.searchsorted(shown, moments + 1e-3, side="right") - 1, 0, len(shown) - 1)
        once, back = np.unique(rows, return_inverse=True)
        upright = np.asarray(pose.apply(images[once]), np.uint8)
        sides.append(_canvases(upright, box, (_LINES, _LINES * 4 // 3))[back])
    return sides[0], sides[1]


def _size_of(images: NDArray[np.uint8], box: Box, lines: int) -> tuple[int, int]:
    """Size (H, W) of a part of frames with this many square pixels along its shorter side."""
    height, width = ((box[axis + 2] - box[axis]) * images.shape[2 - axis] for axis in (1, 0))
    return max(8, round(lines * height / min(height, width))), max(8, round(lines * width / min(height, width)))


def _canvases(images: NDArray[np.uint8], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
    """A part of frames [T, H, W, 3] in gray, at this size."""
    return np.stack([np.asarray(_cut(Image.fromarray(image).convert("L"), box, size), np.float32) for image in images])


def _cut(image: Image.Image, box: Box, size: tuple[int, int]) -> Image.Image:
    """The part of an image inside a box of shares, which may end between pixels, resized to this size."""
    edges = (box[0] * image.width, box[1] * image.height, box[2] * image.width, box[3] * image.height)
    return image.resize(size[::-1], Image.Resampling.BILINEAR, box=edges)


def part_of(outer: Box, inner: Box) -> Box:
    """Convert a box given in shares of ``outer`` to shares of the whole frame."""
    width, height = outer[2] - outer[0], outer[3] - outer[1]
    return (
        outer[0] + inner[0] * width,
        outer[1] + inner[1] * height,
        outer[0] + inner[2] * width,
        outer[1] + inner[3] * height,
    )


def _clip_box(box: Box) -> Box:
    """Clip a box to the frame, keeping at least a hundredth of it along each side."""
    left, top = min(max(box[0], 0.0), 0.99), min(max(box[1], 0.0), 0.99)
    return left, top, min(1.0, max(box[2], left + 0.01)), min(1.0, max(box[3], top + 0.01))
