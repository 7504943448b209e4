"""Straight lines through a map of frame similarities, and the evidence for a match along each of them.

A line is ``target time = offset + speed * query time``. Shapes: Tq, Tt frames; L lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError

__all__ = [
    "PREFERENCE",
    "EvidenceMap",
    "Line",
    "LineSearch",
    "NearestFrame",
    "Run",
    "best_run",
    "best_runs",
    "check_times",
]

# Cells worked on at once, which bounds the temporaries to some tens of megabytes.
_CELLS = 1 << 20
_SHIFT = 0.4567
# Number and share of positive cells from which on sums of them tell lines apart badly.
_MANY = 1 << 17
_DENSE = 0.05
# Lines read in full per search, reached only in maps of noise above the threshold.
_MOST_LINES = 4096
# Speeds other than 1 have to explain this much more: static scenes fit any of them.
PREFERENCE = 0.95


@dataclass(frozen=True, slots=True)
class Line:
    """``target time = offset + speed * query time``, seconds."""

    speed: float
    offset: float

    @property
    def weight(self) -> float:
        """Seconds of evidence that a second of query is worth: the shorter of the two sides counts."""
        return min(1.0, self.speed)


@dataclass(frozen=True, slots=True)
class Run:
    """Query frames ``first`` to ``last`` (both within) of a line, and the evidence they sum up to."""

    line: Line
    first: int
    last: int
    evidence: float


@dataclass(frozen=True, slots=True)
class EvidenceMap:
    """Evidence of each pair of frames for a match (above 0) or against it (below 0).

    Attributes:
        excess: [Tq, Tt] float32, (similarity - threshold) * weight * seconds of the query frame.
        query_times: [Tq] float64 seconds, increasing.
        target_times: [Tt] float64 seconds, increasing.
        query_seconds: [Tq] float32, how long each query frame is shown.
        query_period: Median distance of query frames, seconds.
        target_period: Median distance of target frames, seconds.
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
            speeds: [L] float64.
            offsets: [L] float64.

        Returns:
            [L, Tq] indices of target frames, and [L, Tq] booleans, False where the line is further than half
            a period from any target frame: beyond the ends, or where frames are missing.
        """
        times = offsets[:, None] + speeds[:, None] * self.query_times
        found = self.nearest(times)
        distance = (self.target_times[found] - times).abs_()
        return found, distance <= self.target_period * 0.501

    def along(self, speeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Evidence at each query frame of each line, [L, Tq] float32; 0 where there is no target frame."""
        found, near = self.columns(speeds, offsets)
        found += torch.arange(self.excess.shape[0]) * self.excess.shape[1]
        values = self.excess.flatten()[found]
        return values.mul_(near).mul_(speeds.clamp(max=1.0).float()[:, None])


class NearestFrame:
    """Index of the frame nearest to a time, for many times at once.

    Regular frames are counted; others are looked up in a table sixteen times as fine as their period.
    """

    _FINENESS = 16

    def __init__(self, times: torch.Tensor, period: float) -> None:
        self._first, self._last = float(times[0]), times.shape[0] - 1
        self._step = (float(times[-1]) - self._first) / self._last if self._last else period
        counted = self._first + self._step * torch.arange(times.shape[0], dtype=torch.float64)
        self.is_regular = bool((times - counted).abs().max() <= 1e-3 * period)
        self._table = torch.zeros(0, dtype=torch.long)
        if not self.is_regular:
            self._step = period / self._FINENESS
            entries = int((float(times[-1]) - self._first) / self._step) + 2
            middles = (times[1:] + times[:-1]) / 2
            self._table = torch.bucketize(
                self._first + self._step * torch.arange(entries, dtype=torch.float64), middles
            )

    def __call__(self, times: torch.Tensor) -> torch.Tensor:
        """Indices of the shape of times."""
        count = (times - self._first).div_(self._step).round_().long()
        if self.is_regular:
            return count.clamp_(0, self._last)
        return self._table[count.clamp_(0, self._table.shape[0] - 1)]


