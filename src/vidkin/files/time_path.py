"""Which moment of one video each moment of another shows: the cheapest path along the lines of a match.

Shapes: T moments; L lags; D numbers of a coarse frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.similarity import Segment

# Seconds around a line of the match that are searched, and the step: a match is exact to about half a second.
_REACH, LAG_STEP = 1.5, 0.1
# Cost of a cut from one lag to another, in mean differences of a moment, and of a lag of one second off the line: of
# moments that look alike the expected one is meant.
_CUT, _OFF_LINE = 4.0, 0.15
# Lines whose times differ by less over the whole video are one.
_SAME_LINE = 0.3
# Speeds closer to 1 are 1.
_OTHER_SPEED = 0.02
_MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class MatchLine:
    """Times of the kept file along a line of the match: ``offset + speed * seconds of the removed file``."""

    offset: float
    speed: float

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds of the kept file at these seconds of the removed one."""
        return self.offset + self.speed * times


def lines_of(segments: Sequence[Segment], length: float) -> list[MatchLine]:
    """The different lines of a match, the longest first; the removed file is the query."""
    lines: list[MatchLine] = []
    for segment in sorted(segments, key=lambda item: item.query_start - item.query_end):
        middle = (segment.query_start + segment.query_end) / 2
        # A match of a scene that hardly moves may state any speed.
        for speed in dict.fromkeys((segment.speed if abs(segment.speed - 1) > _OTHER_SPEED else 1.0, 1.0)):
            line = MatchLine((segment.target_start + segment.target_end) / 2 - speed * middle, speed)
            ends = np.array([0.0, length])
            if all(np.abs(line.at(ends) - other.at(ends)).max() > _SAME_LINE for other in lines):
                lines.append(line)
    return lines[:_MAX_LINES]


def candidate_times(lines: Sequence[MatchLine], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """[T, L] seconds of the kept file that each moment may show: the lines and the lags around them."""
    lags = np.arange(-round(_REACH / LAG_STEP), round(_REACH / LAG_STEP) + 1) * LAG_STEP
    return np.concatenate([line.at(times)[:, None] + lags for line in lines], axis=1)


def find_path(costs: NDArray[np.float32], lines: int) -> NDArray[np.intp]:
    """[T] the column of each moment on the cheapest path.

    Args:
        costs: [T, L] mean difference of each moment from each candidate, about 1 where they agree as well as the pair
            does on the whole.
        lines: Number of lines; L is a multiple of it.
    """
    count = costs.shape[1] // lines
    off = np.tile(np.abs(np.arange(count) - count // 2) * LAG_STEP * _OFF_LINE, lines).astype(np.float32)
    came = np.empty(costs.shape, np.int16)
    total = costs[0] + off
    stay = np.arange(costs.shape[1])
    for row in range(1, len(costs)):
        best = int(np.argmin(total))
        after_cut = total[best] + np.float32(_CUT)
        stays = total <= after_cut
        came[row] = np.where(stays, stay, best)
        total = np.where(stays, total, after_cut) + costs[row] + off
    path = np.empty(len(costs), np.intp)
    path[-1] = int(np.argmin(total))
    for row in range(len(costs) - 1, 0, -1):
        path[row - 1] = came[row, path[row]]
    return path
