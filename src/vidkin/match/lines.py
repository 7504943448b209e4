"""Find straight lines in a frame similarity map: clips of one video that occur in another at constant speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments

__all__ = ["MAX_GAP", "MAX_LINES", "AlignedLine", "find_lines"]

Map = NDArray[np.float32]
Times = NDArray[np.float64]

SPEEDS = (1.0, 0.5, 0.57, 0.66, 0.76, 0.87, 1.15, 1.32, 1.52, 1.74, 2.0, 2.4)
"""Speeds to try, in seconds of target per second of query; the best ones are then refined."""
SPEED_LIMITS = (0.45, 2.6)
# A line at a different speed, or in reverse, needs this many times the evidence of the line at speed 1. Sampling alone,
# with frames up to half a period apart, changes the evidence by less.
_MIN_GAIN = 1.08
# The gain per row must also exceed zero by this many standard errors, because the best of many speeds gains by chance.
_MIN_ERRORS = 3.0
# Evidence of a mismatch. When lines are compared, cleared cells and cells outside the map count as mismatches.
_MISMATCH = np.float32(-0.25)
# Number of speeds other than 1 whose best line is fitted.
_FITTED_SPEEDS = 2
MAX_GAP = 1.6
"""A line ends after this many seconds without evidence."""
MAX_LINES = 8
"""Maximum number of lines in a map."""
# Maximum factor by which fitting increases the evidence of a grid line; grid offsets are half a frame apart.
_MAX_LIFT = 1.25
# Column offsets around a line at which its peak is searched for.
_NEAR = np.arange(-2, 3)
# Minimum number of frames to fit a speed.
_MIN_FREE = 6
# Maximum number of fitting iterations; a fit stops earlier when the evidence no longer increases.
_MAX_FITS = 4
# Minimum evidence of a line, as a fraction of the strongest line's evidence and in seconds; maps of unrelated videos
# are full of weaker lines.
_MIN_RATIO, _MIN_EVIDENCE = 0.1, 0.15
# Minimum evidence of a line, as a fraction of a stronger line's evidence in the same query or target frames. Repeated
# footage is equally similar each time it occurs, while other moments of a scene are less similar.
_MIN_REPEAT_RATIO = 0.8


@dataclass(frozen=True, slots=True)
class AlignedLine:
    """A clip of the query found in the target: target time = offset + speed * query time.

    Attributes:
        speed: Seconds of target per second of query; negative if the target plays in reverse.
        offset: Target time in seconds at query time 0.
        rows: [N] positions of the query frames on the line, consecutive.
        columns: [N] position of the matching target frame for each row; -1 beyond the ends of the target.
        evidence: Sum of the map along the line; one second of a perfect match adds 1.
    """

    speed: float
    offset: float
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    evidence: float

    def __len__(self) -> int:
        return len(self.rows)


@check_arguments
def find_lines(
    evidence: Map, query_times: Times, target_times: Times, *, max_lines: int = MAX_LINES
) -> list[AlignedLine]:
    """Find the lines with the most evidence, strongest first; each lies outside the area covered by stronger lines.

    Each line is cut to the run with the largest sum of evidence, weighted by the duration of the query frames.
    In query or target frames that a stronger line already explains, cells with less than 0.8 times that line's mean
    evidence count as mismatches.

    Args:
        evidence: [Tq, Tt] frame similarity minus the minimum for a match; negative values are evidence against a match.
        query_times: [Tq] seconds, increasing.
        target_times: [Tt] seconds, increasing.
        max_lines: Maximum number of lines.
    """
    if not evidence.size or evidence.max() <= 0:
        return []
    forward = _Search(evidence.copy(), query_times, target_times)
    # A reversed copy is a forward line in the reversed target. With fewer than three frames it is indistinguishable.
    backward = _Search(evidence[:, ::-1].copy(), query_times, -target_times[::-1]) if len(query_times) > 2 else None
    found: list[AlignedLine] = []
    for _ in range(max_lines):
        least = max(_MIN_RATIO * found[0].evidence, _MIN_EVIDENCE) if found else 0.0
        line = forward.find(over=least)
        reverse = backward.find(over=line.evidence if line is not None else least) if backward is not None else None
        if reverse is not None:
            reverse = _reverse(reverse, len(target_times))
            if line is None or forward.exceeds(reverse, line):
                line = reverse
        if line is None or line.evidence < least:
            break
        found.append(line)
        forward.clear(line)
        if backward is not None:
            backward.clear(_reverse(line, len(target_times)))
    return found


def _reverse(line: AlignedLine, count: int) -> AlignedLine:
    """Convert a line found in the reversed target, which has ``count`` frames, to the original target."""
    columns = np.where(line.columns >= 0, count - 1 - line.columns, -1)
    return AlignedLine(-line.speed, -line.offset, line.rows, columns, line.evidence)


class _Search:
    """Searches one map for lines; `clear` removes the lines already found.

    Args:
        left: [Tq, Tt] the remaining evidence; modified in place.
        query_times, target_times: [Tq] and [Tt] seconds.
    """

    def __init__(self, left: Map, query_times: Times, target_times: Times) -> None:
        self._left, self._query_times, self._target_times = left, query_times, target_times
        self._durations = _frame_durations(query_times)
        self._period = _median_step(target_times)
        self._gap = max(MAX_GAP, 2.5 * _median_step(query_times))
        speeds = SPEEDS if len(query_times) > 2 else SPEEDS[:1]
        offsets = [self._offsets(speed) for speed in speeds]
        self._firsts = np.cumsum([0, *(len(part) for part in offsets)])[:-1]
        self._speeds = np.repeat(speeds, [len(part) for part in offsets])
        self._all_offsets = np.concatenate(offsets)
        lines = self._all_offsets[:, None] + self._speeds[:, None] * query_times[None]
        self._columns = self._nearest(lines)

    def _offsets(self, speed: float) -> Times:
        reach = speed * self._query_times
        first, last = self._target_times[0] - reach[-1], self._target_times[-1] - reach[0] + self._period
        return np.arange(first, last, self._period / 2)

    def find(self, over: float = 0.0) -> AlignedLine | None:
        """Return the best remaining line; None if fitting cannot raise the evidence of any line above ``over``."""
        sums = np.cumsum(self._along(self._columns) * self._durations, axis=1)
        lowest = np.minimum(np.minimum.accumulate(sums, axis=1)[:, :-1], 0.0)
        before = np.concatenate([np.zeros((len(sums), 1), np.float32), lowest], axis=1)
        gains = (sums - before).max(axis=1)
        of_speeds = np.maximum.reduceat(gains, self._firsts)
        if _MAX_LIFT * float(of_speeds.max()) <= over:
            return None
        best: AlignedLine | None = None
        for number in [0, *(1 + np.argsort(-of_speeds[1:])[:_FITTED_SPEEDS]).tolist()]:
            # Skip speeds whose fit cannot exceed the best line so far.
            margin = _MIN_GAIN if best is not None and best.speed == 1.0 else 1.0
            if of_speeds[number] <= 0 or (best is not None and _MAX_LIFT * of_speeds[number] <= margin * best.evidence):
                continue
            last = self._firsts[number + 1] if number + 1 < len(self._firsts) else len(gains)
            at = self._firsts[number] + int(np.argmax(gains[self._firsts[number] : last]))
            start = float(self._speeds[at]), float(self._all_offsets[at])
            for is_free in (False, True) if number == 0 else (True,):
                if number == 0 and is_free and best is not None and len(best) < _MIN_FREE:
                    continue
                line = self._fit(*start, is_free)
                if line is None:
                    continue
                if best is None or (best.speed != 1.0 and line.evidence > best.evidence) or self.exceeds(line, best):
                    best = line
        return best

    def exceeds(self, line: AlignedLine, plain: AlignedLine) -> bool:
        """Whether a line has significantly more evidence than ``plain``, beyond what sampling and chance explain."""
        if line.evidence <= _MIN_GAIN * plain.evidence:
            return False
        rows = np.union1d(line.rows, plain.rows)
        values = []
        for each in (line, plain):
            # Extend both lines over the same rows; outside the map they get a mismatch.
            columns = self._nearest(each.offset + each.speed * self._query_times[rows])
            cells = np.where(columns >= 0, self._left[rows, columns], np.float32(-1.0))
            values.append(np.maximum(cells, _MISMATCH) * self._durations[rows])
        gain = values[0] - values[1]
        return bool(gain.mean() > _MIN_ERRORS * gain.std() / np.sqrt(len(gain)))

    def clear(self, line: AlignedLine) -> None:
        """Remove a line from the map: its rows and columns with a margin of `MAX_GAP`, and any cells of its query or
        target frames with clearly less evidence than the line.

        In still footage all frames are similar, so further lines there would be redundant.
        """
        inside = line.columns >= 0
        own, columns = line.rows[inside], line.columns[inside]
        least = _MIN_REPEAT_RATIO * float(self._left[own, columns].mean())
        for explained in (own, (slice(None), columns)):
            cells = self._left[explained]
            self._left[explained] = np.where(cells < least, np.minimum(cells, _MISMATCH), cells)
        times = self._target_times[columns]
        rows = slice(int(line.rows[0]), int(line.rows[-1]) + 1)
        reach = max(MAX_GAP, self._period)
        first = int(np.searchsorted(self._target_times, times.min() - reach))
        end = int(np.searchsorted(self._target_times, times.max() + reach, side="right"))
        self._left[rows, first:end] = -1.0

    def _nearest(self, times: Times) -> NDArray[np.intp]:
        """Position of the target frame nearest to each time; -1 beyond the ends."""
        target = self._target_times
        if len(target) > 1:
            columns = np.minimum(np.maximum(np.searchsorted(target, times), 1), len(target) - 1)
            columns -= times - target[columns - 1] < target[columns] - times
        else:
            columns = np.zeros(times.shape, np.intp)
        beyond = (times < target[0] - 0.75 * self._period) | (times > target[-1] + 0.75 * self._period)
        columns[beyond] = -1
        return columns

    def _along(self, columns: NDArray[np.intp]) -> Map:
        """Map values [..., Tq] along lines; beyond the ends of the target they are -1, which ends a run."""
        rows = np.arange(columns.shape[-1])
        return np.where(columns >= 0, self._left[rows, columns], np.float32(-1.0))

    def _run(self, columns: NDArray[np.intp]) -> tuple[int, int, float]:
        """First row, row after the last, and evidence of the best run on a line without long gaps."""
        values = self._along(columns) * self._durations
        first, last, total = _find_max_run(values)
        # Rows with evidence; gaps longer than `_gap` between them split the run.
        positive = first + np.flatnonzero(values[first:last] > 0)
        if len(positive) < 2:
            return first, last, total
        at = self._query_times[positive]
        wide = np.flatnonzero(at[1:] - at[:-1] > self._gap)
        if not len(wide):
            return first, last, total
        parts = np.split(positive, wide + 1)
        sums = [float(values[part[0] : part[-1] + 1].sum()) for part in parts]
        chosen = parts[int(np.argmax(sums))]
        return int(chosen[0]), int(chosen[-1]) + 1, max(sums)

    def _fit(self, speed: float, offset: float, is_free: bool) -> AlignedLine | None:
        """Fit a line to the peaks of the map, iterating as long as the evidence increases.

        Args:
            speed, offset: Initial values of the line.
            is_free: Whether the speed is also fitted.
        """
        best: AlignedLine | None = None
        for _ in range(_MAX_FITS):
            columns = self._nearest(offset + speed * self._query_times)
            first, last, total = self._run(columns)
            if last <= first or total <= 0 or (best is not None and total < best.evidence - 1e-6):
                break
            is_better = best is None or total > best.evidence + 1e-6
            best = AlignedLine(speed, offset, np.arange(first, last), columns[first:last], total)
            if not is_better:
                break
            inside = best.columns >= 0
            rows = best.rows[inside]
            peaks, weights = _peaks(self._left, rows, best.columns[inside], self._target_times)
            moved = _regress(self._query_times[rows], peaks, weights, speed, is_free)
            if moved is None:
                break
            speed, offset = moved
        return best


def _median_step(times: Times) -> float:
    """Median seconds between consecutive frames; 1 for a single frame."""
    return float(np.median(times[1:] - times[:-1])) if len(times) > 1 else 1.0


def _frame_durations(times: Times) -> NDArray[np.float32]:
    """Duration [T] of each frame in seconds, capped at twice the median so that a slide does not outweigh the rest."""
    if len(times) < 2:
        return np.ones(1, np.float32)
    steps = np.diff(times)
    usual = float(np.median(steps))
    return np.asarray(np.minimum(np.append(steps, usual), 2 * usual), np.float32)


def _find_max_run(values: NDArray[np.float32]) -> tuple[int, int, float]:
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    lowest = np.minimum.accumulate(sums)
    last = int(np.argmax(sums - lowest))
    first = int(np.argmin(sums[: last + 1]))
    return first, last, float(sums[last] - sums[first])


def _peaks(
    left: Map, rows: NDArray[np.intp], columns: NDArray[np.intp], target_times: Times
) -> tuple[Times, NDArray[np.float64]]:
    """Time [N] of the map's peak near the line in each row, with subframe interpolation, and height [N] of the peak
    above the mean of its neighborhood."""
    last = left.shape[1] - 1
    near = np.minimum(np.maximum(columns[:, None] + _NEAR, 0), last)
    values = left[rows[:, None], near].astype(np.float64)
    every, highest = np.arange(len(rows)), values.argmax(axis=1)
    at, peaks = near[every, highest], values[every, highest]
    times = target_times[at].astype(np.float64)
    if last > 1:
        center = np.minimum(np.maximum(at, 1), last - 1)
        one, two, three = (left[rows, center + step].astype(np.float64) for step in (-1, 0, 1))
        bend = one - 2 * two + three
        shift = np.minimum(np.maximum(0.5 * (one - three) / np.minimum(bend, -1e-3), -0.5), 0.5)
        step = (target_times[center + 1] - target_times[center - 1]) / 2
        bends = (center == at) & (bend < -1e-3)
        times = times + np.where(bends, shift * step, 0.0)
    distinct = np.maximum(peaks - values.sum(axis=1) / values.shape[1], 0.0)
    return times, np.where(peaks > 0, distinct, 0.0)


def _regress(
    times: Times, peaks: Times, weights: NDArray[np.float64], speed: float, is_free: bool
) -> tuple[float, float] | None:
    """Fit speed and offset by weighted least squares; the speed is kept if the frames do not determine it."""
    total = weights.sum()
    if total < 1e-3:
        return None
    middle, goal = (weights * times).sum() / total, (weights * peaks).sum() / total
    if is_free and len(times) >= _MIN_FREE:
        spread = (weights * (times - middle) ** 2).sum()
        if spread > 1e-6:
            slope = (weights * (times - middle) * (peaks - goal)).sum() / spread
            speed = min(max(float(slope), SPEED_LIMITS[0]), SPEED_LIMITS[1])
    return speed, float(goal - speed * middle)
