"""Finds the straight lines with the most evidence in a map of frame similarities.

Shapes: Tq, Tt frames; L lines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

# Cells processed at once, which limits temporaries to some tens of megabytes.
_CELLS = 1 << 20

_SHIFT = 0.4567

# Number and share of positive cells above which their sums distinguish lines poorly.
_MANY = 1 << 17

_DENSE = 0.05

# Lines read in full at first, if bounds are exact; twice as many each further time.
_FIRST_LINES = 32

# Share of a bin's width by which lines read cells farther away than half a period.
_EDGE = 0.0021

# Cell positions processed at once for several speeds, so that they stay in the processor's cache.
_POSITIONS = 1 << 16

# Lines read in full per search, a limit reached only in maps of noise above the threshold.
_MOST_LINES = 4096

# Cells of all lines up to which reading all of them takes less time than to find out which ones to read.
_MOST_AT_ONCE = 1 << 14


class LineSearch:
    """Finds the line and run with the most evidence, repeatedly as the evidence map is cleared.

    Every line first gets an upper bound, the sum of its positive cells, from one histogram per speed. Lines are then
    read in full in the order of their bounds until none of the rest can be better. Clearing only removes evidence, so
    bounds stay valid. A map full of positive cells is read in full instead, and so is one of a few hundred cells, where
    bounds take longer than the lines.
    """

    def __init__(self, evidence: EvidenceMap, speeds: Sequence[float], least: float) -> None:
        self._evidence, self._least = evidence, least
        excess = evidence.excess
        lines = _Lines.of(evidence, speeds)
        self._table = _LineTable(evidence, lines, least) if lines.starts[-1] * len(excess) <= _MOST_AT_ONCE else None
        if self._table is not None:
            return
        self._is_exact = excess.size <= _MANY or _count_positive(excess) <= max(_MANY, _DENSE * excess.size)
        # Only cells nearer than half a period belong to a line.
        nearer, bounds = _bounds(evidence, lines) if self._is_exact else 2 * (_swept(evidence, lines),)
        kept = np.flatnonzero(nearer >= least)
        self._speeds, self._offsets = lines.speeds[kept], lines.offsets[kept]
        self._preferences, self._first_bounds = lines.preferences[kept], bounds[kept]
        self._bounds = self._first_bounds.copy()

    def is_exhausted(self) -> bool:
        """Whether no line can reach the least evidence, from a single pass over the map instead of the lines."""
        return self._evidence.most_of_rows() < self._least

    def forget(self) -> None:
        """Start over from the first bounds: cells below 0 were raised, so runs already read may have grown."""
        if self._table is not None:
            self._table.forget()
        else:
            self._bounds = self._first_bounds.copy()

    def best(self, *, longest_gap: float = math.inf) -> Run | None:
        """The run with the most evidence, or None if no line has the least evidence required.

        Args:
            longest_gap: Largest drop in evidence within a run; see :func:`best_run`.
        """
        evidence = self._evidence
        if self._table is not None:
            trace = None if self.is_exhausted() else self._table.best()
            return None if trace is None else best_run(evidence, trace, longest_gap=longest_gap)
        # A pass over a large map takes longer than reading its lines.
        if not self._bounds.size or (self._evidence.excess.size <= _CELLS and self.is_exhausted()):
            return None
        largest = max(16, min(512, _CELLS // (4 * evidence.excess.shape[0])))
        most = -(-_MOST_LINES // largest) * largest
        batch = min(largest, _FIRST_LINES) if self._is_exact else largest
        order = np.argsort(-self._bounds, kind="stable")
        read, best, leader = 0, -math.inf, 0
        count = min(most, len(order))
        while read < count:
            lines = order[read : min(read + batch, count)]
            highest = float(self._bounds[lines[0]])
            if highest < best or max(highest, best) < self._least:
                break
            lines = np.sort(lines)
            values = evidence.along(self._speeds[lines], self._offsets[lines])
            totals = best_sums(values) * self._preferences[lines]
            self._bounds[lines] = totals
            place = int(totals.argmax())
            total, line = float(totals[place]), int(lines[place])
            # The first among equals.
            if total > best or (total == best and line < leader):
                best, leader = total, line
            read, batch = read + len(lines), min(largest, 2 * batch)
        if best < self._least:
            return None
        coarse = Line(float(self._speeds[leader]), float(self._offsets[leader]))
        return best_run(evidence, evidence.trace(coarse), longest_gap=longest_gap)


class _LineTable:
    """All lines of a small map, which are read at once.

    Rows of the table are frames of the query, columns lines: sums along a line are then sums of whole rows.
    """

    def __init__(self, evidence: EvidenceMap, lines: _Lines, least: float) -> None:
        self._evidence, self._lines, self._least = evidence, lines, least
        self._columns, self._near = evidence.at_times(evidence.query_times[:, None] * lines.speeds + lines.offsets)
        cells = self._columns + np.arange(0, evidence.excess.size, evidence.excess.shape[1])[:, None]
        weights = self._near * np.minimum(lines.speeds, 1.0).astype(np.float32)
        self._all = self._kept = cells, weights, np.arange(len(lines.speeds))

    def forget(self) -> None:
        """Read all lines again."""
        self._kept = self._all

    def best(self) -> Trace | None:
        """The line whose best run has the most evidence, the first among equals; None if none has the least required.

        Lines that have less are not read again, as evidence is only removed.
        """
        cells, weights, numbers = self._kept
        values = self._evidence.excess.reshape(-1).take(cells)
        values *= weights
        totals = best_sums_down(values)
        totals *= self._lines.preferences[numbers]
        leader = int(totals.argmax())
        if totals[leader] < self._least:
            return None
        number, enough = int(numbers[leader]), totals >= self._least
        if 2 * np.count_nonzero(enough) < len(enough):
            self._kept = cells[:, enough], weights[:, enough], numbers[enough]
        line = Line(float(self._lines.speeds[number]), float(self._lines.offsets[number]))
        return Trace(line, self._columns[:, number], self._near[:, number])


@dataclass(frozen=True, slots=True)
class _Lines:
    """All lines of some speeds that meet the map, speed after speed: offsets half a target period apart.

    Attributes:
        speeds: [L] float64, speed of each line.
        offsets: [L] float64, offset of each line.
        preferences: [L] float64, 1 or PREFERENCE.
        slopes: The distinct speeds; 1 comes first, so that it wins ties.
        starts: Index of the first line of each speed, and the number of lines.
        lowest: Offset of the first line of each speed.
    """

    speeds: NDArray[np.float64]
    offsets: NDArray[np.float64]
    preferences: NDArray[np.float64]
    slopes: list[float]
    starts: list[int]
    lowest: list[float]

    @classmethod
    def of(cls, evidence: EvidenceMap, speeds: Sequence[float]) -> _Lines:
        """All lines of the speeds, on a grid shifted by an irregular part of a step.

        Without the shift, cells of equally sampled videos would lie on the edges of bins, and rounding would decide
        which lines they belong to.
        """
        step = evidence.target_period / 2
        first, last = float(evidence.query_times[0]), float(evidence.query_times[-1])
        begin, end = float(evidence.target_times[0]), float(evidence.target_times[-1])
        slopes = sorted(speeds, key=lambda speed: abs(speed - 1.0))
        lowest = [begin - speed * last - _SHIFT * step for speed in slopes]
        counts = [int((end - speed * first - low) / step) + 3 for speed, low in zip(slopes, lowest, strict=True)]
        starts = [0, *itertools.accumulate(counts)]
        preferences = [1.0 if speed == 1.0 else PREFERENCE for speed in slopes]
        each = np.repeat(np.array([slopes, lowest, starts[:-1], preferences]), counts, axis=1)
        offsets = (np.arange(starts[-1]) - each[2]) * step + each[1]
        return cls(each[0], offsets, each[3], slopes, starts, lowest)


def _count_positive(excess: NDArray[np.float32]) -> int:
    """Number of cells above 0, counted in pieces that stay in the cache."""
    cells = excess.reshape(-1)
    return sum(int(np.count_nonzero(cells[start : start + _CELLS] > 0)) for start in range(0, len(cells), _CELLS))


def _bounds(evidence: EvidenceMap, lines: _Lines) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the positive cells of all lines, weighted by speed, [L] float64, and upper bounds of their runs.

    A cell belongs to the lines less than half a target period from it: two lines, as bins are half a period wide.
    Lines read cells a little farther away, so the bounds count a cell for a third line if that is just as near.
    """
    mass, more = np.zeros((2, lines.starts[-1]))
    excess = evidence.excess
    slopes, lowest = np.array(lines.slopes)[:, None], np.array(lines.lowest)[:, None]
    firsts = np.array(lines.starts)[:, None]
    rows = max(1, _CELLS // excess.shape[1])
    for start in range(0, excess.shape[0], rows):
        part = excess[start : start + rows]
        places = np.flatnonzero(part > 0)
        if not places.size:
            continue
        values = part.reshape(-1)[places].astype(np.float64)
        row, column = np.divmod(places, excess.shape[1])
        from_target, from_query = evidence.target_times[column], evidence.query_times[row + start]
        # Process as many speeds at once as fit in the cache.
        group = max(1, _POSITIONS // row.size)
        for low in range(0, len(lines.slopes), group):
            high = min(low + group, len(lines.slopes))
            distance = slopes[low:high] * from_query
            np.subtract(from_target, distance, out=distance)
            distance -= lowest[low:high]
            distance /= evidence.target_period / 2
            place = distance.astype(np.int64)
            distance -= place
            place += firsts[low:high] - lines.starts[low]
            begin, end = lines.starts[low], lines.starts[high]
            spread = np.broadcast_to(values, distance.shape).reshape(-1)
            mass[begin:end] += np.bincount(place.reshape(-1), spread, end - begin)
            edge = (distance <= _EDGE) | (distance >= 1.0 - _EDGE)
            if edge.any():
                third = (place + 3 * (distance >= 0.5) - 1)[edge]
                more[begin:end] += np.bincount(third, spread.reshape(edge.shape)[edge], end - begin)
    # The last bin of each speed stays empty.
    mass[1:] += mass[:-1].copy()
    weight = np.minimum(lines.speeds, 1.0) * lines.preferences
    return mass * weight, (more + mass) * weight


def _swept(evidence: EvidenceMap, lines: _Lines) -> NDArray[np.float64]:
    """Evidence of the best run of all lines, [L] float64, in one sweep over the rows for each speed.

    Lines of one speed are half a target period apart, so in any row every second line reads the next cell, and a row
    is added to all of them as one slice. Irregular frames are put on a regular grid first, which makes the result an
    estimate.
    """
    period, first = evidence.target_period, float(evidence.target_times[0])
    excess = evidence.excess
    if not evidence.nearest.is_regular:
        size = round((float(evidence.target_times[-1]) - first) / period) + 1
        grid = first + period * np.arange(size, dtype=np.float64)
        columns = evidence.nearest(grid)
        missing = np.abs(evidence.target_times[columns] - grid) > period / 2
        excess = np.where(missing, np.float32(0), excess[:, columns])
    totals = np.zeros(lines.starts[-1])
    for number, speed in enumerate(lines.slopes):
        begin, end = lines.starts[number], lines.starts[number + 1]
        for parity in (0, 1):
            offset = float(lines.offsets[begin + parity])
            places = (offset - first + speed * evidence.query_times) / period
            # Kadane's algorithm for ``count`` lines; line n reads column ``places[row] + n`` of each row.
            count = len(range(begin + parity, end, 2))
            current, best = np.zeros((2, count), np.float32)
            for row, place in zip(excess, np.round(places).astype(np.int64).tolist(), strict=True):
                start, stop = max(0, -place), min(count, excess.shape[1] - place)
                if start < stop:
                    part = current[start:stop]
                    np.maximum(part, 0.0, out=part)
                    part += row[place + start : place + stop]
                    np.maximum(best[start:stop], part, out=best[start:stop])
            totals[begin + parity : end : 2] = best
    return totals * (np.minimum(lines.speeds, 1.0) * lines.preferences)


# Straight lines through a map of frame similarities, and the evidence for a match along each of them.
#
# A line is ``target time = offset + speed * query time``. Shapes: Tq, Tt frames; L lines.


# Speeds other than 1 must explain this much more, because static scenes fit any speed.
PREFERENCE = 0.95


@dataclass(frozen=True, slots=True)
class Line:
    """``target time = offset + speed * query time``, seconds."""

    speed: float
    offset: float

    @property
    def weight(self) -> float:
        """Seconds of evidence that a second of the query is worth: the shorter of the two sides counts."""
        return min(1.0, self.speed)


@dataclass(frozen=True, slots=True)
class Trace:
    """The cells a line passes through, which stay the same while the evidence map is cleared.

    Attributes:
        line: The line.
        columns: [Tq] target frame nearest to the line at each query frame.
        near: [Tq] bool, False where no target frame is on the line.
    """

    line: Line
    columns: NDArray[np.int64]
    near: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Run:
    """Query frames ``first`` to ``last`` (inclusive) of a line, and their total evidence."""

    trace: Trace
    first: int
    last: int
    evidence: float

    @property
    def line(self) -> Line:
        """The line that contains the run."""
        return self.trace.line

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query and target frames, [n] each, except where the line meets no target frame."""
        rows = np.flatnonzero(self.trace.near[self.first : self.last + 1]) + self.first
        return rows, self.trace.columns[rows]


@dataclass(frozen=True, slots=True)
class EvidenceMap:
    """Evidence of each pair of frames for a match (above 0) or against it (below 0).

    Attributes:
        excess: [Tq, Tt] float32, contiguous, (similarity - threshold) * weight * seconds of the query frame.
        query_times: [Tq] float64 seconds, increasing.
        target_times: [Tt] float64 seconds, increasing.
        query_seconds: [Tq] float32, how long each query frame is shown.
        query_period: Median distance of query frames in seconds.
        target_period: Median distance of target frames in seconds.
        nearest: Finds target frames by time.
    """

    excess: NDArray[np.float32]
    query_times: NDArray[np.float64]
    target_times: NDArray[np.float64]
    query_seconds: NDArray[np.float32]
    query_period: float
    target_period: float
    nearest: NearestFrame

    def columns(
        self, speeds: NDArray[np.float64], offsets: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Target frame nearest to each line at each query frame.

        Args:
            speeds: [L] float64, speeds of the lines.
            offsets: [L] float64, offsets of the lines.

        Returns:
            [L, Tq] indices of target frames, and [L, Tq] booleans that are False where the line is farther than half a
            period from any target frame: beyond the ends, or where frames are missing.
        """
        times = speeds[:, None] * self.query_times
        times += offsets[:, None]
        return self.at_times(times)

    def trace(self, line: Line) -> Trace:
        """The cells of one line."""
        return Trace(line, *self.at_times(self.query_times * line.speed + line.offset))

    def along(self, speeds: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float32]:
        """Evidence at each query frame of each line, [L, Tq] float32; 0 where there is no target frame."""
        columns, near = self.columns(speeds, offsets)
        values = self._values(columns, near)
        values *= np.minimum(speeds, 1.0).astype(np.float32)[:, None]
        return values

    def along_trace(self, trace: Trace) -> NDArray[np.float32]:
        """Evidence at each query frame of one line, [Tq] float32; 0 where there is no target frame."""
        values = self._values(trace.columns, trace.near)
        return values if trace.line.weight == 1.0 else values * trace.line.weight

    def at(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """``excess[rows, columns]`` for indices that can be added to each other."""
        values: NDArray[np.float32] = self.excess.reshape(-1).take(rows * self.excess.shape[1] + columns)
        return values

    def most_of_rows(self) -> float:
        """An upper bound on the evidence of any line: the sum of the brightest cell of each query frame."""
        # Slightly more, because sums of float32 are not exact.
        return float(np.maximum(self.excess.max(1), 0.0).sum()) * (1.0 + 1e-4)

    def at_times(self, times: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Target frames nearest to times of any shape, and whether they are within half a period."""
        columns = self.nearest(times)
        distance = self.target_times.take(columns)
        distance -= times
        return columns, np.abs(distance, out=distance) <= self.target_period * 0.501

    def _values(self, columns: NDArray[np.int64], near: NDArray[np.bool_]) -> NDArray[np.float32]:
        values = self.excess.reshape(-1).take(columns + np.arange(0, self.excess.size, self.excess.shape[1]))
        values *= near
        return values


class NearestFrame:
    """Index of the frame nearest to a time, for many times at once.

    The index of regular frames is computed; others are looked up in a table sixteen times as fine as their period.
    """

    _FINENESS = 16

    def __init__(self, times: NDArray[np.float64], period: float) -> None:
        self._first, self._last = float(times[0]), times.shape[0] - 1
        self._step = (float(times[-1]) - self._first) / self._last if self._last else period
        counted = self._first + self._step * np.arange(times.shape[0])
        self.is_regular = bool(np.abs(times - counted).max() <= 1e-3 * period)
        self._table: NDArray[np.int64] | None = None
        if not self.is_regular:
            self._step = period / self._FINENESS
            entries = int((float(times[-1]) - self._first) / self._step) + 2
            middles = (times[1:] + times[:-1]) / 2
            self._table = np.searchsorted(middles, self._first + self._step * np.arange(entries))

    def __call__(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Indices with the shape of ``times``."""
        place = times - self._first
        place /= self._step
        count = np.rint(place, out=place).astype(np.int64)
        # Two steps are faster than numpy.clip, which first looks up the limits of the type.
        np.maximum(count, 0, out=count)
        np.minimum(count, self._last if self._table is None else len(self._table) - 1, out=count)
        return count if self._table is None else self._table.take(count)


def best_run(evidence: EvidenceMap, trace: Trace, *, longest_gap: float = math.inf) -> Run | None:
    """The run with the most evidence along one line, or None if nothing on it is positive.

    Args:
        evidence: The map.
        trace: The cells of the line.
        longest_gap: A run ends where its evidence falls by more than this below its maximum so far.
    """
    values = evidence.along_trace(trace).tolist()
    total, first, last = run_of(values)
    if total <= 0:
        return None
    run = Run(trace, first, last, total)
    if longest_gap == math.inf:
        return run
    best, best_first, best_last = 0.0, run.first, run.last
    sum_so_far, peak, begin = 0.0, 0.0, run.first
    for position, value in enumerate(values[run.first : run.last + 1], start=run.first):
        if sum_so_far <= 0.0 or peak - sum_so_far > longest_gap:
            sum_so_far, peak, begin = 0.0, 0.0, position
        sum_so_far += value
        if sum_so_far > peak:
            peak = sum_so_far
            if peak > best:
                best, best_first, best_last = peak, begin, position
    return Run(trace, best_first, best_last, best)


def run_of(values: Sequence[float]) -> tuple[float, int, int]:
    """Maximum-sum run of numbers: its sum, its first and its last place, inclusive.

    A loop, as an array takes longer for a few numbers.
    """
    # Kadane's algorithm: the largest difference of the sum so far to the smallest one before it, and where that was
    # reached last.
    total, lowest, begun = 0.0, 0.0, 0
    gained, first, last = -math.inf, 0, 0
    for position, value in enumerate(values):
        if total <= lowest:
            lowest, begun = total, position
        total += value
        if total - lowest > gained:
            gained, first, last = total - lowest, begun, position
    return gained, first, last


# Lines from which on a step for each row takes less time than one sum down all columns.
_MANY_LINES = 128


def best_sums(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sum of the maximum-sum run of each row of values [L, Tq], [L] float64: that of :func:`run_of` for all at once."""
    sums = np.zeros((values.shape[0], values.shape[1] + 1))
    values.cumsum(1, np.float64, sums[:, 1:])
    gained = sums[:, 1:] - np.minimum.accumulate(sums[:, :-1], axis=1)
    return np.asarray(gained.max(1))


def best_sums_down(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The same of each column of values [Tq, L], [L] float64: row by row, as NumPy's sums down columns are slow."""
    if values.shape[1] < _MANY_LINES:
        return best_sums(values.T)
    total, lowest, gained = np.zeros((3, values.shape[1]))
    gained -= np.inf
    above = np.empty_like(total)
    for row in values:
        np.minimum(lowest, total, out=lowest)
        total += row
        np.subtract(total, lowest, out=above)
        np.maximum(gained, above, out=gained)
    return gained


def clear_adjoining(
    evidence: EvidenceMap,
    positive: NDArray[np.bool_],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    against: float,
) -> None:
    """Remove the evidence of cells and of the positive cells that adjoin them along rows and columns.

    Args:
        evidence: The map, changed in place.
        positive: [Tq, Tt] bool, cells that can be cleared, usually those above 0.
        rows: [n] rows of the cells, increasing.
        columns: [n] columns of the cells, not decreasing.
        against: Maximum value that remains.
    """
    _clear_beside(evidence.excess, positive, rows, columns, against)
    once = np.ones(len(columns), np.bool_)
    np.greater(columns[1:], columns[:-1], out=once[1:])
    _clear_beside(evidence.excess.T, positive.T, columns[once], rows[once], against)


def check_times(name: str, times: NDArray[np.floating], length: int) -> NDArray[np.float64]:
    """Times as float64; raises InvalidArgumentError if they do not fit."""
    if times.shape != (length,):
        raise InvalidArgumentError(
            f"{name} must be [{length}] as the map has that many frames, got {list(times.shape)}"
        )
    result = np.ascontiguousarray(times, np.float64)
    # Increasing times are finite if their ends are; comparisons with NaN are False.
    ends = result[:: max(1, length - 1)].tolist()
    if not all(map(math.isfinite, ends)) or not bool((result[1:] > result[:-1]).all()):
        raise InvalidArgumentError(f"{name} must be finite and increasing")
    return result


def _clear_beside(
    excess: NDArray[np.float32],
    positive: NDArray[np.bool_],
    lines: NDArray[np.int64],
    centers: NDArray[np.int64],
    against: float,
) -> None:
    """In each of ``lines`` (all different) of excess [N, M], clear the stretch around its center that is positive.

    A single cell below the threshold does not end the stretch.
    """
    count = excess.shape[1]
    places = np.arange(count, dtype=np.int32)
    step = max(1, (1 << 20) // count)
    for start in range(0, len(lines), step):
        line, center = lines[start : start + step], centers[start : start + step, None]
        given = positive[line]
        bright = given.copy()
        bright[:, 1:] |= given[:, :-1]
        bright[:, :-1] |= given[:, 1:]
        dark = ~bright
        # Ends of the stretch: the last dark place before the center, the first one after it.
        below = ((dark & (places < center)) * (places + 1)).max(1, keepdims=True) - 1
        above = count - ((dark & (places > center)) * (count - places)).max(1, keepdims=True)
        cleared = (places > below) & (places < above)
        part = excess[line]
        np.minimum(part, against, out=part, where=cleared)
        excess[line] = part
