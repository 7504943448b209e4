"""Map each moment of one video to the moment of another video that it shows, by the cheapest path along a match.

Shapes: T moments; L candidates (lags along lines).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.similarity import Segment

# Seconds to search around a line of the match, and the search step; matches are exact to about half a second.
_REACH, LAG_STEP = 1.5, 0.1
# Cost of a jump between lags, in mean differences of a moment, and of a lag of one second from the line; the latter
# selects the expected moment among several similar ones.
_JUMP_COST, _LAG_COST = 4.0, 0.15
# Lines whose times never differ by more than this many seconds count as the same.
_MIN_LINE_DISTANCE = 0.3
# Speeds that differ from 1 by less than this are rounded to 1.
_MIN_SPEED_CHANGE = 0.02
_MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class MatchLine:
    """Times in the kept file along a line of the match: ``offset + speed * seconds in the removed file``."""

    offset: float
    speed: float

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the times in the kept file for these times in the removed file."""
        return self.offset + self.speed * times


def match_lines(segments: Sequence[Segment], length: float) -> list[MatchLine]:
    """List the distinct lines of a match, longest first; the removed file is the query."""
    lines: list[MatchLine] = []
    for segment in sorted(segments, key=lambda item: item.query_start - item.query_end):
        middle = (segment.query_start + segment.query_end) / 2
        # The speed of a match is unreliable if there is little motion, so normal speed is a candidate as well.
        for speed in dict.fromkeys((segment.speed if abs(segment.speed - 1) > _MIN_SPEED_CHANGE else 1.0, 1.0)):
            line = MatchLine((segment.target_start + segment.target_end) / 2 - speed * middle, speed)
            ends = np.array([0.0, length])
            if all(np.abs(line.at(ends) - other.at(ends)).max() > _MIN_LINE_DISTANCE for other in lines):
                lines.append(line)
    return lines[:_MAX_LINES]


def candidate_times(lines: Sequence[MatchLine], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the candidate times [T, L] in the kept file for each moment: all lags around each line."""
    lags = np.arange(-round(_REACH / LAG_STEP), round(_REACH / LAG_STEP) + 1) * LAG_STEP
    return np.concatenate([line.at(times)[:, None] + lags for line in lines], axis=1)


def find_path(costs: NDArray[np.float32], lines: int) -> NDArray[np.intp]:
    """Return the column [T] of each moment on the cheapest path.

    Args:
        costs: [T, L] mean difference of each moment from each candidate; about 1 if they agree as well as is typical
            for the pair.
        lines: Number of lines; L is a multiple of it.
    """
    count = costs.shape[1] // lines
    lag_costs = np.tile(np.abs(np.arange(count) - count // 2) * LAG_STEP * _LAG_COST, lines).astype(np.float32)
    previous = np.empty(costs.shape, np.int16)
    total = costs[0] + lag_costs
    stay = np.arange(costs.shape[1])
    for row in range(1, len(costs)):
        best = int(np.argmin(total))
        after_cut = total[best] + np.float32(_JUMP_COST)
        stays = total <= after_cut
        previous[row] = np.where(stays, stay, best)
        total = np.where(stays, total, after_cut) + costs[row] + lag_costs
    path = np.empty(len(costs), np.intp)
    path[-1] = int(np.argmin(total))
    for row in range(len(costs) - 1, 0, -1):
        path[row - 1] = previous[row, path[row]]
    return path
