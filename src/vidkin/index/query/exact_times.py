"""Exact times of a match: both files are decoded around it, to find the line that fits their frames, and its ends.

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

from vidkin._base.arguments import check_arguments
from vidkin.errors import MediaError
from vidkin.media import Frames, probe, read_frames
from vidkin.media.frames import shown_at
from vidkin.similarity import Box, Segment

PathLike = str | os.PathLike[str]

# Windows of the query along a segment, and the length of each, seconds.
_WINDOWS, _LENGTH = 6, 1.0
# How far off a time may be, seconds, and by how much a speed, both ways; the steps of the search.
_FARTHEST, _COARSE, _STEP = 0.75, 0.02, 0.004
_MOST_SPEED, _SPEEDS = 0.02, 9
# Speeds that people and converters use: simple ones, and the ratios of 24, 25 and 30 frames per second. A segment takes
# speed 1, or else the best of those near its own, where that explains nearly as much as any other, and leaves little
# more unexplained: where pictures agree to a thousandth, four thousandths tell two speeds apart. Few windows do not.
USUAL_SPEEDS = (0.5, 0.8, 5 / 6, 20 / 21, 24 / 25, 1.0, 25 / 24, 1.05, 1.2, 1.25, 1.5, 2.0)
_FARTHEST_SPEED = 0.3
_LIKE_ANY, _LIKE_SIMPLE = 0.97, 0.99
_MOST_LEFT, _ROUNDING_LEFT, _FEW_WINDOWS = 1.5, 0.002, 2
# Another part of a picture must explain the frames better by so much; shapes that differ by less are the same shape.
_BETTER_PART, _SAME_SHAPE = 0.03, 0.04
# Pixels of a side of the gray pictures that are compared.
_SIDE = 24
# Another speed than that of the segment must explain the frames better by this share.
_BETTER = 0.01
# Evidence, the cosine of changes of the picture, below which nothing is refined.
_LEAST_EVIDENCE = 0.3
# Standard deviation of gray levels over time below which a window is too still to tell a time.
_STILL = 0.6

# Ends: seconds decoded on both sides of one, the step in which they are followed, and how often the place is moved on
# where the end is not in sight.
_AROUND, _END_STEP, _MOST_MOVES = 1.5, 0.01, 3
# Correlation of the pictures inside of an end below which it stays where the features have it, the share of it from
# which pictures still agree, and gray levels from which a picture shows something.
_LEAST_INSIDE, _AGREES, _SHOWN = 0.5, 0.6, 2.0
# The same where nothing that moves confirms the line, and by how much its speed may be off: two seconds of a still
# picture get any.
_LEAST_STILL_INSIDE, _STILL_SPEED = 0.9, 0.2
# Seconds from the end of a file within which a match that goes on to there ends with the file.
_AT_BORDER = 0.1


@dataclass(frozen=True, slots=True)
class _Window:
    """Pictures of a window of the query and of the target around it; n and m frames.

    Attributes:
        middle: Middle of the window, seconds of the query.
        energy: How much its picture changes.
        times: [n] seconds of the query.
        norm: Length of the changes of its pictures.
        target_times: [m] seconds of the target.
        products: [n, m] products of the changes of the query with the pictures of the target.
        target_products: [m, m] products of the pictures of the target.
    """

    middle: float
    energy: float
    times: NDArray[np.float64]
    norm: float
    target_times: NDArray[np.float64]
    products: NDArray[np.float64]
    target_products: NDArray[np.float64]

    def curve(self, pivot: tuple[float, float], speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosine of the changes of both sides for each shift of a line of this speed through a point of both clocks."""
        # A copy shows what is on screen at each of its times, so that all shifts up to the shorter frame explain the
        # same; from half of it to either side, their middle is no shift.
        half = min(float(np.median(np.diff(self.target_times))), float(np.median(np.diff(self.times))) * speed) / 2
        times = pivot[1] + (self.times - pivot[0]) * speed + half
        wanted = times + shifts[:, None]
        place = np.searchsorted(self.target_times, wanted, side="right") - 1
        inside = (place.min(axis=1) >= 0) & (wanted[:, -1] <= self.target_times[-1] + _LENGTH / 10)
        place = place[inside]
        dot = self.products[np.arange(len(times)), place].sum(axis=1)
        between = self.target_products[place[:, :, None], place[:, None, :]].sum(axis=(1, 2)) / len(times)
        spread = self.target_products[place, place].sum(axis=1) - between
        curve = np.zeros(len(shifts))
        curve[inside] = np.where(spread > 1e-6, dot / (self.norm * np.sqrt(np.maximum(spread, 1e-6))), 0.0)
        return curve


