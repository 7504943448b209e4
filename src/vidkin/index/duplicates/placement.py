"""Align a copy with another video in time and space, using a few frames of both.

The boxes and times of a match are approximate, because they come from sampled frames; determining the kind of copy
needs an exact alignment.

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

# Number of moments compared, and shorter side of their frames in pixels. Moments are chosen from ``_GRID`` evenly
# spaced moments of the other video, so that all its copies are compared with the same frames, which are read once.
_MOMENTS, _SHORT_SIDE, _GRID = 4, 288, 8
# Shorter side in pixels of the small images for the search, and of the larger ones for the exact alignment.
_LINES, _FINE_LINES = 72, 108
# Lags in seconds, relative to the line of a match, at which the same moment is searched for.
_LAGS = np.arange(-15, 16) / 25.0
# Step between the lags at which an alignment is computed.
_LAG_STEP = 8
# Agreement above which no further alignment is tried; agreement above which frames count as aligned without moving
# them; and minimum gain in agreement for a later guess to replace an earlier one.
_SURE, _IN_PLACE, _MIN_GAIN = 0.95, 0.985, 0.02
# Minimum agreement of a moment that counts, in absolute terms and as a fraction of the best agreement.
_MIN_AGREEMENT, _MIN_RATIO = 0.75, 0.85
# Minimum lead in agreement of the best lag for its time to be exact, and maximum deviation of a moment from the common
# lag in steps, because frames are early or late if the speed differs.
_DISTINCT, _NEARBY = 0.01, 3
# Maximum deviation from speed 1 that is ignored, and maximum deviation in seconds of moments from a fitted line.
_SAME_SPEED, _SAME_LINE = 0.01, 0.06
# Maximum error of moments in seconds at equal speed: two frames at ten frames per second.
_OFF_BY_FRAMES = 0.21
# A segment's speed is used without confirmation by the moments if it deviates from 1 by at least this much.
_MIN_SPEED_CHANGE = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class PlacedFrames:
    """Frames of two videos that show the same moments, and their alignment.

    Attributes:
        first: [N, H, W, 3] frames of the copy, rotated and flipped to match the other video.
        second: [N, H', W', 3] frames of the other video.
        first_times, second_times: [N] seconds.
        placement: Position of the copy's frame in that of the other video.
        agreement: Correlation in [-1, 1] of the common regions.
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
        """Yield the common region of each moment in both videos, as images [*size, 3]."""
        boxes = self.placement.inside_box, self.placement.covered_box
        for one, other in zip(self.first, self.second, strict=True):
            sides = (
                np.asarray(_crop(Image.fromarray(image), box, size))
                for image, box in zip((one, other), boxes, strict=True)
            )
            yield next(sides), next(sides)


def place_frames(first: str, second: str, segment: Segment, lengths: tuple[float, float]) -> PlacedFrames | None:
    """Align the frames of two videos in time and space.

    Four frames of the first video are read, and the frames of the second within 0.6 s of the same moments. The boxes of
    the match, the content areas without bars, or the whole frames are aligned, starting from several lags along the
    line of the match; see :func:`vidkin.files.frame_alignment.align_frames`.

    Args:
        first, second: The files.
        segment: The match, with the first file as the query.
        lengths: Durations of both files in seconds.

    Returns:
        The aligned frames; None if the frames do not agree.

    Raises:
        MediaError: A file cannot be read.
    """
    moments = _moments(segment, lengths[1])
    there = segment.query_start + (moments - segment.target_start) / segment.speed
    images, times = read_moments(first, there, lengths[0], short_side=_SHORT_SIDE)
    pose = pose_from_segment(segment)
    own = _Frames(np.asarray(pose.apply(images), np.uint8), times)
    status = os.stat(second)
    others = _read_around(second, status.st_size, status.st_mtime_ns, tuple(moments.tolist()), lengths[1])
    # Positions [N, L] of the second video's frames for each moment and lag.
    line = segment.target_start + segment.speed * (times - segment.query_start)
    rows = np.abs(others.times - (line[:, None] + _LAGS)[..., None]).argmin(axis=2)
    # A box of a segment that covers the whole frame includes bars; use the content area instead.
    boxes, pictures = (pose.apply_to_box(segment.query_box), segment.target_box), (own.picture, others.picture)
    own_part, part = (picture if box == WHOLE else box for box, picture in zip(boxes, pictures, strict=True))
    best: _Attempt | None = None
    for found in _try_alignments(own, others, rows, dict.fromkeys([(own_part, part), pictures, (WHOLE, WHOLE)])):
        if best is None or found.rank > best.rank + _MIN_GAIN:
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


