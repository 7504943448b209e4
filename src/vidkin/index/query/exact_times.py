"""Refine the times of a match to the frame, by decoding both files around it.

Features have a few frames per second, so a segment may be off by part of their distance; players that show both sides
need the exact frame.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.errors import MediaError
from vidkin.media import Frames, probe, read_frames
from vidkin.media.frames import shown_at
from vidkin.similarity import Box, Segment

PathLike = str | os.PathLike[str]

# Windows of the query along a segment, and the length of each in seconds.
_WINDOWS, _LENGTH = 6, 1.0
# Maximum error of a time in seconds, and of a speed as a share; with the steps of the search.
_FARTHEST, _COARSE, _STEP = 0.75, 0.02, 0.004
_MAX_SPEED_ERROR, _SPEEDS = 0.02, 9
# Speeds that people and converters use: simple ratios, and those of 24, 25 and 30 frames per second. A segment takes
# speed 1, or else the best of these near its own, if that explains nearly as much as any other speed and leaves little
# more unexplained: if frames agree to a thousandth, a difference of four thousandths is significant (but not with few
# windows).
USUAL_SPEEDS = (0.5, 0.8, 5 / 6, 20 / 21, 24 / 25, 1.0, 25 / 24, 1.05, 1.2, 1.25, 1.5, 2.0)
_FARTHEST_SPEED = 0.3
_LIKE_ANY, _LIKE_SIMPLE = 0.97, 0.99
_MAX_UNEXPLAINED, _ROUNDING, _FEW_WINDOWS = 1.5, 0.002, 2
# How much better other boxes must explain the frames to be preferred; and the logarithm of aspect ratios that count as
# equal.
_BETTER_BOXES, _SAME_SHAPE = 0.03, 0.04
# Side in pixels of the grayscale images that are compared.
_SIDE = 24
# How much better another speed must explain the frames to replace the speed of the segment.
_BETTER = 0.01
# Minimum evidence (the cosine of the changes on both sides) to refine a segment.
_MIN_EVIDENCE = 0.3
# Standard deviation of gray levels over time below which a window is too still to determine a time.
_STILL = 0.6

# Search for an end: seconds decoded on either side, the time step, and how often to move on if the end is farther away.
_AROUND, _END_STEP, _MAX_MOVES = 1.5, 0.01, 3
# Minimum correlation of the frames just inside an end to move it; the share of that at which frames still agree; and
# the minimum contrast in gray levels.
_MIN_INSIDE, _AGREES, _SHOWN = 0.5, 0.6, 2.0
# The minimum correlation if no motion confirms the line, and the error of its speed that is corrected to 1: two seconds
# of a still image fit any speed.
_MIN_STILL_INSIDE, _STILL_SPEED = 0.9, 0.2
# A match that ends within so many seconds of the end of a file ends with the file.
_AT_BORDER = 0.1


@dataclass(frozen=True, slots=True)
class _Window:
    """Frames of a window of the query, and of the target around it: n and m of them.

    Attributes:
        middle: Middle of the window in seconds of the query.
        energy: Root mean square of its changes over time.
        times: [n] seconds of the query.
        norm: Euclidean norm of its changes.
        target_times: [m] seconds of the target.
        products: [n, m] inner products of the changes of the query with the frames of the target.
        target_products: [m, m] inner products of the frames of the target.
    """

    middle: float
    energy: float
    times: NDArray[np.float64]
    norm: float
    target_times: NDArray[np.float64]
    products: NDArray[np.float64]
    target_products: NDArray[np.float64]

    def curve(self, pivot: tuple[float, float], speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosine of the changes of both sides, for each shift of a line of this speed through the pivot (query time,
        target time)."""
        # A copy shows the frame that is on screen at each of its times, so all shifts within the shorter frame period
        # fit equally well. Half of it is added so that the middle of these shifts is 0.
        half = min(float(np.median(np.diff(self.target_times))), float(np.median(np.diff(self.times))) * speed) / 2
        times = pivot[1] + (self.times - pivot[0]) * speed + half
        target_times = times + shifts[:, None]
        rows = np.searchsorted(self.target_times, target_times, side="right") - 1
        inside = (rows.min(axis=1) >= 0) & (target_times[:, -1] <= self.target_times[-1] + _LENGTH / 10)
        rows = rows[inside]
        dot = self.products[np.arange(len(times)), rows].sum(axis=1)
        between = self.target_products[rows[:, :, None], rows[:, None, :]].sum(axis=(1, 2)) / len(times)
        spread = self.target_products[rows, rows].sum(axis=1) - between
        curve = np.zeros(len(shifts))
        curve[inside] = np.where(spread > 1e-6, dot / (self.norm * np.sqrt(np.maximum(spread, 1e-6))), 0.0)
        return curve


@check_arguments
def refine_segment(query: PathLike, target: PathLike, segment: Segment, *, threads: int = 1) -> Segment:
    """Refine a segment: the line on which the frames of both files agree best, and the times at which they start and
    stop agreeing.

    One-second windows along the segment are decoded at every frame, shrunk, and reduced to their changes over time, so
    that logos and bars do not count. The shift, and the speed if it clearly differs, maximize the cosine of the changes
    on both sides. An unusual speed, which two seconds of features easily produce, gives way to 1 or a simple ratio if
    that explains nearly as much. Then frames are compared along the line through both ends: an end is where they stop
    agreeing, for example at a cut, or where one of the files begins or ends. An end stays as it is if the frames inside
    it do not agree. If too little moves to determine a line, or the sides do not agree, only nearly identical frames
    move an end.

    Args:
        query, target: The files.
        segment: Where they match, to within three quarters of a second; a backward segment is returned unchanged.
        threads: Decoder threads.

    Returns:
        The refined segment; the given one if a file cannot be read.
    """
    if segment.query_end <= segment.query_start or segment.backwards:
        return segment
    line, evidence = _fit_line(query, target, segment, threads)
    if evidence >= _MIN_EVIDENCE:
        exact = _move_ends(query, target, line, threads, _MIN_INSIDE)
        return replace(exact, query_box=segment.query_box, target_box=segment.target_box)
    if abs(segment.speed - 1.0) < _STILL_SPEED:
        half, there = (segment.query_end - segment.query_start) / 2, _pivot(segment)[1]
        if there >= half:
            line = replace(segment, speed=1.0, target_start=there - half, target_end=there + half)
    still = _move_ends(query, target, line, threads, _MIN_STILL_INSIDE)
    return segment if still == line else still


def _fit_line(query: PathLike, target: PathLike, segment: Segment, threads: int) -> tuple[Segment, float]:
    """Move the segment to the line and boxes that explain the frames of both files best; return it with the
    evidence."""
    readings = [
        window
        for start in _starts(segment.query_start, segment.query_end)
        if (window := _read_window(query, target, segment, start, threads))
    ]
    if not readings:
        return segment, 0.0
    parts = list(readings[0])
    lines = [_best_line([window[part] for window in readings if part in window], segment) for part in parts]
    best = max(range(len(parts)), key=lambda index: lines[index][2] - (_BETTER_BOXES if index else 0.0))
    speed, shift, evidence = lines[best]
    if evidence < _MIN_EVIDENCE:
        return segment, evidence
    segment = replace(segment, query_box=parts[best][0], target_box=parts[best][1])
    middle, there = _pivot(segment)
    start = there + shift - (middle - segment.query_start) * speed
    query_start, query_end = segment.query_start, segment.query_end
    if start < 0:  # the line begins where the target does
        query_start, start = query_start - start / speed, 0.0
    if query_end <= query_start:
        return segment, 0.0
    end = start + (query_end - query_start) * speed
    line = replace(
        segment, query_start=query_start, query_end=query_end, target_start=start, target_end=end, speed=speed
    )
    return line, evidence


def _pivot(segment: Segment) -> tuple[float, float]:
    """The middle of a segment in query and target time; all candidate lines pass near it."""
    half = (segment.query_end - segment.query_start) / 2
    return segment.query_start + half, segment.target_start + half * segment.speed


