"""Refine the times of a match to frame accuracy by decoding both files around it.

Features are sampled at a few frames per second, so the times of a segment may be off by part of a sampling period;
players that show both videos side by side need the exact frame.
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

# Maximum number of query windows along a segment, and the duration of each in seconds.
_WINDOWS, _LENGTH = 6, 1.0
# Maximum shift in seconds, and the coarse and fine steps of the search.
_MAX_SHIFT, _COARSE_STEP, _FINE_STEP = 0.75, 0.02, 0.004
# Maximum relative error of the segment's speed, and the number of speeds tried in this range.
_MAX_SPEED_ERROR, _SPEEDS = 0.02, 9
# Speeds common in practice: simple ratios, and conversions between 24, 25 and 30 frames per second. Speed 1, or
# otherwise the best of these near the segment's speed, is preferred if its evidence is nearly that of the best speed
# and if it leaves hardly more unexplained: where frames agree to within 0.001, a difference of 0.004 is significant
# (unless there are only a few windows).
USUAL_SPEEDS = (0.5, 0.8, 5 / 6, 20 / 21, 24 / 25, 1.0, 25 / 24, 1.05, 1.2, 1.25, 1.5, 2.0)
# Maximum relative difference between the segment's speed and the usual speeds that are tried.
_MAX_SPEED_CHANGE = 0.3
# Minimum evidence for speed 1, and for the other usual speeds, as a fraction of the evidence of the best speed.
_MIN_NORMAL_RATIO, _MIN_USUAL_RATIO = 0.97, 0.99
_MAX_UNEXPLAINED, _ROUNDING, _FEW_WINDOWS = 1.5, 0.002, 2
# Minimum gain in evidence to change the boxes, and maximum difference of log aspect ratios that count as equal.
_MIN_BOX_GAIN, _SAME_SHAPE = 0.03, 0.04
# Width and height in pixels of the grayscale images that are compared.
_SIDE = 24
# Minimum gain in evidence to change the speed of the segment.
_MIN_SPEED_GAIN = 0.01
# Minimum evidence (the cosine similarity of the changes in both videos) to refine a segment.
_MIN_EVIDENCE = 0.3
# Minimum standard deviation of gray levels over time; a window with less motion cannot determine a time.
_MIN_MOTION = 0.6

# Search for an end: seconds decoded on either side, time step, and maximum number of moves if the end is farther away.
_END_REACH, _END_STEP, _MAX_MOVES = 1.5, 0.01, 3
# Minimum correlation of the frames just inside an end to move it; fraction of that at which frames still agree; and
# minimum contrast in gray levels.
_MIN_INSIDE, _AGREEING_RATIO, _MIN_CONTRAST = 0.5, 0.6, 2.0
# Minimum correlation if no motion confirms the line, and maximum deviation from speed 1 that is then corrected to 1,
# because two seconds of a still image fit any speed.
_MIN_STILL_INSIDE, _STILL_SPEED = 0.9, 0.2
# A match that ends within this many seconds of the end of a file is extended to the end.
_AT_BORDER = 0.1


@dataclass(frozen=True, slots=True)
class _Window:
    """A window of n query frames, and the m target frames around it.

    Attributes:
        middle: Middle of the window in query seconds.
        energy: Root mean square of the query's changes over time.
        times: [n] query times in seconds.
        norm: Euclidean norm of the query's changes over time.
        target_times: [m] target times in seconds.
        products: [n, m] inner products of the query's changes with the target frames.
        target_products: [m, m] inner products of the target frames.
    """

    middle: float
    energy: float
    times: NDArray[np.float64]
    norm: float
    target_times: NDArray[np.float64]
    products: NDArray[np.float64]
    target_products: NDArray[np.float64]

    def curve(self, pivot: tuple[float, float], speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cosine similarity of the changes in both videos for each shift of a line with this speed through
        ``pivot`` (query time, target time)."""
        # A frame stays on screen for a whole period, so all shifts within the shorter frame period fit equally well.
        # Adding half of that period centers these shifts on 0.
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
    """Refine the offset, speed and ends of a segment to frame accuracy.

    One-second windows along the segment are decoded at the full frame rate, downscaled, and reduced to their changes
    over time, so that logos and bars do not count. The shift, and the speed if it clearly differs, are chosen to
    maximize the cosine similarity of these changes. An unusual speed, which short segments easily produce, is replaced
    by 1 or a simple ratio if the evidence is nearly the same. Then frames are compared along the line across both ends:
    an end moves to where the frames stop agreeing, for example at a cut, or to the start or end of a file. An end is
    not moved if the frames just inside it do not agree. If there is too little motion to determine a line, or the
    changes do not agree, ends are moved only if the frames are nearly identical.

    Args:
        query, target: The files.
        segment: The match, accurate to within 0.75 s; a backward segment is returned unchanged.
        threads: Number of decoder threads.

    Returns:
        The refined segment, or the given one if a file cannot be read.
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
    """Return the segment moved to the line and boxes with the most evidence, and that evidence."""
    readings = [
        window
        for start in _starts(segment.query_start, segment.query_end)
        if (window := _read_window(query, target, segment, start, threads))
    ]
    if not readings:
        return segment, 0.0
    parts = list(readings[0])
    lines = [_best_line([window[part] for window in readings if part in window], segment) for part in parts]
    best = max(range(len(parts)), key=lambda index: lines[index][2] - (_MIN_BOX_GAIN if index else 0.0))
    speed, shift, evidence = lines[best]
    if evidence < _MIN_EVIDENCE:
        return segment, evidence
    segment = replace(segment, query_box=parts[best][0], target_box=parts[best][1])
    middle, there = _pivot(segment)
    start = there + shift - (middle - segment.query_start) * speed
    query_start, query_end = segment.query_start, segment.query_end
    if start < 0:  # the line must not start before the target
        query_start, start = query_start - start / speed, 0.0
    if query_end <= query_start:
        return segment, 0.0
    end = start + (query_end - query_start) * speed
    line = replace(
        segment, query_start=query_start, query_end=query_end, target_start=start, target_end=end, speed=speed
    )
    return line, evidence


def _pivot(segment: Segment) -> tuple[float, float]:
    """Query and target time of a segment's middle; all candidate lines pass near this point."""
    half = (segment.query_end - segment.query_start) / 2
    return segment.query_start + half, segment.target_start + half * segment.speed


