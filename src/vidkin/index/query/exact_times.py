"""Exact times of a match: both files are decoded around it, and the line through them that fits their frames is found.

Features are compared at a few frames a second, so a segment may be off by a fraction of that. Players that show both
sides need the frame.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.media import Frames, read_frames
from vidkin.similarity import Box, Segment

PathLike = str | os.PathLike[str]

# Windows of the query along a segment, and the length of each, seconds.
_WINDOWS, _LENGTH = 6, 1.0
# How far off a time may be, seconds, and by how much a speed, both ways; the steps of the search.
_FARTHEST, _STEP = 0.75, 0.004
_MOST_SPEED, _SPEEDS = 0.02, 41
# Speeds that people and converters use: simple ones, and the ratios of 24, 25 and 30 frames per second. A segment of
# another speed takes speed 1, or else the better of the two nearest of these, where that explains nearly as much.
USUAL_SPEEDS = (0.5, 0.8, 5 / 6, 24 / 25, 1.0, 25 / 24, 1.2, 1.25, 1.5, 2.0)
_FARTHEST_SPEED, _SAME_SPEED = 0.3, 0.002
_LIKE_ANY, _LIKE_SIMPLE = 0.97, 0.99
# Pixels of a side of the gray pictures that are compared.
_SIDE = 24
# Another speed than that of the segment must explain the frames better by this share.
_BETTER = 0.01
# Evidence, the cosine of changes of the picture, below which nothing is refined.
_LEAST_EVIDENCE = 0.3
# Standard deviation of gray levels over time below which a window is too still to tell a time.
_STILL = 0.6


@dataclass(frozen=True, slots=True)
class _Window:
    """What one window says.

    Attributes:
        middle: Middle of the window, seconds of the query.
        energy: How much its picture changes.
        curve: Similarity for each shift of the target.
    """

    middle: float
    energy: float
    curve: NDArray[np.float64]


def refine_segment(query: PathLike, target: PathLike, segment: Segment, *, threads: int = 1) -> Segment:
    """The segment with its line moved to where the frames of both files agree best.

    Windows of a second along the segment are decoded whole, shrunk, and freed of what does not change, so that logos
    and bars do not count. The shift, and the speed where that is clearly another one, have the largest cosine of the
    changes of both sides. A segment of an unusual speed, which two seconds of features easily get, takes speed 1 or a
    simple ratio if that explains nearly as much. Where too little moves, or the sides do not agree, the segment is
    returned as it is.

    Args:
        query, target: The files.
        segment: Where they match, to within three quarters of a second.
        threads: Decoder threads.

    Returns:
        The segment; as it was where one of the files cannot be read.
    """
    if segment.query_end <= segment.query_start:
        return segment
    best, most = _refined(query, target, segment, threads)
    for speed in _usual_speeds(segment):
        other, evidence = _refined(query, target, _at_speed(segment, speed), threads, keep_speed=True)
        if evidence >= max(_LEAST_EVIDENCE, most * (_LIKE_ANY if speed == 1.0 else _LIKE_SIMPLE)):
            if speed == 1.0:
                return other
            best, most = other, max(most, evidence / _LIKE_SIMPLE)  # the next one must be better, not as good
    return best


def refine_segments(query: PathLike, target: PathLike, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Segments of one pair of files, each refined by :func:`refine_segment` with as many threads as decoders like."""
    return tuple(refine_segment(query, target, segment, threads=0) for segment in segments)


def _usual_speeds(segment: Segment) -> list[float]:
    """Speed 1 and the two simple ratios next to that of the segment, unless it has speed 1 already."""
    if abs(segment.speed - 1.0) < _SAME_SPEED:
        return []
    near = sorted(USUAL_SPEEDS, key=lambda speed: abs(speed / segment.speed - 1.0))
    near = [speed for speed in near if abs(speed / segment.speed - 1.0) < _FARTHEST_SPEED]
    return [speed for speed in near if speed == 1.0] + [speed for speed in near if speed != 1.0][:2]


def _at_speed(segment: Segment, speed: float) -> Segment:
    """The segment with another speed, in place at its middle."""
    half = (segment.query_end - segment.query_start) / 2
    middle = segment.target_start + half * segment.speed
    start = middle - half * speed
    begin = segment.query_start - min(0.0, start) / speed
    return replace(
        segment,
        query_start=min(begin, segment.query_end),
        target_start=max(0.0, start),
        target_end=middle + half * speed,
        speed=speed,
    )


def _refined(
    query: PathLike, target: PathLike, segment: Segment, threads: int, *, keep_speed: bool = False
) -> tuple[Segment, float]:
    """The segment on the best line of about its speed, or of just its speed, and the evidence; 0 if there is none."""
    windows = [
        window
        for start in _starts(segment.query_start, segment.query_end)
        if (window := _look(query, target, segment, start, threads)) is not None
    ]
    if not windows:
        return segment, 0.0
    shift, speed, evidence = _best_line(windows, segment, keep_speed=keep_speed)
    if shift is None:
        return segment, evidence
    middle = (segment.query_start + segment.query_end) / 2
    at_middle = segment.target_start + (middle - segment.query_start) * segment.speed + shift
    start = at_middle - (middle - segment.query_start) * speed
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


