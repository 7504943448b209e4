"""Choose the windows in which to compare two long videos: around the offsets with the most votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.match.lines import SPEED_LIMITS
from vidkin.match.measure import Sequenced

__all__ = ["MapWindow", "find_windows"]

# Number of query frames per chunk: about a minute at two frames per second.
_CHUNK = 128
# Maximum number of windows per chunk; reordered footage occurs at several offsets.
_MAX_WINDOWS = 4
# Maximum size of a map that is compared as a whole, because that is faster than finding windows.
_MAX_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class MapWindow:
    """A range of query frames and a range of target frames to compare.

    Attributes:
        query_first, query_end: Position of the first query frame, and one past the last.
        target_first, target_end: Position of the first target frame, and one past the last.
    """

    query_first: int
    query_end: int
    target_first: int
    target_end: int


@check_arguments
def find_windows(
    query: Sequenced, target: Sequenced, similarity: NDArray[np.float32], least: float
) -> tuple[MapWindow, ...]:
    """Choose the windows in which to compare two videos: the whole map of short videos, and the windows with the most
    votes in long ones.

    Each query frame votes for its most similar target frame, weighted by how far the similarity exceeds ``least``. Each
    chunk of the query gets a limited number of windows, so the cost of the detailed comparison is not quadratic.

    Args:
        query, target: Frames of the videos.
        similarity: [Tq, Tt] calibrated similarity.
        least: Minimum similarity for a frame to vote.
    """
    if similarity.size <= _MAX_CELLS:
        return (MapWindow(0, len(query), 0, len(target)),)
    best = similarity.argmax(axis=1)
    values = similarity[np.arange(len(query)), best] - np.float32(least)
    rows = np.flatnonzero(values > 0)
    return tuple(_windows(query, target, rows, target.times[best[rows]], values[rows]))


def _windows(
    query: Sequenced, target: Sequenced, rows: NDArray[np.intp], times: NDArray[np.float64], values: NDArray[np.float32]
) -> Iterator[MapWindow]:
    """Yield, for each chunk of the query, the windows of the target with the most votes, wide enough for any speed."""
    for first in range(0, len(query), _CHUNK):
        end = min(first + _CHUNK, len(query))
        inside = (rows >= first) & (rows < end)
        at, weights = times[inside], values[inside].astype(np.float64)
        reach = SPEED_LIMITS[1] * (query.times[end - 1] - query.times[first]) + 2 * target.period
        spans: list[tuple[float, float]] = []
        while len(at) and len(spans) < _MAX_WINDOWS:
            # Take the vote with the most weight within half the reach on either side, and center the window on it and
            # its neighbors.
            near = np.abs(at[:, None] - at[None]) <= reach / 2
            best = near[int(np.argmax(near @ weights))]
            middle = float((at[best] * weights[best]).sum() / weights[best].sum())
            spans.append((middle - reach, middle + reach))
            at, weights = at[~best], weights[~best]
        for start, stop in _merge(spans):
            low = int(np.searchsorted(target.times, start))
            high = int(np.searchsorted(target.times, stop, side="right"))
            if low < high:
                yield MapWindow(first, end, low, high)


def _merge(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge overlapping spans and return them in ascending order."""
    merged: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged
