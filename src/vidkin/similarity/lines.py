"""Finds the straight lines with the most evidence in a map of frame similarities.

Shapes: Tq, Tt frames; L lines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

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


class LineSearch:
    """Finds the line and run with the most evidence, repeatedly as the evidence map is cleared.

    Every line first gets an upper bound, the sum of its positive cells, from one histogram per speed. Lines are then
    read in full in the order of their bounds until none of the rest can be better. Clearing only removes evidence, so
    bounds stay valid. A map full of positive cells is read in full instead.
    """

    def __init__(self, evidence: EvidenceMap, speeds: Sequence[float], least: float) -> None:
        self._evidence = evidence
        excess = evidence.excess
        lines = _Lines.of(evidence, speeds)
        self._is_exact = excess.numel() <= _MANY or int((excess > 0).count_nonzero()) <= max(
            _MANY, _DENSE * excess.numel()
        )
        # Only cells nearer than half a period belong to a line.
        nearer, bounds = _bounds(evidence, lines) if self._is_exact else 2 * (_swept(evidence, lines),)
        kept = (nearer >= least).nonzero()[:, 0]
        self._speeds, self._offsets = lines.speeds.take(kept), lines.offsets.take(kept)
        self._preferences, self._first_bounds = lines.preferences.take(kept), bounds.take(kept)
        self._bounds = self._first_bounds.clone()
        self._least = least

    def is_exhausted(self) -> bool:
        """Whether no line can reach the least evidence, from a single pass over the map instead of the lines."""
        return self._evidence.most_of_rows() < self._least

    def forget(self) -> None:
        """Start over from the first bounds: cells below 0 were raised, so runs already read may have grown."""
        self._bounds = self._first_bounds.clone()

    def best(self, *, longest_gap: float = math.inf) -> Run | None:
        """The run with the most evidence, or None if no line has the least evidence required.

        Args:
            longest_gap: Largest drop in evidence within a run; see :func:`best_run`.
        """
        evidence = self._evidence
        # A pass over a large map takes longer than reading its lines.
        if not self._bounds.numel() or (self._evidence.excess.numel() <= _CELLS and self.is_exhausted()):
            return None
        largest = max(16, min(512, _CELLS // (4 * evidence.excess.shape[0])))
        most = -(-_MOST_LINES // largest) * largest
        batch = min(largest, _FIRST_LINES) if self._is_exact else largest
        unread, read, best, leader = self._bounds.clone(), 0, -math.inf, 0
        count = min(most, unread.numel())
        while read < count:
            bounds, lines = unread.topk(min(batch, count - read))
            highest = bounds[0].item()
            if highest < best or max(highest, best) < self._least:
                break
            lines = lines.sort().values
            values = evidence.along(self._speeds.take(lines), self._offsets.take(lines))
            totals = best_runs(values)[0].mul_(self._preferences.take(lines))
            self._bounds.index_copy_(0, lines, totals)
            unread.index_fill_(0, lines, -math.inf)
            place = int(totals.argmax())
            total, line = totals[place].item(), int(lines[place])
            # The first among equals.
            if total > best or (total == best and line < leader):
                best, leader = total, line
            read, batch = read + lines.numel(), min(largest, 2 * batch)
        if best < self._least:
            return None
        coarse = Line(self._speeds[leader].item(), self._offsets[leader].item())
        return best_run(evidence, evidence.trace(coarse), longest_gap=longest_gap)


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

    speeds: torch.Tensor
    offsets: torch.Tensor
    preferences: torch.Tensor
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
        first, last = evidence.query_times[0].item(), evidence.query_times[-1].item()
        begin, end = evidence.target_times[0].item(), evidence.target_times[-1].item()
        slopes = sorted(speeds, key=lambda speed: abs(speed - 1.0))
        lowest = [begin - speed * last - _SHIFT * step for speed in slopes]
        counts = [int((end - speed * first - low) / step) + 3 for speed, low in zip(slopes, lowest, strict=True)]
        starts = [0, *itertools.accumulate(counts)]
        preferences = [1.0 if speed == 1.0 else PREFERENCE for speed in slopes]
        columns = torch.tensor([slopes, lowest, starts[:-1], preferences], dtype=torch.float64)
        each = columns.repeat_interleave(torch.tensor(counts), dim=1, output_size=starts[-1])
        places = torch.arange(starts[-1], dtype=torch.float64).sub_(each[2])
        return cls(each[0], places.mul_(step).add_(each[1]), each[3], slopes, starts, lowest)


def _bounds(evidence: EvidenceMap, lines: _Lines) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of the positive cells of all lines, weighted by speed, [L] float64, and upper bounds of their runs.

    A cell belongs to the lines less than half a target period from it: two lines, as bins are half a period wide.
    Lines read cells a little farther away, so the bounds count a cell for a third line if that is just as near.
    """
    mass, more = torch.zeros(2, lines.starts[-1], dtype=torch.float64)
    excess = evidence.excess
    table = torch.tensor([lines.slopes, lines.lowest], dtype=torch.float64)[:, :, None]
    firsts = torch.tensor(lines.starts)[:, None]
    rows = max(1, _CELLS // excess.shape[1])
    for start in range(0, excess.shape[0], rows):
        part = excess[start : start + rows]
        places = (part > 0).view(-1).nonzero()[:, 0]
        if not places.numel():
            continue
        values = part.reshape(-1).take(places).double()
        row = places.div(excess.shape[1], rounding_mode="floor")
        from_target = evidence.target_times.take(places.sub_(row * excess.shape[1]))
        from_query = evidence.query_times.take(row.add_(start))
        # Process as many speeds at once as fit in the cache.
        group = max(1, _POSITIONS // places.numel())
        for low in range(0, len(lines.slopes), group):
            high = min(low + group, len(lines.slopes))
            distance = torch.addcmul(from_target, table[0, low:high], from_query, value=-1.0)
            distance.sub_(table[1, low:high]).div_(evidence.target_period / 2)
            place = distance.long()
            least, most = (item.item() for item in distance.sub_(place).aminmax())
            place += firsts[low:high] - lines.starts[low]
            begin, end = lines.starts[low], lines.starts[high]
            spread = values.expand(high - low, -1).reshape(-1)
            mass[begin:end] += torch.bincount(place.view(-1), spread, end - begin)
            if least <= _EDGE or most >= 1.0 - _EDGE:
                third = place.add_((distance >= 0.5).mul(3)).sub_(1).view(-1)
                edge = ((distance <= _EDGE) | (distance >= 1.0 - _EDGE)).view(-1)
                more[begin:end] += torch.bincount(third[edge], spread[edge], end - begin)
    # The last bin of each speed stays empty.
    mass[1:] += mass[:-1].clone()
    weight = lines.speeds.clamp(max=1.0).mul_(lines.preferences)
    return mass * weight, more.add_(mass).mul_(weight)


def _swept(evidence: EvidenceMap, lines: _Lines) -> torch.Tensor:
    """Evidence of the best run of all lines, [L] float64, in one sweep over the rows for each speed.

    Lines of one speed are half a target period apart, so in any row every second line reads the next cell, and a row
    is added to all of them as one slice. Irregular frames are put on a regular grid first, which makes the result an
    estimate.
    """
    period, first = evidence.target_period, float(evidence.target_times[0])
    excess = evidence.excess
    if not evidence.nearest.is_regular:
        size = round((float(evidence.target_times[-1]) - first) / period) + 1
        grid = first + period * torch.arange(size, dtype=torch.float64)
        columns = evidence.nearest(grid)
        missing = (evidence.target_times[columns] - grid).abs() > period / 2
        excess = excess[:, columns].masked_fill_(missing, 0.0)
    totals = torch.zeros(lines.starts[-1], dtype=torch.float64)
    for number, speed in enumerate(lines.slopes):
        begin, end = lines.starts[number], lines.starts[number + 1]
        for parity in (0, 1):
            offset = lines.offsets[begin + parity].item()
            places = (offset - first + speed * evidence.query_times) / period
            # Kadane's algorithm for ``count`` lines; line n reads column ``places[row] + n`` of each row.
            count = len(range(begin + parity, end, 2))
            current, best = torch.zeros(count), torch.zeros(count)
            for row, place in zip(excess, places.round().long().tolist(), strict=True):
                start, stop = max(0, -place), min(count, excess.shape[1] - place)
                if start < stop:
                    part = current[start:stop]
                    part.clamp_(min=0.0).add_(row[place + start : place + stop])
                    torch.maximum(best[start:stop], part, out=best[start:stop])
            totals[begin + parity : end : 2] = best
    return totals.mul_(lines.speeds.clamp(max=1.0).mul_(lines.preferences))


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
    columns: torch.Tensor
    near: torch.Tensor


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

    def cells(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Query and target frames, [n] each, except where the line meets no target frame."""
        rows = self.trace.near[self.first : self.last + 1].nonzero()[:, 0].add_(self.first)
        return rows, self.trace.columns.index_select(0, rows)


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

    excess: torch.Tensor
    query_times: torch.Tensor
    target_times: torch.Tensor
    query_seconds: torch.Tensor
    query_period: float
    target_period: float
    nearest: NearestFrame

    def columns(self, speeds: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Target frame nearest to each line at each query frame.

        Args:
            speeds: [L] float64, speeds of the lines.
            offsets: [L] float64, offsets of the lines.

        Returns:
            [L, Tq] indices of target frames, and [L, Tq] booleans that are False where the line is farther than half a
            period from any target frame: beyond the ends, or where frames are missing.
        """
        return self._at(torch.mul(speeds[:, None], self.query_times).add_(offsets[:, None]))

    def trace(self, line: Line) -> Trace:
        """The cells of one line."""
        return Trace(line, *self._at(torch.mul(self.query_times, line.speed).add_(line.offset)))

    def along(self, speeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Evidence at each query frame of each line, [L, Tq] float32; 0 where there is no target frame."""
        columns, near = self.columns(speeds, offsets)
        return self._values(columns, near).mul_(speeds.clamp(max=1.0).float()[:, None])

    def along_trace(self, trace: Trace) -> torch.Tensor:
        """Evidence at each query frame of one line, [Tq] float32; 0 where there is no target frame."""
        values = self._values(trace.columns, trace.near)
        return values if trace.line.weight == 1.0 else values.mul_(trace.line.weight)

    def at(self, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """``excess[rows, columns]`` for indices that can be added to each other."""
        return self.excess.view(-1).take(rows * self.excess.shape[1] + columns)

    def most_of_rows(self) -> float:
        """An upper bound on the evidence of any line: the sum of the brightest cell of each query frame."""
        # Slightly more, because sums of float32 are not exact.
        return self.excess.amax(1).clamp_(min=0.0).sum().item() * (1.0 + 1e-4)

    def _at(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Target frames nearest to times, and whether they are within half a period."""
        columns = self.nearest(times)
        distance = self.target_times.take(columns).sub_(times).abs_()
        return columns, distance <= self.target_period * 0.501

    def _values(self, columns: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        starts = torch.arange(0, self.excess.numel(), self.excess.shape[1])
        return self.excess.view(-1).take(columns + starts).mul_(near)


class NearestFrame:
    """Index of the frame nearest to a time, for many times at once.

    The index of regular frames is computed; others are looked up in a table sixteen times as fine as their period.
    """

    _FINENESS = 16

    def __init__(self, times: torch.Tensor, period: float) -> None:
        self._first, self._last = times[0].item(), times.shape[0] - 1
        self._step = (float(times[-1]) - self._first) / self._last if self._last else period
        counted = self._first + self._step * torch.arange(times.shape[0], dtype=torch.float64)
        self.is_regular = bool((times - counted).abs().max() <= 1e-3 * period)
        self._table: torch.Tensor | None = None
        if not self.is_regular:
            self._step = period / self._FINENESS
            entries = int((float(times[-1]) - self._first) / self._step) + 2
            middles = (times[1:] + times[:-1]) / 2
            self._table = torch.bucketize(
                self._first + self._step * torch.arange(entries, dtype=torch.float64), middles
            )

    def __call__(self, times: torch.Tensor) -> torch.Tensor:
        """Indices with the shape of ``times``."""
        count = (times - self._first).div_(self._step).round_().long()
        if self._table is None:
            return count.clamp_(0, self._last)
        return self._table.take(count.clamp_(0, self._table.shape[0] - 1))


def best_run(evidence: EvidenceMap, trace: Trace, *, longest_gap: float = math.inf) -> Run | None:
    """The run with the most evidence along one line, or None if nothing on it is positive.

    Args:
        evidence: The map.
        trace: The cells of the line.
        longest_gap: A run ends where its evidence falls by more than this below its maximum so far.
    """
    values = evidence.along_trace(trace)
    total, first, last = (item.item() for item in best_runs(values[None]))
    if total <= 0:
        return None
    run = Run(trace, int(first), int(last), total)
    if longest_gap == math.inf:
        return run
    best, best_first, best_last = 0.0, run.first, run.last
    sum_so_far, peak, begin = 0.0, 0.0, run.first
    for position, value in enumerate(values[run.first : run.last + 1].tolist(), start=run.first):
        if sum_so_far <= 0.0 or peak - sum_so_far > longest_gap:
            sum_so_far, peak, begin = 0.0, 0.0, position
        sum_so_far += value
        if sum_so_far > peak:
            peak = sum_so_far
            if peak > best:
                best, best_first, best_last = peak, begin, position
    return Run(trace, best_first, best_last, best)


def best_runs(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maximum-sum run of each row of values [L, Tq]: sums [L] float64, first and last index [L], inclusive.

    Kadane's algorithm for all rows at once: the largest difference of the cumulative sum to its running minimum.
    """
    sums = torch.constant_pad_nd(values, (1, 0)).cumsum(1, dtype=torch.float64)
    lowest, start = sums[:, :-1].cummin(1)
    total, last = torch.sub(sums[:, 1:], lowest).max(1)
    return total, start.gather(1, last[:, None])[:, 0], last


def clear_adjoining(
    evidence: EvidenceMap, positive: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, against: float
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
    once = torch.ones_like(columns, dtype=torch.bool)
    torch.gt(columns[1:], columns[:-1], out=once[1:])
    _clear_beside(evidence.excess.T, positive.T, columns[once], rows[once], against)


def check_times(name: str, times: torch.Tensor, length: int) -> torch.Tensor:
    """Times as float64 on the CPU; raises InvalidArgumentError if they do not fit."""
    if tuple(times.shape) != (length,):
        raise InvalidArgumentError(
            f"{name} must be [{length}] as the map has that many frames, got {list(times.shape)}"
        )
    result = times.detach().to("cpu", torch.float64).contiguous()
    # Increasing times are finite if their ends are; comparisons with NaN are False.
    ends = result[:: max(1, length - 1)].tolist()
    if not all(map(math.isfinite, ends)) or not bool((result[1:] > result[:-1]).all()):
        raise InvalidArgumentError(f"{name} must be finite and increasing")
    return result


def _clear_beside(
    excess: torch.Tensor, positive: torch.Tensor, lines: torch.Tensor, centers: torch.Tensor, against: float
) -> None:
    """In each of ``lines`` (all different) of excess [N, M], clear the stretch around its center that is positive.

    A single cell below the threshold does not end the stretch.
    """
    count = excess.shape[1]
    places = torch.arange(count, dtype=torch.int32)
    step = max(1, (1 << 20) // count)
    for start in range(0, lines.numel(), step):
        line, center = lines[start : start + step], centers[start : start + step, None]
        given = positive.index_select(0, line)
        bright = given.clone()
        bright[:, 1:] |= given[:, :-1]
        bright[:, :-1] |= given[:, 1:]
        dark = bright.logical_not_()
        # Ends of the stretch: the last dark place before the center, the first one after it.
        below = (dark & (places < center)).mul(places + 1).amax(1, keepdim=True) - 1
        above = count - (dark & (places > center)).mul(count - places).amax(1, keepdim=True)
        cleared = (places > below) & (places < above)
        part = excess[line]
        excess[line] = torch.where(cleared, part.clamp(max=against), part)