def refine_segments(query: PathLike, target: PathLike, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Refine all segments of a pair of files with :func:`refine_segment`, with the decoders' own number of threads."""
    return tuple(refine_segment(query, target, segment, threads=0) for segment in segments)


def _starts(start: float, end: float) -> list[float]:
    """Start times of the windows, spread over the segment; fewer in a short one."""
    room = end - start - _LENGTH
    if room <= 0:
        return [start]
    count = min(_WINDOWS, 1 + math.ceil(room / _LENGTH))
    return [start + room * (number + 0.5) / count for number in range(count)]


def _read_window(
    query: PathLike, target: PathLike, segment: Segment, start: float, threads: int
) -> dict[tuple[Box, Box], _Window]:
    """Read one window of the query and the target around it, for each pair of boxes that may match, the segment's own
    first. Empty if the window is still or cannot be read."""
    length = min(_LENGTH, segment.query_end - segment.query_start)
    near = segment.target_start + (start - segment.query_start) * segment.speed
    # An error of the speed grows with the distance from the middle.
    away = abs(start + length / 2 - _pivot(segment)[0]) + length / 2
    reach = _FARTHEST + min(away * _FARTHEST_SPEED * segment.speed, 2 * _FARTHEST)
    low, high = max(0.0, near - reach), near + length * segment.speed + reach
    try:
        one = read_frames(query, rate=None, start=start, end=start + length, short_side=2 * _SIDE, threads=threads)
        other = read_frames(target, rate=None, start=low, end=high, short_side=2 * _SIDE, threads=threads)
    except MediaError:
        return {}  # a damaged part; the other windows are enough
    if len(one) < 3 or len(other) < 3:
        return {}
    windows: dict[tuple[Box, Box], _Window] = {}
    for query_box, target_box in _box_pairs(one, other, segment):
        left = _gray(one, query_box, turned=segment.turned, mirrored=segment.mirrored)
        right = _gray(other, target_box)
        left -= left.mean(axis=0)
        energy = float(np.sqrt((left**2).mean()))
        if energy < _STILL:
            break
        windows[query_box, target_box] = _Window(
            start + length / 2,
            energy,
            one.timestamps,
            float(np.sqrt((left**2).sum())),
            other.timestamps,
            left @ right.T,
            right @ right.T,
        )
    return windows


def _box_pairs(one: Frames, other: Frames, segment: Segment) -> list[tuple[Box, Box]]:
    """The boxes of a segment; if their aspect ratios differ, also the center of either with the aspect ratio of the
    other, because a copy for another screen is cropped as often as squeezed."""
    boxes = segment.query_box, segment.target_box
    shapes = [
        (box[2] - box[0]) * frames.images.shape[2] / max((box[3] - box[1]) * frames.images.shape[1], 1e-6)
        for box, frames in zip(boxes, (one, other), strict=True)
    ]
    pairs = [boxes]
    ratio = max(shapes[0], 1e-6) / max(shapes[1], 1e-6)
    if segment.turned % 180:  # the query is rotated by a quarter turn
        ratio = 1.0 / max(shapes[0] * shapes[1], 1e-6)
    if abs(math.log(ratio)) > _SAME_SHAPE:
        pairs.append((boxes[0], _middle(boxes[1], ratio)))
        pairs.append((_middle(boxes[0], ratio if segment.turned % 180 else 1.0 / ratio), boxes[1]))
    return pairs


def _middle(box: Box, wider: float) -> Box:
    """The largest centered part of a box whose aspect ratio is ``wider`` times as large."""
    shares = min(1.0, wider), min(1.0, 1.0 / max(wider, 1e-6))
    left, top, right, bottom = box
    aside, above = (right - left) * (1.0 - shares[0]) / 2, (bottom - top) * (1.0 - shares[1]) / 2
    return left + aside, top + above, right - aside, bottom - above


def _move_ends(query: PathLike, target: PathLike, segment: Segment, threads: int, least: float) -> Segment:
    """Move the ends of a segment to where the frames of both files stop agreeing along its line."""
    try:
        lengths = probe(query).duration, probe(target).duration
        ends = [_find_end(query, target, segment, side, lengths, threads, least) for side in (-1, 1)]
    except MediaError:
        return segment  # the caller reports unreadable files when it opens them
    start, end = ends
    if end <= start:
        return segment
    there = [segment.target_start + (time - segment.query_start) * segment.speed for time in (start, end)]
    return replace(segment, query_start=start, query_end=end, target_start=max(0.0, there[0]), target_end=there[1])


def _find_end(
    query: PathLike,
    target: PathLike,
    segment: Segment,
    side: int,
    lengths: tuple[float, float],
    threads: int,
    least: float,
) -> float:
    """The refined start (side -1) or end (1) of a segment in query time; unchanged if frames inside it correlate less
    than ``least``."""
    rough = segment.query_start if side < 0 else segment.query_end
    inner = (segment.query_start + segment.query_end) / 2
    offset = segment.target_start - segment.query_start * segment.speed
    # The stretch of the query for which both files have frames.
    first, last = max(0.0, -offset / segment.speed), min(lengths[0], (lengths[1] - offset) / segment.speed)
    border = first if side < 0 else last
    time = rough
    for _ in range(_MAX_MOVES):
        low, high = time - _AROUND, time + _AROUND
        low, high = (low, min(high, max(inner, time))) if side < 0 else (max(low, min(inner, time)), high)
        low, high = max(low, first), min(high, last)
        if high - low < 2 * _END_STEP:
            return rough
        times = np.arange(low, high, _END_STEP)
        agreement = _correlate(query, target, segment, times, threads)
        if agreement is None:
            return rough
        outwards = agreement if side > 0 else agreement[::-1]
        inside = float(np.median(outwards[: max(3, len(outwards) // 4)]))
        if inside < least:
            return rough
        # From the inside outwards, frames agree up to the end and not beyond it.
        count = int(np.argmax(np.cumsum(outwards - _AGREES * inside))) + 1
        if count < len(outwards):
            return float(times[count - 1] + _END_STEP if side > 0 else times[len(times) - count])
        time = high if side > 0 else low  # they agree throughout the range
        if abs(time - border) < _AT_BORDER:
            return border
    return time


def _correlate(
    query: PathLike, target: PathLike, segment: Segment, times: NDArray[np.float64], threads: int
) -> NDArray[np.float64] | None:
    """Correlation of the frames on screen in both files at each time of the query; None if a file has no frames
    there."""
    there = segment.target_start + (times - segment.query_start) * segment.speed
    cells, places = [], []
    for path, at, box, turned, mirrored in (
        (query, times, segment.query_box, segment.turned, segment.mirrored),
        (target, there, segment.target_box, 0, False),
    ):
        frames = read_frames(
            path, rate=None, start=max(0.0, at[0]), end=at[-1] + _END_STEP, short_side=2 * _SIDE, threads=threads
        )
        if not len(frames):
            return None
        images = _gray(frames, box, turned=turned, mirrored=mirrored)
        images -= images.mean(axis=1, keepdims=True)
        size = np.linalg.norm(images, axis=1, keepdims=True)
        cells.append(np.where(size > _SHOWN * _SIDE, images / np.maximum(size, 1e-6), 0.0))
        places.append(shown_at(frames.timestamps, at).clip(0))
    agreement: NDArray[np.float64] = np.einsum("tp,tp->t", cells[0][places[0]], cells[1][places[1]])
    return agreement


def _gray(frames: Frames, box: Box, *, turned: int = 0, mirrored: bool = False) -> NDArray[np.floating]:
    """Small grayscale images [T, pixels] of a box of the frames, rotated clockwise and then flipped."""
    from PIL import Image

    height, width = frames.images.shape[1:3]
    left, top, right, bottom = (round(share * side) for share, side in zip(box, (width, height) * 2, strict=True))
    images: list[NDArray[np.floating]] = []
    for image in frames.images:
        part = Image.fromarray(image[top : max(bottom, top + 2), left : max(right, left + 2)]).convert("L")
        small = np.asarray(part.resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64)
        small = np.rot90(small, -turned // 90)
        images.append((small[:, ::-1] if mirrored else small).ravel())
    return np.stack(images)


def _best_line(windows: Sequence[_Window], segment: Segment) -> tuple[float, float, float]:
    """The speed, and the shift at the middle of the segment, that explain the windows best; and their evidence."""
    pivot = _pivot(segment)
    weights = np.array([min(window.energy, 20.0) for window in windows])
    weights /= weights.sum()
    coarse = np.arange(-_FARTHEST, _FARTHEST + _COARSE / 2, _COARSE)

    def total(speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evidence for each shift of a line with this speed."""
        curves = [window.curve(pivot, speed, shifts) for window in windows]
        return np.asarray(weights @ np.stack(curves))

    usual = [speed for speed in USUAL_SPEEDS if abs(speed / segment.speed - 1) < _FARTHEST_SPEED]
    # Too few windows cannot resolve a small difference.
    turns = np.linspace(-_MAX_SPEED_ERROR, _MAX_SPEED_ERROR, _SPEEDS) if len(windows) > 2 else np.zeros(1)
    evidence = {
        float(speed): float(total(float(speed), coarse).max())
        for speed in (*usual, segment.speed, *(segment.speed * (1 + turns)))
    }
    most = max(evidence.values())
    # Among equals the nearest to the segment's speed, so that a chance result is off by as little as possible.
    simple = sorted(usual, key=lambda speed: (-round(evidence[speed], 3), abs(speed / segment.speed - 1)))
    best = max(evidence, key=lambda speed: evidence[speed] - (0.0 if speed == segment.speed else _BETTER))

    def explains(speed: float, share: float) -> bool:
        """Whether this speed explains nearly as much as any other."""
        left = 1.0 - evidence.get(speed, 0.0)
        is_like = len(windows) <= _FEW_WINDOWS or left <= _MAX_UNEXPLAINED * (1.0 - most) + _ROUNDING
        return is_like and evidence.get(speed, 0.0) >= most * share

    if simple and explains(simple[0], _LIKE_SIMPLE):
        best = simple[0]
    if explains(1.0, _LIKE_ANY):
        best = 1.0
    around = float(coarse[int(np.argmax(total(best, coarse)))])
    shifts = around + np.arange(-2 * _COARSE, 2 * _COARSE + _STEP / 2, _STEP)
    curve = total(best, shifts)
    # Shifts within one frame fit equally well; take their middle.
    first = int(np.argmax(curve))
    run = [index for index in np.flatnonzero(curve >= curve.max() - 1e-3) if abs(index - first) * _STEP <= 0.05]
    return best, float(shifts[run].mean()), float(curve.max())