class LineSearch:
    """Finds the line and run with the most evidence, repeatedly while the evidence map is being cleared.

    Every line gets an upper bound first, the sum of its positive cells, from one histogram per speed. Lines
    are then read in full in the order of their bounds until none of the rest can do better. Clearing
    only removes evidence, so bounds stay valid. A map full of positive cells is read in full instead.
    """

    def __init__(self, evidence: EvidenceMap, speeds: Sequence[float], least: float) -> None:
        self._evidence = evidence
        # Speed 1 first, so that it wins ties.
        ordered = sorted(speeds, key=lambda speed: abs(speed - 1.0))
        if int((evidence.excess > 0).sum()) > max(_MANY, _DENSE * evidence.excess.numel()):
            all_speeds, offsets, bounds = _swept(evidence, ordered)
        else:
            all_speeds, offsets, bounds = _bounds(evidence, ordered)
        kept = bounds >= least
        self._speeds, self._offsets, self._bounds = all_speeds[kept], offsets[kept], bounds[kept]
        self._least = least

    def best(self) -> Run | None:
        """The run with the most evidence, or None if no line has the least evidence required."""
        read = torch.zeros(self._bounds.shape, dtype=torch.bool)
        batch = max(16, min(512, _CELLS // (4 * self._evidence.excess.shape[0])))
        while self._bounds.numel():
            leader = int(self._bounds.argmax())
            if float(self._bounds[leader]) < self._least:
                return None
            if bool(read[leader]) or int(read.sum()) >= _MOST_LINES:
                break
            unread = torch.where(read, -torch.inf, self._bounds)
            lines = unread.topk(min(batch, unread.numel())).indices
            lines = lines[~read[lines]].sort().values
            values = self._evidence.along(self._speeds[lines], self._offsets[lines])
            preference = torch.where(self._speeds[lines] == 1.0, 1.0, PREFERENCE)
            self._bounds[lines] = best_runs(values)[0] * preference
            read[lines] = True
        if not self._bounds.numel():
            return None
        leader = int(torch.where(read, self._bounds, -torch.inf).argmax())
        line = Line(float(self._speeds[leader]), float(self._offsets[leader]))
        return best_run(self._evidence, line) if float(self._bounds[leader]) >= self._least else None


def best_run(evidence: EvidenceMap, line: Line, *, longest_gap: float = torch.inf) -> Run | None:
    """The run with the most evidence along one line, or None if nothing on it is positive.

    Args:
        evidence: The map.
        line: The line.
        longest_gap: A run is cut where the evidence falls by more than this below what it had reached.
    """
    values = evidence.along(
        torch.tensor([line.speed], dtype=torch.float64), torch.tensor([line.offset], dtype=torch.float64)
    )
    total, first, last = (float(item[0]) for item in best_runs(values))
    if total <= 0:
        return None
    run = Run(line, int(first), int(last), total)
    if longest_gap == torch.inf:
        return run
    return _best_piece(run, values[0, run.first : run.last + 1].tolist(), longest_gap)


def best_runs(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maximum-sum run of each row of values [L, Tq]: sums [L] float64, first and last index [L], both within.

    Kadane's algorithm for all rows at once: the largest difference of the cumulative sum to its running minimum.
    """
    sums = values.cumsum(1, dtype=torch.float64)
    before = torch.nn.functional.pad(sums[:, :-1], (1, 0))
    lowest, start = before.cummin(1)
    total, last = (sums - lowest).max(1)
    return total, start.gather(1, last[:, None])[:, 0], last


def check_times(name: str, times: torch.Tensor, length: int) -> torch.Tensor:
    """Times as float64 on the CPU, or InvalidArgumentError."""
    if tuple(times.shape) != (length,):
        raise InvalidArgumentError(
            f"{name} must be [{length}] as the map has that many frames, got {list(times.shape)}"
        )
    result = times.detach().to("cpu", torch.float64)
    if not bool(result.isfinite().all()) or bool((result.diff() <= 0).any()):
        raise InvalidArgumentError(f"{name} must be finite and increasing")
    return result


def _best_piece(run: Run, values: list[float], longest_gap: float) -> Run:
    best, best_first, best_last = 0.0, 0, 0
    total, peak, first, last = 0.0, 0.0, 0, 0
    for position, value in enumerate(values):
        if total <= 0.0 or peak - total > longest_gap:
            total, peak, first = 0.0, 0.0, position
        total += value
        if total > peak:
            peak, last = total, position
            if peak > best:
                best, best_first, best_last = peak, first, last
    return Run(run.line, run.first + best_first, run.first + best_last, best)


def _bounds(
    evidence: EvidenceMap, speeds: Sequence[float]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Speeds, offsets and upper bounds of all lines: sums of their positive cells.

    A cell belongs to the lines less than half a target period from it; bins are half a period wide.
    """
    query_times, target_times = evidence.query_times, evidence.target_times
    grids = [_offsets(evidence, speed) for speed in speeds]
    mass = [torch.zeros(len(grid) - 1, dtype=torch.float64) for grid in grids]
    lowest = [float(grid[0]) for grid in grids]
    rows = max(1, _CELLS // target_times.shape[0])
    for start in range(0, query_times.shape[0], rows):
        part = evidence.excess[start : start + rows]
        row, column = (part > 0).nonzero(as_tuple=True)
        if not row.numel():
            continue
        values = part[row, column].double()
        from_query, from_target = query_times[start + row], target_times[column]
        for number, speed in enumerate(speeds):
            distance = torch.add(from_target, from_query, alpha=-speed).sub_(lowest[number])
            place = distance.div_(evidence.target_period / 2).long()
            mass[number] += torch.bincount(place, values, len(mass[number]))
    pad = torch.nn.functional.pad
    return _joined(speeds, grids, [pad(item, (0, 1)) + pad(item, (1, 0)) for item in mass])


def _swept(evidence: EvidenceMap, speeds: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Speeds, offsets and evidence of the best run of all lines, in one sweep over the rows for each speed.

    Lines of one speed are half a target period apart, so that in any row every second line reads the next
    cell: a row is added to all of them as one slice. Irregular frames are put on a regular grid first, which
    makes the result an estimate.
    """
    period, first = evidence.target_period, float(evidence.target_times[0])
    excess = evidence.excess
    if not evidence.nearest.is_regular:
        size = round((float(evidence.target_times[-1]) - first) / period) + 1
        grid = first + period * torch.arange(size, dtype=torch.float64)
        columns = evidence.nearest(grid)
        missing = (evidence.target_times[columns] - grid).abs() > period / 2
        excess = excess[:, columns].masked_fill_(missing, 0.0)
    grids = [_offsets(evidence, speed) for speed in speeds]
    totals = []
    for speed, offsets in zip(speeds, grids, strict=True):
        total = torch.zeros(len(offsets), dtype=torch.float64)
        for parity in (0, 1):
            places = (float(offsets[parity]) - first + speed * evidence.query_times) / period
            lines = total[parity::2]
            # Kadane's algorithm for ``count`` lines; line n reads column ``places[row] + n`` of each row.
            count = len(lines)
            current, best = torch.zeros(count), torch.zeros(count)
            for row, place in zip(excess, places.round().long().tolist(), strict=True):
                start, stop = max(0, -place), min(count, excess.shape[1] - place)
                if start < stop:
                    part = current[start:stop]
                    part.clamp_(min=0.0).add_(row[place + start : place + stop])
                    torch.maximum(best[start:stop], part, out=best[start:stop])
            lines += best
        totals.append(total)
    return _joined(speeds, grids, totals)


def _offsets(evidence: EvidenceMap, speed: float) -> torch.Tensor:
    """Offsets of the lines of one speed that meet the map, half a target period apart, [n] float64.

    Shifted by an irregular part of a step: otherwise cells of equally sampled videos would lie on the edges of bins,
    and rounding would decide which lines they belong to.
    """
    step = evidence.target_period / 2
    lowest = float(evidence.target_times[0] - speed * evidence.query_times[-1]) - _SHIFT * step
    highest = float(evidence.target_times[-1] - speed * evidence.query_times[0])
    return lowest + step * torch.arange(int((highest - lowest) / step) + 3, dtype=torch.float64)


def _joined(
    speeds: Sequence[float], grids: list[torch.Tensor], totals: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Speeds, offsets and totals of all lines, the totals weighted by speed."""
    weights = [min(1.0, speed) * (1.0 if speed == 1.0 else PREFERENCE) for speed in speeds]
    weighed = [total * weight for total, weight in zip(totals, weights, strict=True)]
    each = [torch.full_like(grid, speed) for speed, grid in zip(speeds, grids, strict=True)]
    return torch.cat(each), torch.cat(grids), torch.cat(weighed)