def refine_segments(query: PathLike, target: PathLike, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Refine all segments of a pair of files with :func:`refine_segment`; decoders choose the number of threads."""
    return tuple(refine_segment(query, target, segment, threads=0) for segment in segments)


def _starts(start: float, end: float) -> list[float]:
    """Start times of the windows, evenly spaced over the segment; short segments have fewer windows."""
    room = end - start - _LENGTH
    if room <= 0:
        return [start]
    count = min(_WINDOWS, 1 + math.ceil(room / _LENGTH))
    return [start + room * (number + 0.5) / count for number in range(count)]


def _read_window(
    query: PathLike, target: PathLike, segment: Segment, start: float, threads: int
) -> dict[tuple[Box, Box], _Window]:
    """Read one query window and the target around it, for each pair of boxes that may match; the segment's boxes come
    first. Returns an empty dictionary if the window has too little motion or cannot be read."""
    length = min(_LENGTH, segment.query_end - segment.query_start)
    near = segment.target_start + (start - segment.query_start) * segment.speed
    # The effect of a speed error grows with the distance from the middle.
    away = abs(start + length / 2 - _pivot(segment)[0]) + length / 2
    reach = _MAX_SHIFT + min(away * _MAX_SPEED_CHANGE * segment.speed, 2 * _MAX_SHIFT)
    low, high = max(0.0, near - reach), near + length * segment.speed + reach
    try:
        one = read_frames(query, rate=None, start=start, end=start + length, short_side=2 * _SIDE, threads=threads)
        other = read_frames(target, rate=None, start=low, end=high, short_side=2 * _SIDE, threads=threads)
    except MediaError:
        return {}  # a damaged part of the file; the other windows suffice
    if len(one) < 3 or len(other) < 3:
        return {}
    windows: dict[tuple[Box, Box], _Window] = {}
    for query_box, target_box in _box_pairs(one, other, segment):
        left = _gray(one, query_box, turned=segment.turned, mirrored=segment.mirrored)
        right = _gray(other, target_box)
        left -= left.mean(axis=0)
        energy = float(np.sqrt((left**2).mean()))
        if energy < _MIN_MOTION:
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
    """Pairs of boxes to try: the segment's boxes and, if their aspect ratios differ, each with the other one cropped to
    the same aspect ratio, because copies for other screens are cropped as often as they are squeezed."""
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
        pairs.append((boxes[0], _crop_to_ratio(boxes[1], ratio)))
        pairs.append((_crop_to_ratio(boxes[0], ratio if segment.turned % 180 else 1.0 / ratio), boxes[1]))
    return pairs


def _crop_to_ratio(box: Box, wider: float) -> Box:
    """Crop a box around its center to an aspect ratio ``wider`` times its own."""
    width, height = min(1.0, wider), min(1.0, 1.0 / max(wider, 1e-6))
    left, top, right, bottom = box
    aside, above = (right - left) * (1.0 - width) / 2, (bottom - top) * (1.0 - height) / 2
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
    """Return the refined start (``side`` -1) or end (1) of a segment in query time; unchanged if the frames just inside
    correlate less than ``least``."""
    rough = segment.query_start if side < 0 else segment.query_end
    inner = (segment.query_start + segment.query_end) / 2
    offset = segment.target_start - segment.query_start * segment.speed
    # Range of the query for which both files have frames.
    first, last = max(0.0, -offset / segment.speed), min(lengths[0], (lengths[1] - offset) / segment.speed)
    border = first if side < 0 else last
    time = rough
    for _ in range(_MAX_MOVES):
        low, high = time - _END_REACH, time + _END_REACH
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
        # Going outward, frames agree up to the end and not beyond it, so the cumulative sum peaks at the end.
        count = int(np.argmax(np.cumsum(outwards - _AGREEING_RATIO * inside))) + 1
        if count < len(outwards):
            return float(times[count - 1] + _END_STEP if side > 0 else times[len(times) - count])
        time = high if side > 0 else low  # frames agree over the whole range, so the end is farther out
        if abs(time - border) < _AT_BORDER:
            return border
    return time


def _correlate(
    query: PathLike, target: PathLike, segment: Segment, times: NDArray[np.float64], threads: int
) -> NDArray[np.float64] | None:
    """Correlation of the frames on screen in both files at each query time; None if a file has no frames there."""
    there = segment.target_start + (times - segment.query_start) * segment.speed
    cells, positions = [], []
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
        cells.append(np.where(size > _MIN_CONTRAST * _SIDE, images / np.maximum(size, 1e-6), 0.0))
        positions.append(shown_at(frames.timestamps, at).clip(0))
    agreement: NDArray[np.float64] = np.einsum("tp,tp->t", cells[0][positions[0]], cells[1][positions[1]])
    return agreement


def _gray(frames: Frames, box: Box, *, turned: int = 0, mirrored: bool = False) -> NDArray[np.floating]:
    """Downscaled grayscale images [T, pixels] of a box of the frames, rotated clockwise and then mirrored."""
    from PIL import Image

    height, width = frames.images.shape[1:3]
    left, top, right, bottom = (round(fraction * side) for fraction, side in zip(box, (width, height) * 2, strict=True))
    images: list[NDArray[np.floating]] = []
    for image in frames.images:
        part = Image.fromarray(image[top : max(bottom, top + 2), left : max(right, left + 2)]).convert("L")
        small = np.asarray(part.resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64)
        small = np.rot90(small, -turned // 90)
        images.append((small[:, ::-1] if mirrored else small).ravel())
    return np.stack(images)


def _best_line(windows: Sequence[_Window], segment: Segment) -> tuple[float, float, float]:
    """Return the speed, and the shift at the middle of the segment, with the most evidence, and that evidence."""
    pivot = _pivot(segment)
    weights = np.array([min(window.energy, 20.0) for window in windows])
    weights /= weights.sum()
    coarse = np.arange(-_MAX_SHIFT, _MAX_SHIFT + _COARSE_STEP / 2, _COARSE_STEP)

    def total(speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evidence for each shift of a line with this speed, averaged over the windows."""
        curves = [window.curve(pivot, speed, shifts) for window in windows]
        return np.asarray(weights @ np.stack(curves))

    usual = [speed for speed in USUAL_SPEEDS if abs(speed / segment.speed - 1) < _MAX_SPEED_CHANGE]
    # With too few windows, small speed differences cannot be resolved.
    changes = np.linspace(-_MAX_SPEED_ERROR, _MAX_SPEED_ERROR, _SPEEDS) if len(windows) > 2 else np.zeros(1)
    evidence = {
        float(speed): float(total(float(speed), coarse).max())
        for speed in (*usual, segment.speed, *(segment.speed * (1 + changes)))
    }
    most = max(evidence.values())
    # Break ties by the distance to the segment's speed, to limit the error if the result is due to chance.
    simple = sorted(usual, key=lambda speed: (-round(evidence[speed], 3), abs(speed / segment.speed - 1)))
    best = max(evidence, key=lambda speed: evidence[speed] - (0.0 if speed == segment.speed else _MIN_SPEED_GAIN))

    def explains(speed: float, ratio: float) -> bool:
        """Whether the evidence for this speed is nearly that of the best speed."""
        left = 1.0 - evidence.get(speed, 0.0)
        is_like = len(windows) <= _FEW_WINDOWS or left <= _MAX_UNEXPLAINED * (1.0 - most) + _ROUNDING
        return is_like and evidence.get(speed, 0.0) >= most * ratio

    if simple and explains(simple[0], _MIN_USUAL_RATIO):
        best = simple[0]
    if explains(1.0, _MIN_NORMAL_RATIO):
        best = 1.0
    around = float(coarse[int(np.argmax(total(best, coarse)))])
    shifts = around + np.arange(-2 * _COARSE_STEP, 2 * _COARSE_STEP + _FINE_STEP / 2, _FINE_STEP)
    curve = total(best, shifts)
    # All shifts within one frame fit equally well; take the middle one.
    first = int(np.argmax(curve))
    run = [index for index in np.flatnonzero(curve >= curve.max() - 1e-3) if abs(index - first) * _FINE_STEP <= 0.05]
    return best, float(shifts[run].mean()), float(curve.max())
