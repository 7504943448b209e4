"""Straight lines through a map of frame similarities, and the evidence for a match along each of them.

A line is ``target time = offset + speed * query time``. Shapes: Tq, Tt frames; L lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError

__all__ = [
    "PREFERENCE",
    "EvidenceMap",
    "Line",
    "NearestFrame",
    "Run",
    "Trace",
    "best_run",
    "best_runs",
    "check_times",
    "clear_adjoining",
]

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