def pose_from_segment(segment: Segment) -> Pose:
    """Pose from the orientation of a segment's query frames to that of its target frames."""
    return Pose(segment.mirrored, segment.turned // 90)


def _moments(segment: Segment, length: float) -> NDArray[np.float64]:
    """Choose the target times to compare, in seconds."""
    grid = length * (np.arange(_GRID) + 0.5) / _GRID
    inside = grid[(grid >= segment.target_start) & (grid <= segment.target_end)]
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
        """Small grayscale images of a region of the frames, with square pixels."""
        if box not in self._small:
            self._small[box] = _crop_gray(self.images, box, _size_of(self.images, box, _LINES))
        return self._small[box]


@lru_cache(maxsize=2)
def _read_around(path: str, size: int, changed: int, moments: tuple[float, ...], length: float) -> _Frames:
    """Read the frames around some moments of a file; cached, because further copies are compared with the same frames.

    Args:
        path: The file.
        size, changed: Size and modification time of the file, part of the cache key.
        moments: Seconds.
        length: Duration of the file in seconds.

    Raises:
        MediaError: The file cannot be read.
    """
    return _Frames(*read_moments(path, (np.array(moments)[:, None] + _LAGS).ravel(), length, short_side=_SHORT_SIDE))


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """An alignment, and for each frame of the first video the best matching frame of the second.

    Attributes:
        placement: Position of the first video's frame in that of the second.
        rows: [N] positions of the second video's frames.
        agreements: [N] agreement of the frames.
        ahead: [N] lead in agreement over other lags.
        pictures: Content areas of both videos without bars.
    """

    placement: FrameAlignment
    rows: NDArray[np.int64]
    agreements: NDArray[np.float64]
    ahead: NDArray[np.float64]
    pictures: tuple[Box, Box]

    @property
    def rank(self) -> float:
        """Median agreement, reduced if neither content area contains the other, because at the wrong moment of a camera
        movement, each shows something that the other does not."""
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
        """Mask [N] of the frames that agree; the others show something different."""
        highest = float(self.agreements.max())
        return np.asarray(self.agreements >= min(highest, max(_MIN_AGREEMENT, _MIN_RATIO * highest)))

    @property
    def agreement(self) -> float:
        """Agreement of the frames that count."""
        return float(self.agreements[self.counted].mean())


def _try_alignments(
    own: _Frames, others: _Frames, rows: NDArray[np.int64], parts: Iterable[tuple[Box, Box]]
) -> Iterator[_Attempt]:
    """Yield alignments of regions of both videos, starting at the lag at which they agree best without alignment, then
    at three other lags, because a panning or zooming camera shows a different crop a moment later."""
    shown = own.picture, others.picture
    for boxes in parts:
        ones, pictures = own.small(boxes[0]), others.small(boxes[1])
        plain, ahead = _best_rows(ones, pictures, rows, FrameAlignment())
        agreements = _agreements(ones, pictures[plain], FrameAlignment())
        if np.median(agreements) >= _IN_PLACE:
            yield _Attempt(_expand_placement(FrameAlignment(), boxes), plain, agreements, ahead, shown)
        for start in (plain, *rows[:, _LAG_STEP - 1 :: _LAG_STEP].T):
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
    """Refine an alignment with larger images of the common regions."""
    boxes = _clip_box(found.placement.inside_box), _clip_box(found.placement.covered_box)
    images = own.images, others.images[found.rows]
    ones, pictures = (
        _crop_gray(each, box, _size_of(each, box, _FINE_LINES)) for each, box in zip(images, boxes, strict=True)
    )
    alignment = align_frames(ones, pictures)[0]
    agreements = _agreements(ones, pictures, alignment)
    return replace(found, placement=_expand_placement(alignment, boxes), agreements=agreements)


def _best_rows(
    ones: NDArray[np.float32], pictures: NDArray[np.float32], rows: NDArray[np.int64], alignment: FrameAlignment
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the best match among frames [M, H', W'] for each frame in [N, H, W], given an alignment.

    Matches are at a common lag, give or take a few frames. Returns their positions [N] and their lead over other lags
    [N].
    """
    inside = _inside(alignment, ones.shape[1:])
    similar = np.empty(rows.shape)
    for moment, near in enumerate(rows):
        once, back = np.unique(near, return_inverse=True)
        aligned = alignment.resample(pictures[once], (ones.shape[1], ones.shape[2]))
        one, others = (each[:, *inside].reshape(len(each), -1) for each in (ones[moment][None], aligned))
        one, others = (each - each.mean(axis=1, keepdims=True) for each in (one, others))
        spreads = np.maximum(np.linalg.norm(one) * np.linalg.norm(others, axis=1), one.size)
        similar[moment] = ((others @ one[0]) / spreads)[back]
    lag = int(np.median(similar, axis=0).argmax())  # the median is robust to a black frame
    first, moments = max(0, lag - _NEARBY), np.arange(len(rows))
    nearest = first + similar[:, first : lag + _NEARBY + 1].argmax(axis=1)
    columns = np.where(similar[moments, nearest] >= similar[:, lag] + _DISTINCT, nearest, lag)
    return rows[moments, columns], similar[:, lag] - np.median(similar, axis=1)


def _agreements(
    ones: NDArray[np.float32], others: NDArray[np.float32], alignment: FrameAlignment
) -> NDArray[np.float64]:
    """Agreement [N] of the common regions; 0 for frames without content."""
    rows, columns = _inside(alignment, ones.shape[1:])
    aligned = alignment.resample(others, (ones.shape[1], ones.shape[2]))
    return np.nan_to_num(measure_agreement(ones[:, rows, columns], aligned[:, rows, columns]))


def _inside(alignment: FrameAlignment, size: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns of a frame of this size that the other frame shows, at least four of each."""
    left, top, right, bottom = alignment.inside_box
    sides = ((top, bottom, size[0]), (left, right, size[1]))
    low = [min(round(first * count), count - 4) for first, _, count in sides]
    rows, columns = (
        slice(at, max(at + 4, round(last * count))) for at, (_, last, count) in zip(low, sides, strict=True)
    )
    return rows, columns


def _expand_placement(alignment: FrameAlignment, boxes: tuple[Box, Box]) -> FrameAlignment:
    """Convert the position of one region in another to the position of one whole frame in the other."""
    scales, shifts = [], []
    for axis in (0, 1):
        (low, high), (there, end) = ((box[axis], box[axis + 2]) for box in boxes)
        scales.append(alignment.scale[axis] * (end - there) / (high - low))
        shifts.append(there + alignment.shift[axis] * (end - there) - scales[-1] * low)
    return FrameAlignment((scales[0], scales[1]), (shifts[0], shifts[1]))


def fit_line(placed: PlacedFrames, segment: Segment) -> tuple[float, float]:
    """Return offset and speed of the line between two videos: second = offset + speed * first, in seconds.

    If the aligned moments determine a line, it is used; otherwise the speed of the segment is, or 1 if it is close to
    1, because a match of a nearly still scene may have any speed.
    """
    one, other = placed.first_times, placed.second_times
    lag = float(np.median(other - one))
    if float(np.abs(other - one - lag).max()) <= _OFF_BY_FRAMES:
        return lag, 1.0
    if placed.exact and len(one) > 2:
        speed, offset = np.polyfit(one, other, 1).tolist()
        if float(np.abs(offset + speed * one - other).max()) <= _SAME_LINE and speed > 0:
            return (offset, speed) if abs(speed - 1) >= _SAME_SPEED else (lag, 1.0)
    speed = segment.speed if abs(segment.speed - 1) >= _MIN_SPEED_CHANGE else 1.0
    return float(np.median(other - speed * one)), speed


def follow_line(
    first: str,
    second: str,
    times: NDArray[np.float64],
    line: tuple[float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> NDArray[np.float64]:
    """Return the agreement [T] in [-1, 1] of two videos along a line.

    Args:
        first, second: The files.
        times: [T] times in the first video in seconds.
        line: Offset and speed: the times in the second video are ``line[0] + line[1] * times``.
        placed: Alignment of the frames.
        lengths: Durations of both files in seconds.

    Raises:
        MediaError: A file cannot be read.
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
        sides.append(_crop_gray(upright, box, (_LINES, _LINES * 4 // 3))[back])
    return sides[0], sides[1]


def _size_of(images: NDArray[np.uint8], box: Box, lines: int) -> tuple[int, int]:
    """Size (H, W) of a region of frames, with square pixels and ``lines`` pixels along its shorter side."""
    height, width = ((box[axis + 2] - box[axis]) * images.shape[2 - axis] for axis in (1, 0))
    return max(8, round(lines * height / min(height, width))), max(8, round(lines * width / min(height, width)))


def _crop_gray(images: NDArray[np.uint8], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
    """Grayscale images of a region of frames [T, H, W, 3], resized to this size."""
    return np.stack([np.asarray(_crop(Image.fromarray(image).convert("L"), box, size), np.float32) for image in images])


def _crop(image: Image.Image, box: Box, size: tuple[int, int]) -> Image.Image:
    """Crop an image to a box given in fractions of its size, which may end between pixels, and resize it."""
    edges = (box[0] * image.width, box[1] * image.height, box[2] * image.width, box[3] * image.height)
    return image.resize(size[::-1], Image.Resampling.BILINEAR, box=edges)


def part_of(outer: Box, inner: Box) -> Box:
    """Convert a box relative to ``outer`` to a box relative to the whole frame."""
    width, height = outer[2] - outer[0], outer[3] - outer[1]
    return (
        outer[0] + inner[0] * width,
        outer[1] + inner[1] * height,
        outer[0] + inner[2] * width,
        outer[1] + inner[3] * height,
    )


def _clip_box(box: Box) -> Box:
    """Clip a box to the frame, keeping its width and height at least 0.01."""
    left, top = min(max(box[0], 0.0), 0.99), min(max(box[1], 0.0), 0.99)
    return left, top, min(1.0, max(box[2], left + 0.01)), min(1.0, max(box[3], top + 0.01))