@check_arguments
def refine_segment(query: PathLike, target: PathLike, segment: Segment, *, threads: int = 1) -> Segment:
    """The segment on the line along which the frames of both files agree best, to where they cease to agree.

    Windows of a second along the segment are decoded whole, shrunk, and freed of what does not change, so that logos
    and bars do not count. The shift, and the speed where that is clearly another one, have the largest cosine of the
    changes of both sides. A segment of an unusual speed, which two seconds of features easily get, takes speed 1 or a
    simple ratio if that explains nearly as much. Then pictures are followed along the line through both ends: an end is
    where they change from agreeing to not, such as a cut, or where one of the files begins or ends. It stays where the
    features have it if they do not agree inside it. Where too little moves to tell a line, or the sides do not agree,
    only pictures that are nearly the same move an end.

    Args:
        query, target: The files.
        segment: Where they match, to within three quarters of a second; one that runs backwards stays as it is.
        threads: Decoder threads.

    Returns:
        The segment; as it was where one of the files cannot be read.
    """
    if segment.query_end <= segment.query_start or segment.backwards:
        return segment
    line, evidence = _with_line(query, target, segment, threads)
    if evidence >= _LEAST_EVIDENCE:
        exact = _with_ends(query, target, line, threads, _LEAST_INSIDE)
        return replace(exact, query_box=segment.query_box, target_box=segment.target_box)
    if abs(segment.speed - 1.0) < _STILL_SPEED:
        half, there = (segment.query_end - segment.query_start) / 2, _pivot(segment)[1]
        if there >= half:
            line = replace(segment, speed=1.0, target_start=there - half, target_end=there + half)
    still = _with_ends(query, target, line, threads, _LEAST_STILL_INSIDE)
    return segment if still == line else still


def _with_line(query: PathLike, target: PathLike, segment: Segment, threads: int) -> tuple[Segment, float]:
    """The segment on the line that explains the frames of both files best, in the parts of both pictures that do, and
    the evidence for it."""
    looks = [
        look
        for start in _starts(segment.query_start, segment.query_end)
        if (look := _look(query, target, segment, start, threads))
    ]
    if not looks:
        return segment, 0.0
    parts = list(looks[0])
    lines = [_best_line([look[part] for look in looks if part in look], segment) for part in parts]
    best = max(range(len(parts)), key=lambda place: lines[place][2] - (_BETTER_PART if place else 0.0))
    speed, shift, evidence = lines[best]
    if evidence < _LEAST_EVIDENCE:
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
    """The middle of a segment on both clocks: lines of every speed turn around it."""
    half = (segment.query_end - segment.query_start) / 2
    return segment.query_start + half, segment.target_start + half * segment.speed