def _starts(start: float, end: float) -> list[float]:
    """Where windows begin: spread over the segment, fewer in a short one."""
    room = end - start - _LENGTH
    if room <= 0:
        return [start]
    count = min(_WINDOWS, 1 + math.ceil(room / _LENGTH))
    return [start + room * (place + 0.5) / count for place in range(count)]


def _look(query: PathLike, target: PathLike, segment: Segment, start: float, threads: int) -> _Window | None:
    """Compare one window of the query with the target around it; None if it shows nothing or cannot be read."""
    length = min(_LENGTH, segment.query_end - segment.query_start)
    near = segment.target_start + (start - segment.query_start) * segment.speed
    low, high = max(0.0, near - _FARTHEST), near + length * segment.speed + _FARTHEST
    try:
        one = read_frames(query, rate=None, start=start, end=start + length, short_side=2 * _SIDE, threads=threads)
        other = read_frames(target, rate=None, start=low, end=high, short_side=2 * _SIDE, threads=threads)
    except MediaError:
        return None  # a damaged part: the other windows tell
    if len(one) < 3 or len(other) < 3:
        return None
    left = _gray(one, segment.query_box, turned=segment.turned, mirrored=segment.mirrored)
    right = _gray(other, segment.target_box)
    left -= left.mean(axis=0)
    energy = float(np.sqrt((left**2).mean()))
    if energy < _STILL:
        return None
    shifts = _shifts()
    # The nearest frame, not the one on screen: a shift by half a frame to either side is as good as none.
    half = float(np.median(np.diff(other.timestamps))) / 2
    times = near + (one.timestamps - start) * segment.speed + half
    products = left @ right.T
    squares = (right**2).sum(axis=1)
    norm = float(np.sqrt((left**2).sum()))
    curve = np.zeros(len(shifts))
    for position, shift in enumerate(shifts):
        place = np.searchsorted(other.timestamps, times + shift, side="right") - 1
        if place.min() < 0 or times[-1] + shift > other.timestamps[-1] + _LENGTH / 10:
            continue
        mean = right[place].mean(axis=0)
        spread = float(squares[place].sum() - len(place) * (mean @ mean))
        dot = float(products[np.arange(len(place)), place].sum())
        curve[position] = dot / (norm * math.sqrt(spread)) if spread > 1e-6 else 0.0
    return _Window(start + length / 2, energy, curve)


def _shifts() -> NDArray[np.float64]:
    count = round(_FARTHEST / _STEP)
    return np.arange(-count, count + 1, dtype=np.float64) * _STEP


def _gray(frames: Frames, box: Box, *, turned: int = 0, mirrored: bool = False) -> NDArray[np.floating]:
    """Small gray pictures [T, pixels] of a part of the frames, turned clockwise and then flipped."""
    from PIL import Image

    height, width = frames.images.shape[1:3]
    left, top, right, bottom = (round(share * side) for share, side in zip(box, (width, height) * 2, strict=True))
    pictures: list[NDArray[np.floating]] = []
    for image in frames.images:
        part = Image.fromarray(image[top : max(bottom, top + 2), left : max(right, left + 2)]).convert("L")
        small = np.asarray(part.resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64)
        small = np.rot90(small, -turned // 90)
        pictures.append((small[:, ::-1] if mirrored else small).ravel())
    return np.stack(pictures)


def _best_line(windows: Sequence[_Window], segment: Segment, *, keep_speed: bool) -> tuple[float | None, float, float]:
    """The shift at the middle of the segment and the speed that explain the windows best, and their evidence; the shift
    is None if none does."""
    shifts = _shifts()
    middle = (segment.query_start + segment.query_end) / 2
    weights = np.array([min(window.energy, 20.0) for window in windows])
    weights /= weights.sum()

    def total(turn: float) -> NDArray[np.float64]:
        """Evidence for each shift, if the speed is that of the segment plus ``turn``."""
        total = np.zeros(len(shifts))
        for window, weight in zip(windows, weights, strict=True):
            total += weight * np.interp(shifts + turn * (window.middle - middle), shifts, window.curve, left=0, right=0)
        return total

    best_turn, curve = 0.0, total(0.0)
    if len(windows) > 2 and not keep_speed:
        for turn in np.linspace(-_MOST_SPEED, _MOST_SPEED, _SPEEDS) * segment.speed:
            other = total(float(turn))
            if other.max() > curve.max() + (_BETTER if best_turn == 0.0 else 0.0):
                best_turn, curve = float(turn), other
    if curve.max() < _LEAST_EVIDENCE:
        return None, segment.speed, float(curve.max())
    # Shifts within one frame explain the same; their middle is meant.
    top = np.flatnonzero(curve >= curve.max() - 1e-3)
    first = int(np.argmax(curve))
    run = [place for place in top if abs(place - first) * _STEP <= 0.05]
    return float(shifts[run].mean()), segment.speed + best_turn, float(curve.max())
