"""Find to the frame where two files stop showing the same, by decoding them around the ends of a shared stretch, of a
shot beside it, or of a whole copy.

Shape legend: N frames of a clip, G cells of a small picture.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index.recurring.clips import (
    REACH,
    STILL,
    SURE_MATCH,
    Cells,
    Clip,
    Clips,
    MomentPairs,
    agree_beside,
    count_with_dim,
    share_covered,
)
from vidkin.index.recurring.stretches import RoughStretch
from vidkin.index.storage.records import VideoRecord
from vidkin.media.frames import is_before

_logger = logging.getLogger(__name__)

StretchEnd = Literal["start", "end"]
_SIDES: tuple[StretchEnd, StretchEnd] = ("start", "end")

_SPEEDS = (1.0, 24 / 25, 25 / 24)
_SHIFT, _STEP = 1.6, 0.02  # seconds: how far the other file is shifted to find the same frame, and in which steps
_OTHER_SPEED = 3.0  # sum of (correlation - bound) that tells another speed than that of the stored features
_FINE_SHIFT = 0.12  # the same at one of both ends
_BOUND = 0.5  # correlation of pictures that may be the same
_SAME_ASPECT = 0.04
_DIFFERENT = 0.1  # correlation of pictures that have nothing in common
_LEAST_BOUND = 0.4
_CUT, _NEAR_CUT = 0.5, 0.5  # correlation below which a frame begins a shot; seconds within which an end is that cut
_LOOKALIKE_STEP = 0.15  # correlation
_LAG = 0.2  # seconds between frames whose difference is motion
_LEAST_MOTION = 1.0  # gray levels
_MOVES = 3  # times that an end may lie beyond what was decoded


class EndFit(NamedTuple):
    """An end of a shared stretch.

    Attributes:
        first, second: Its time in both videos, seconds.
        match: Mean correlation of the pictures inside of it, in [-1, 1].
        motion: Correlation of what moves inside of it, in [-1, 1]; None if nothing does.
    """

    first: float
    second: float
    match: float
    motion: float | None


class TimeLine(NamedTuple):
    """Which moment of the second video shows what a moment of the first shows.

    Attributes:
        first, second: A moment in both, seconds.
        speed: Seconds of the second video per second of the first.
    """

    first: float
    second: float
    speed: float

    def at(self, first: float) -> float:
        """The time in the second video of a time in the first."""
        return self.second + (first - self.first) * self.speed

    def swapped(self) -> TimeLine:
        """The same with the second video first."""
        return TimeLine(self.second, self.first, 1 / self.speed)

    def shifted(self, seconds: float) -> TimeLine:
        """The same with other moments of the second video."""
        return self._replace(second=self.second + seconds)


class FittedStretch(NamedTuple):
    """A shared stretch with exact ends that its pictures confirm.

    Attributes:
        first_start, first_end, second_start, second_end: Seconds.
        score: How similar its features are, in [0, 1].
        match: How similar its pictures are at the ends, in [0, 1].
        covered: Share of the pictures over which only one of both shows something, such as a title; 0 unless it does at
            both ends.
        speed: Seconds of the second video per second of the first at which most pictures agree; 0 if it is not known.
    """

    first_start: float
    first_end: float
    second_start: float
    second_end: float
    score: float
    match: float
    covered: float = 0.0
    speed: float = 0.0

    def swapped(self) -> FittedStretch:
        """The same with the second video first."""
        first, second = (self.first_start, self.first_end), (self.second_start, self.second_end)
        speed = 1 / self.speed if self.speed else 0.0
        return FittedStretch(*second, *first, self.score, self.match, self.covered, speed)


# What moves must move in the same way; where nothing moves, the shared frames must follow each other in the same order.
_LEAST_MOTION_MATCH, _LEAST_STILL_MATCH, _LEAST_STILL_CONTRAST = 0.35, 0.7, 0.5


# Share of the pictures of a still stretch that agree (a little of the next shot may follow a card in both files), and
# seconds between those that are compared. Two of them are the same if what moves in them agrees so well.
_MOST_OF_STILL, _STILL_STEP = 0.75, 0.25
_SURE_MOTION = 0.6
# Correlation of how the pictures depart from their mean, and the number of frames that tell it. Pictures that stay as
# they are must all agree well, or follow each other for some seconds.
_LEAST_COURSE, _LEAST_FRAMES = 0.75, 6
_LONG_STILLS = 8.0  # seconds
_SHORTEST_LINK, _MOST_SPEED = 1.9, 1.25  # seconds, times
# Correlation by which pictures of an end agree less than those of the other one, unless they are something else.
_CHANCE_STEP, _LEAST_SCORE, _STILL_END = 0.2, 0.65, 0.9
_MOST_STEPS_IN = 8


def fit_stretch(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """Find both ends of a shared stretch to the frame; None if the pictures show that it is none.

    Raises:
        MediaError: One of the files cannot be read there.
    """
    line = _align(clips, first, second, stretch)
    if line is None:
        return None
    starts, ends = (_fit(clips, first, second, stretch, line, side) for side in _SIDES)
    if starts is None or ends is None:
        return None
    if _is_chance(ends, starts, stretch):
        ends = _fit_further_in(clips, first, second, stretch, line, "end", starts)
    elif _is_chance(starts, ends, stretch):
        starts = _fit_further_in(clips, first, second, stretch, line, "start", ends)
    if starts is None or ends is None or starts.first >= ends.first or starts.second >= ends.second:
        return None
    lengths = ends.first - starts.first, ends.second - starts.second
    if min(lengths) < _SHORTEST_LINK or not 1 / _MOST_SPEED <= lengths[0] / lengths[1] <= _MOST_SPEED:
        return None
    match = max(starts.match, ends.match)
    motions = [fit.motion for fit in (starts, ends) if fit.motion is not None]
    if motions and max(motions) < _LEAST_MOTION_MATCH:
        return None
    inside = _pictures_inside(clips, (first, second), starts, ends)
    course = _same_course(inside)
    is_sure = min(starts.match, ends.match) >= SURE_MATCH
    if course is None:
        if match < _LEAST_STILL_MATCH or stretch.contrast < _LEAST_STILL_CONTRAST:
            return None
        if not is_sure and min(lengths) < _LONG_STILLS:
            return None
    elif course < _LEAST_COURSE:
        return None
    is_moving = course is not None and max(motions, default=0.0) >= _SURE_MOTION
    still = _still_picture(clips, first, starts.first, ends.first)
    if still is not None and not (is_sure and is_moving and agree_beside(still, inside)):
        return None
    times = starts.first, ends.first, starts.second, ends.second
    covered = min(map(share_covered, inside), default=0.0)
    return FittedStretch(*times, stretch.score, max(0.0, match), covered, line.speed)


def _pictures_inside(
    clips: Clips, files: tuple[VideoRecord, VideoRecord], starts: EndFit, ends: EndFit
) -> list[MomentPairs]:
    """What both files show inside of a stretch, at each of its ends where some frames were read."""
    speed = (ends.second - starts.second) / (ends.first - starts.first)
    line = TimeLine(starts.first, starts.second, speed)
    found: list[MomentPairs] = []
    for fit in (starts, ends):
        clip, other = (
            clips.around(record, min(max(0.0, time), record.duration))
            for record, time in zip(files, (fit.first, fit.second), strict=True)
        )
        mapped = line.at(0.0) + clip.times * speed
        inside = ~is_before(clip.times, starts.first) & is_before(clip.times, ends.first)
        rows = np.flatnonzero(inside & (mapped >= other.times[0] - other.step) & (mapped < other.end))
        if len(rows) < _LEAST_FRAMES:
            continue
        columns = _nearest(other.times, mapped[rows])
        found.append([(one.means[rows], two.means[columns]) for one, two in _geometries(clip, other)])
    return found


def _same_course(inside: list[MomentPairs]) -> float | None:
    """Correlation of how both videos depart from their mean picture inside of a stretch, at the better of its ends.

    A camera that stands still shows much the same picture at any time; what passes before it is each time something
    else. None if the pictures stay as they are.
    """
    found = [_departures(*both) for pairs in inside for both in pairs]
    return max((each for each in found if each is not None), default=None)


def _departures(first: NDArray[np.float32], second: NDArray[np.float32]) -> float | None:
    """Correlation of pictures [N, G] without their brightness and their mean; None if both hardly change."""
    changes = []
    for cells in (first, second):
        shown = cells - cells.mean(axis=1, keepdims=True)
        changes.append(shown - shown.mean(axis=0))
    return _correlation(*changes)


def _still_picture(clips: Clips, record: VideoRecord, start: float, end: float) -> NDArray[np.float32] | None:
    """The picture [G] that a stretch is but for a short rest, as far as it is seen around its ends: of a card, or of a
    camera that stands still; None if it moves.

    Such a stretch resembles itself and others at any offset.
    """
    pictures = []
    for time in (start, min(end, record.duration)):
        clip = clips.around(record, time)
        inside = np.flatnonzero(~is_before(clip.times, start) & is_before(clip.times, end))
        pictures.append(clip.cells().units[inside[:: max(1, round(_STILL_STEP / clip.step))]])
    units = np.concatenate(pictures)
    units = units[units.any(axis=1)]
    if len(units) == 0:
        return None
    same = (units @ units.T >= STILL).mean(axis=1)
    most = int(np.argmax(same))
    return units[most] if same[most] >= _MOST_OF_STILL else None


def _is_chance(fit: EndFit, other: EndFit, stretch: RoughStretch) -> bool:
    """Whether pictures at one end agree much less than at the other one, and do not move alike or are unlike in what
    the index has of them; or agree less, and do not move."""
    if fit.match < _STILL_END and (fit.motion is None or fit.motion < _LEAST_MOTION_MATCH / 2):
        return other.match - fit.match > _CHANCE_STEP / 2
    is_moving = fit.motion is not None and fit.motion >= _LEAST_MOTION_MATCH
    return other.match - fit.match > _CHANCE_STEP and not (is_moving and stretch.score >= _LEAST_SCORE)


def _fit_further_in(
    clips: Clips,
    first: VideoRecord,
    second: VideoRecord,
    stretch: RoughStretch,
    line: TimeLine,
    side: StretchEnd,
    other: EndFit,
) -> EndFit | None:
    """The end, where the one that was found is a chance resemblance beyond it; None if there is none."""
    time, inwards = (stretch.first_start, 1.0) if side == "start" else (stretch.first_end, -1.0)
    for _ in range(_MOST_STEPS_IN):
        time += inwards * REACH
        if (time - other.first) * inwards > -_SHORTEST_LINK / 2:
            return None
        # The other end was found to the frame, perhaps beyond where the index has it.
        far = max(stretch.first_end, other.first) if side == "start" else min(stretch.first_start, other.first)
        begin, end = (time, far) if side == "start" else (far, time)
        inner = replace(
            stretch,
            first_start=begin,
            first_end=end,
            second_start=max(0.0, line.at(begin)),
            second_end=max(line.at(end), max(0.0, line.at(begin)) + 0.1),
        )
        fit = _fit(clips, first, second, inner, line, side)
        if fit is not None and not _is_chance(fit, other, stretch):
            return fit
    return None


def _align(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> TimeLine | None:
    """The line along which most frames around both ends agree; None if none do."""
    middle = (stretch.first_start + stretch.first_end) / 2, (stretch.second_start + stretch.second_end) / 2
    shifts = np.arange(-_SHIFT, _SHIFT + 1e-9, _STEP)
    # The shortest shift of equal ones. Under a title pictures that hardly move agree a little at any speed.
    known = min(_SPEEDS, key=lambda speed: abs(speed - stretch.speed))
    totals = {speed: -1e-3 * np.abs(shifts) - (_OTHER_SPEED if speed != known else 0.0) for speed in _SPEEDS}
    starts, ends = (stretch.first_start, stretch.second_start), (stretch.first_end, stretch.second_end)
    for side, (one, other) in zip(_SIDES, (starts, ends), strict=True):
        clips_of = clips.around(first, one), clips.around(second, other)
        agreements = [cells.units @ others.units.T for cells, others in _geometries(*clips_of)]
        for speed in _SPEEDS:
            line = TimeLine(*middle, speed)
            totals[speed] = totals[speed] + np.max(_totals(agreements, *clips_of, line, side, shifts), axis=0)
        if max(float(total.max()) for total in totals.values()) <= 0:
            return None  # most chance resemblances end here, after one of both ends
    best = max(_SPEEDS, key=lambda speed: float(totals[speed].max()))
    return TimeLine(*middle, best).shifted(float(shifts[np.argmax(totals[best])]))


def _fit(
    clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch, line: TimeLine, side: StretchEnd
) -> EndFit | None:
    time, outwards = (stretch.first_start, -1.0) if side == "start" else (stretch.first_end, 1.0)
    fit: EndFit | None = None
    for _ in range(_MOVES):
        clip = clips.around(first, min(max(0.0, time), first.duration))
        target = clips.around(second, min(max(0.0, line.at(time)), second.duration))
        found = find_end(clip, target, line, side)
        if found is None:
            # Beyond the end that was found before, or the estimate is too far out.
            if fit is not None:
                return fit
            time -= outwards * REACH
            continue
        if fit is not None and (found.first - fit.first) * outwards < 0:
            return fit  # what was read further out shows less of it
        fit = found
        if not _goes_on(clip, target, fit, side):
            return fit
        time = fit.first + outwards * (REACH - 1.0)
    return fit


def _goes_on(first: Clip, second: Clip, fit: EndFit, side: StretchEnd) -> bool:
    """Whether the same is shown up to where decoding stopped, in the middle of both files."""
    at_border = []
    for clip, time in ((first, fit.first), (second, fit.second)):
        border, stops = (clip.times[0], clip.is_first) if side == "start" else (clip.end, clip.is_last)
        at_border.append(abs(time - border) < 2 * clip.step)
        if at_border[-1] and stops:
            return False
    return any(at_border)


def find_end(first: Clip, second: Clip, line: TimeLine, side: StretchEnd) -> EndFit | None:
    """Find where two clips stop (or begin) to show the same.

    The end is where frames change from agreeing along the line to not: the place with the largest sum of
    (correlation - bound) on the inside. An end near a cut is that cut.

    Args:
        first, second: Frames around the end in both videos.
        line: Which moments of the second belong to those of the first.
        side: Which end of the stretch it is.

    Returns:
        The end; None if no frames agree.
    """
    if len(first.times) < 2 or len(second.times) < 2:
        return None
    shifts = np.arange(-_FINE_SHIFT, _FINE_SHIFT + 1e-9, _STEP / 2)
    best = 0.0, first.cells(), second.cells(), line
    geometries = _geometries(first, second)
    agreements = [one.units @ other.units.T for one, other in geometries]
    options = _totals(agreements, first, second, line, side, shifts) - 1e-3 * np.abs(shifts)
    for (one, other), totals in zip(geometries, options, strict=True):
        at = int(np.argmax(totals))
        best = max(best, (float(totals[at]), one, other, line.shifted(float(shifts[at]))), key=lambda found: found[0])
    total, one, other, line = best
    if total <= 0:
        return None
    forward = _inside(one, other, first, second, line, side)
    backward = _inside(other, one, second, first, line.swapped(), side)
    if forward is None or backward is None:
        return None
    insides = (first, forward), (second, backward)
    is_open = any(_reaches_border(clip, inside, side) for clip, inside in insides)
    times = [_border(clip, inside, side) if is_open else _at_cut(clip, inside, side) for clip, inside in insides]
    columns = _nearest(second.times, line.at(0.0) + first.times[forward.places] * line.speed)
    return EndFit(
        times[0],
        times[1],
        float(forward.values.mean()),
        _motion(one.means, other.means, forward.places, columns, first.step),
    )


def _geometries(first: Clip, second: Clip) -> list[tuple[Cells, Cells]]:
    """Cells of both clips: as they are, and without what the other one's aspect lacks."""
    pairs = [(first.cells(), second.cells())]
    if abs(first.aspect / second.aspect - 1) > _SAME_ASPECT:
        pairs += [(first.cells(second.aspect), second.cells()), (first.cells(), second.cells(first.aspect))]
    return pairs