def refine_segments(query: PathLike, target: PathLike, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Segments of one pair of files, each refined by :func:`refine_segment` with as many threads as decoders like."""
    return tuple(refine_segment(query, target, segment, threads=0) for segment in segments)


def _starts(start: float, end: float) -> list[float]:
    """Where windows begin: spread over the segment, fewer in a short one."""
    room = end - start - _LENGTH
    if room <= 0:
        return [start]
    count = min(_WINDOWS, 1 + math.ceil(room / _LENGTH))
    return [start + room * (place + 0.5) / count for place in range(count)]


def _look(
    query: PathLike, target: PathLike, segment: Segment, start: float, threads: int
) -> dict[tuple[Box, Box], _Window]:
    """Read one window of the query and the target around it; for each pair of parts of both pictures that may show the
    same, those of the segment first. Empty if it shows nothing or cannot be read."""
    length = min(_LENGTH, segment.query_end - segment.query_start)
    near = segment.target_start + (start - segment.query_start) * segment.speed
    # A line of another speed is as far off as the window is from the middle.
    away = abs(start + length / 2 - _pivot(segment)[0]) + length / 2
    reach = _FARTHEST + min(away * _FARTHEST_SPEED * segment.speed, 2 * _FARTHEST)
    low, high = max(0.0, near - reach), near + length * segment.speed + reach
    try:
        one = read_frames(query, rate=None, start=start, end=start + length, short_side=2 * _SIDE, threads=threads)
        other = read_frames(target, rate=None, start=low, end=high, short_side=2 * _SIDE, threads=threads)
    except MediaError:
        return {}  # a damaged part: the other windows tell
    if len(one) < 3 or len(other) < 3:
        return {}
    windows: dict[tuple[Box, Box], _Window] = {}
    for query_box, target_box in _same_shapes(one, other, segment):
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


def _same_shapes(one: Frames, other: Frames, segment: Segment) -> list[tuple[Box, Box]]:
    """The parts of both pictures that a segment compares, and if their shapes differ, also with the middle of either
    one that has the shape of the other: for another screen a picture is cropped as often as it is squeezed."""
    boxes = segment.query_box, segment.target_box
    shapes = [
        (box[2] - box[0]) * frames.images.shape[2] / max((box[3] - box[1]) * frames.images.shape[1], 1e-6)
        for box, frames in zip(boxes, (one, other), strict=True)
    ]
    pairs = [boxes]
    ratio = max(shapes[0], 1e-6) / max(shapes[1], 1e-6)
    if segment.turned % 180:  # the query stands on its side
        ratio = 1.0 / max(shapes[0] * shapes[1], 1e-6)
    if abs(math.log(ratio)) > _SAME_SHAPE:
        pairs.append((boxes[0], _middle(boxes[1], ratio)))
        pairs.append((_middle(boxes[0], ratio if segment.turned % 180 else 1.0 / ratio), boxes[1]))
    return pairs


def _middle(box: Box, wider: float) -> Box:
    """The largest middle part of a box whose shape is so many times as wide."""
    shares = min(1.0, wider), min(1.0, 1.0 / max(wider, 1e-6))
    left, top, right, bottom = box
    aside, above = (right - left) * (1.0 - shares[0]) / 2, (bottom - top) * (1.0 - shares[1]) / 2
    return left + aside, top + above, right - aside, bottom - above


def _with_ends(query: PathLike, target: PathLike, segment: Segment, threads: int, least: float) -> Segment:
    """The segment with its ends where the pictures of both files cease to agree along its line."""
    try:
        lengths = probe(query).duration, probe(target).duration
        ends = [_find_end(query, target, segment, side, lengths, threads, least) for side in (-1, 1)]
    except MediaError:
        return segment  # the players say what is wrong with it
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
    """The start (side -1) or end (1) of a segment on the query's clock; as it is where pictures inside of it do not
    have the least correlation."""
    rough = segment.query_start if side < 0 else segment.query_end
    inner = (segment.query_start + segment.query_end) / 2
    offset = segment.target_start - segment.query_start * segment.speed
    # Where both files have something.
    first, last = max(0.0, -offset / segment.speed), min(lengths[0], (lengths[1] - offset) / segment.speed)
    border = first if side < 0 else last
    time = rough
    for _ in range(_MOST_MOVES):
        low, high = time - _AROUND, time + _AROUND
        low, high = (low, min(high, max(inner, time))) if side < 0 else (max(low, min(inner, time)), high)
        low, high = max(low, first), min(high, last)
        if high - low < 2 * _END_STEP:
            return rough
        times = np.arange(low, high, _END_STEP)
        agreement = _follow(query, target, segment, times, threads)
        if agreement is None:
            return rough
        outwards = agreement if side > 0 else agreement[::-1]
        inside = float(np.median(outwards[: max(3, len(outwards) // 4)]))
        if inside < least:
            return rough
        # From the inside outwards: all up to the end agrees, what is beyond does not.
        count = int(np.argmax(np.cumsum(outwards - _AGREES * inside))) + 1
        if count < len(outwards):
            return float(times[count - 1] + _END_STEP if side > 0 else times[len(times) - count])
        time = high if side > 0 else low  # they agree as far as was looked
        if abs(time - border) < _AT_BORDER:
            return border
    return time


def _follow(
    query: PathLike, target: PathLike, segment: Segment, times: NDArray[np.float64], threads: int
) -> NDArray[np.float64] | None:
    """Correlation of the pictures on screen in both files at each time of the query; None if a file shows none."""
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
        pictures = _gray(frames, box, turned=turned, mirrored=mirrored)
        pictures -= pictures.mean(axis=1, keepdims=True)
        size = np.linalg.norm(pictures, axis=1, keepdims=True)
        cells.append(np.where(size > _SHOWN * _SIDE, pictures / np.maximum(size, 1e-6), 0.0))
        places.append(shown_at(frames.timestamps, at).clip(0))
    agreement: NDArray[np.float64] = np.einsum("tp,tp->t", cells[0][places[0]], cells[1][places[1]])
    return agreement


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


def _best_line(windows: Sequence[_Window], segment: Segment) -> tuple[float, float, float]:
    """The speed and the shift at the middle of the segment that explain the windows best, and their evidence."""
    pivot = _pivot(segment)
    weights = np.array([min(window.energy, 20.0) for window in windows])
    weights /= weights.sum()
    coarse = np.arange(-_FARTHEST, _FARTHEST + _COARSE / 2, _COARSE)

    def total(speed: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evidence for each shift of a line of this speed."""
        curves = [window.curve(pivot, speed, shifts) for window in windows]
        return np.asarray(weights @ np.stack(curves))

    usual = [speed for speed in USUAL_SPEEDS if abs(speed / segment.speed - 1) < _FARTHEST_SPEED]
    # Too few windows say nothing of a small difference.
    turns = np.linspace(-_MOST_SPEED, _MOST_SPEED, _SPEEDS) if len(windows) > 2 else np.zeros(1)
    evidence = {
        float(speed): float(total(float(speed), coarse).max())
        for speed in (*usual, segment.speed, *(segment.speed * (1 + turns)))
    }
    most = max(evidence.values())
    # Nearest to the speed of the segment among equals: what is found only by chance is not farther off than need be.
    simple = sorted(usual, key=lambda speed: (-round(evidence[speed], 3), abs(speed / segment.speed - 1)))
    best = max(evidence, key=lambda speed: evidence[speed] - (0.0 if speed == segment.speed else _BETTER))

    def explains(speed: float, share: float) -> bool:
        """Whether this speed explains nearly as much as any other."""
        left = 1.0 - evidence.get(speed, 0.0)
        is_like = len(windows) <= _FEW_WINDOWS or left <= _MOST_LEFT * (1.0 - most) + _ROUNDING_LEFT
        return is_like and evidence.get(speed, 0.0) >= most * share

    if simple and explains(simple[0], _LIKE_SIMPLE):
        best = simple[0]
    if explains(1.0, _LIKE_ANY):
        best = 1.0
    around = float(coarse[int(np.argmax(total(best, coarse)))])
    shifts = around + np.arange(-2 * _COARSE, 2 * _COARSE + _STEP / 2, _STEP)
    curve = total(best, shifts)
    # Shifts within one frame explain the same; their middle is meant.
    first = int(np.argmax(curve))
    run = [place for place in np.flatnonzero(curve >= curve.max() - 1e-3) if abs(place - first) * _STEP <= 0.05]
    return best, float(shifts[run].mean()), float(curve.max())