def _totals(
    agreements: Sequence[NDArray[np.float32]],
    first: Clip,
    second: Clip,
    line: TimeLine,
    side: StretchEnd,
    shifts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Largest sum of (agreement - bound) on the inside of an end, for each of these agreements [N, M] of the frames of
    both clips and each shift of the second clip in seconds."""
    mapped = line.at(0.0) + shifts[:, None] + first.times[None] * line.speed
    rows, columns = np.arange(len(first.times))[None], _nearest(second.times, mapped)
    is_outside = (mapped < second.times[0] - second.step) | (mapped >= second.end + 0.5 * second.step)
    totals = []
    for agreement in agreements:
        values = agreement[rows, columns]
        gains = np.where((values == 0) | is_outside, 0.0, values - _BOUND)
        totals.append(np.cumsum(gains[:, ::-1] if side == "start" else gains, axis=1).max(axis=1))
    return np.array(totals)


def _nearest(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    right = np.searchsorted(times, wanted).clip(1, len(times) - 1)
    nearer: NDArray[np.int64] = np.where(wanted - times[right - 1] <= times[right] - wanted, right - 1, right)
    return nearer


class _Inside(NamedTuple):
    """Frames of a clip inside of an end, in order of time, and their correlations.

    Attributes:
        places: [K] places in the clip.
        values: [K] correlations.
        border: Place of the outermost frame inside, which may lie in a fade beyond those.
    """

    places: NDArray[np.int64]
    values: NDArray[np.float32]
    border: int


def _inside(cells: Cells, others: Cells, clip: Clip, other: Clip, line: TimeLine, side: StretchEnd) -> _Inside | None:
    mapped = line.at(0.0) + clip.times * line.speed
    # Half a frame beyond the other's border still shows its last frame.
    rows = np.flatnonzero((mapped > other.times[0] - 0.6 * other.step) & (mapped < other.end - 0.4 * other.step))
    if len(rows) == 0:
        return None
    if side == "start":
        rows = rows[::-1]
    columns = _nearest(other.times, mapped[rows])
    units, targets = cells.units[rows], others.units[columns]
    values: NDArray[np.float32] = np.vecdot(units, targets)
    is_empty: NDArray[np.bool_] = np.logical_not(np.any(units, axis=1) | np.any(targets, axis=1))
    bound = _BOUND
    count = 0
    for _ in range(2):
        gains = np.where(is_empty, 0.0, values - bound)
        sums = np.cumsum(gains)
        count = int(np.argmax(sums)) + 1
        if sums[count - 1] <= 0:
            return None
        # Titles and other versions agree less: the bound is between what agrees here and what has nothing in common.
        agreeing = values[:count][~is_empty[:count]]
        bound = max(_LEAST_BOUND, (float(np.median(agreeing)) + _DIFFERENT) / 2)
    count = _without_lookalike(values[:count], rows[:count], cells.means, others.means, clip, other, line)
    border = int(rows[count_with_dim(count, cells.means[rows], others.means[columns], clip.step) - 1])
    places, inside = rows[:count], values[:count]
    return _Inside(places[::-1], inside[::-1], border) if side == "start" else _Inside(places, inside, border)


def _without_lookalike(
    values: NDArray[np.float32],
    rows: NDArray[np.int64],
    cells: NDArray[np.float32],
    others: NDArray[np.float32],
    clip: Clip,
    other: Clip,
    line: TimeLine,
) -> int:
    """Number of the first frames that agree better than the rest by a step, if the rest does not move alike.

    Two skies resemble each other, but less than two copies of one, and their clouds drift apart.
    """
    count = len(values)
    sizes = np.arange(1, count)
    sums = np.cumsum(values, dtype=np.float64)
    inner, outer = sums[:-1] / sizes, (sums[-1] - sums[:-1]) / (count - sizes)
    steps = (inner - outer) * np.sqrt(sizes * (count - sizes))
    if count < 6 or inner[at := int(np.argmax(steps))] - outer[at] < _LOOKALIKE_STEP:
        return count
    rest = np.sort(rows[at + 1 :])
    motion = _motion(
        cells, others, rest, _nearest(other.times, line.at(0.0) + clip.times[rest] * line.speed), clip.step
    )
    return count if motion is not None and motion >= _LEAST_MOTION_MATCH else at + 1


def _reaches_border(clip: Clip, inside: _Inside, side: StretchEnd) -> bool:
    """Whether the same is shown up to where decoding stopped: a cut shortly before is not the end."""
    if side == "start":
        return inside.border <= 1 and not clip.is_first
    return inside.border >= len(clip.times) - 2 and not clip.is_last


def _border(clip: Clip, inside: _Inside, side: StretchEnd) -> float:
    """Time between frames that agree and not."""
    border = inside.border if side == "start" else inside.border + 1
    return float(clip.times[border]) if border < len(clip.times) else clip.end


def _at_cut(clip: Clip, inside: _Inside, side: StretchEnd) -> float:
    """Time of an end: that of the nearest cut of its video if one is near, else between frames that agree and not."""
    border = inside.border if side == "start" else inside.border + 1
    units = clip.cells().units
    alike: NDArray[np.float32] = np.vecdot(units[1:], units[:-1])
    # [N - 1] places of frames that begin a shot.
    cuts = np.flatnonzero(alike < _CUT) + 1
    if len(cuts):
        nearest = int(cuts[np.argmin(np.abs(cuts - border))])
        if abs(nearest - border) * clip.step <= _NEAR_CUT and _is_lone(alike, nearest):
            return float(clip.times[nearest])
    return _border(clip, inside, side)


def _is_lone(alike: NDArray[np.float32], cut: int) -> bool:
    """Whether the frames around a cut resemble each other: fast motion and fades do not cut."""
    before, after = alike[max(0, cut - 4) : cut - 1], alike[cut : cut + 3]
    return bool((before > _CUT).all() and (after > _CUT).all())


def _motion(
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    step: float,
) -> float | None:
    """Correlation of the changes of both pictures, in [-1, 1]; None if they hardly change."""
    lag = max(1, round(_LAG / step))
    if len(rows) <= lag:
        return None
    changes = [cells[places[lag:]] - cells[places[:-lag]] for cells, places in ((first, rows), (second, columns))]
    # Light that goes up and down is no motion.
    changes = [change - change.mean(axis=1, keepdims=True) for change in changes]
    return _correlation(*changes)


def _correlation(first: NDArray[np.float32], second: NDArray[np.float32]) -> float | None:
    """Correlation of two changes of pictures; 0 if one is far smaller, None if both are too small to see."""
    sizes = [float(np.sqrt((change**2).mean())) for change in (first, second)]
    if max(sizes) < _LEAST_MOTION:
        return None
    if min(sizes) < 0.3 * max(sizes):
        return 0.0  # one moves, and the other does not
    return float((first * second).mean() / (sizes[0] * sizes[1]))


_BESIDE = 1.0  # seconds beside an end whose pictures must agree
_LEAST_BESIDE = 0.75  # their correlation
# Correlation up to both ends: of what moves alike, what hardly moves, and what does not.
_LEAST_BESIDE_MOVING, _LEAST_BESIDE_SLOW, _LEAST_BESIDE_STILL = 0.55, 0.9, 0.97
_MOVING = 0.5  # correlation of motion
_SHORTEST_SHOT = 0.75  # seconds
_SAME_EDGE = 0.1


def nearest_speed(link: FittedStretch) -> float:
    """The speed of a stretch, as one of those of film on television."""
    speed = (link.second_end - link.second_start) / (link.first_end - link.first_start)
    return min(_SPEEDS, key=lambda known: abs(known - speed))


def fit_neighbor(
    clips: Clips,
    files: tuple[VideoRecord, VideoRecord],
    edge: float,
    moment: tuple[float, float],
    speed: float,
    side: StretchEnd,
) -> FittedStretch | None:
    """The shared stretch that begins (or ends) exactly at a known end of another one; None if there is none.

    Args:
        clips: Reads the files.
        files: The file with the end, and the other one.
        edge: Time of the end in the first file, seconds.
        moment: A time beside the end, and one in the other file that may show the same.
        speed: Seconds of the other file per second of the first.
        side: Which end of the known stretch it is: a ``start`` is the end of the stretch that is looked for.

    Raises:
        MediaError: One of the files cannot be read there.
    """
    inside = edge - _BESIDE if side == "start" else edge + _BESIDE
    clip, other = clips.around(files[0], max(0.0, inside)), clips.around(files[1], moment[1])
    line = _line_beside(clip, other, edge, TimeLine(*moment, speed), side)
    if line is None:
        return None
    outer: StretchEnd = side
    inner: StretchEnd = "end" if side == "start" else "start"
    known = find_end(clip, clips.around(files[1], max(0.0, line.at(inside))), line, inner)
    if known is None or abs(known.first - edge) > _SAME_EDGE:
        return None
    length = _BESIDE if side == "end" else -_BESIDE
    begin, end = sorted((edge, edge + length))
    stretch = RoughStretch(begin, end, max(0.0, line.at(begin)), max(0.1, line.at(end)), 0.0, 0.0)
    far = _fit(clips, *files, stretch, line, outer)
    if far is None:
        return None
    starts, ends = (far, known) if side == "start" else (known, far)
    match = min(starts.match, ends.match)
    lengths = ends.first - starts.first, ends.second - starts.second
    if min(lengths) < _SHORTEST_SHOT or abs(lengths[0] * line.speed - lengths[1]) > 2 * _SAME_EDGE:
        return None
    motion = max((fit.motion for fit in (starts, ends) if fit.motion is not None), default=None)
    least = _LEAST_BESIDE_STILL
    if motion is not None:
        least = _LEAST_BESIDE_MOVING if motion >= _MOVING else _LEAST_BESIDE_SLOW
        least = least if motion >= _LEAST_MOTION_MATCH else 1.0
    if match < least:
        return None
    return FittedStretch(starts.first, ends.first, starts.second, ends.second, 0.0, max(0.0, match))


def _line_beside(clip: Clip, other: Clip, edge: float, line: TimeLine, side: StretchEnd) -> TimeLine | None:
    """The line along which the pictures of a second beside an end agree with those of another file."""
    beside = (clip.times >= edge - _BESIDE) & is_before(clip.times, edge)
    if side == "end":
        beside = ~is_before(clip.times, edge) & (clip.times < edge + _BESIDE)
    rows = np.flatnonzero(beside)
    return None if len(rows) < 2 else _line_of(clip, other, rows, line)


def _line_of(clip: Clip, other: Clip, rows: NDArray[np.int64], line: TimeLine) -> TimeLine | None:
    """The line, shifted so that these pictures of a clip agree best with those of another file; None if none agree."""
    shifts = np.arange(-_SHIFT, _SHIFT + 1e-9, _STEP)
    best, found = _LEAST_BESIDE, None
    for one, another in _geometries(clip, other):
        agreement = one.units[rows] @ another.units.T
        mapped = line.at(0.0) + shifts[:, None] + clip.times[rows][None] * line.speed
        values = agreement[np.arange(len(rows))[None], _nearest(other.times, mapped)]
        values = np.where((mapped < other.times[0] - other.step) | (mapped >= other.end), 0.0, values)
        means = values.mean(axis=1) - 1e-3 * np.abs(shifts)
        at = int(np.argmax(means))
        if means[at] > best:
            best, found = float(means[at]), line.shifted(float(shifts[at]))
    return found


_MOMENTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # shares of a stretch
_AROUND_MOMENT = 1.0  # seconds


def try_fit_copy(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """The stretch as it is, if what moves at some moments of it moves alike; None if it does not, or nothing moves.

    For a stretch that looks alike at any offset: copies of a recording of a camera that stands still are the same
    there, other recordings of that camera are not.
    """
    speed = min(_SPEEDS, key=lambda known: abs(known - stretch.speed))
    courses = []
    try:
        for share in _MOMENTS:
            one, other = (
                start + share * (end - start)
                for start, end in (
                    (stretch.first_start, stretch.first_end),
                    (stretch.second_start, stretch.second_end),
                )
            )
            clip, target = clips.around(first, one), clips.around(second, other)
            rows = np.flatnonzero(np.abs(clip.times - one) <= _AROUND_MOMENT)
            line = _line_of(clip, target, rows, TimeLine(one, other, speed)) if len(rows) >= _LEAST_FRAMES else None
            if line is None:
                continue
            columns = _nearest(target.times, line.at(0.0) + clip.times[rows] * speed)
            pairs = _geometries(clip, target)
            found = [_departures(shown.means[rows], others.means[columns]) for shown, others in pairs]
            courses += [max(each for each in found if each is not None)] if any(f is not None for f in found) else []
    except MediaError as error:
        _logger.warning("%s; whether it is a copy is not known", error)
        return None
    if not courses or float(np.median(courses)) < _LEAST_COURSE:
        return None
    times = stretch.first_start, stretch.first_end, stretch.second_start, stretch.second_end
    return FittedStretch(*times, stretch.score, float(np.median(courses)))


def try_fit(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """:func:`fit_stretch`; where a file cannot be read there, the ends of its stored features."""
    try:
        return fit_stretch(clips, first, second, stretch)
    except MediaError as error:
        _logger.warning("%s; the ends are those of its stored features", error)
    if stretch.contrast < _LEAST_STILL_CONTRAST:
        return None
    times = stretch.first_start, stretch.first_end, stretch.second_start, stretch.second_end
    return FittedStretch(*times, stretch.score, 0.0)
