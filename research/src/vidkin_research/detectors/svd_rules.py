"""The steps of SVD-SBD on arrays: select segments that may contain a transition, and locate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GROUP",
    "Candidate",
    "candidate_segments",
    "cosines_to",
    "find_cut",
    "find_transition",
    "narrow",
    "reduced_columns",
]

GROUP = 10
"""Number of segments that share a local threshold."""

_LOCAL = 1.1
_SPREAD = 0.6
_NEIGHBOR = 3.0
_GLOBAL = 0.8
# (ratio between the halves, minimum fraction of the whole in the larger half) for the first and second bisection.
_FIRST = (1.5, 0.7)
_SECOND = (2.0, 0.8)
_STILL = 0.3
_SAME = 0.95
_RANK = 8
_TRIANGLE = 0.25
_CENTER = (0.25, 0.75)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A range of frames that may contain a transition.

    Attributes:
        kind: ``hard`` if two bisections locate the change in one quarter, ``gradual`` otherwise.
        first: First frame.
        last: Last frame.
    """

    kind: Literal["hard", "gradual"]
    first: int
    last: int


def candidate_segments(distances: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Select the segments whose ends differ enough to be examined.

    With mu_G the mean over the video, and mu_L and sigma_L the mean and standard deviation over the segment's group of
    ten, segment n is a candidate if

        d(n) > 1.1 mu_L + 0.6 (mu_G / mu_L) sigma_L, or
        d(n) > 3 d(n-1) or d(n) > 3 d(n+1), and d(n) > 0.8 mu_G.

    Args:
        distances: [N] differences between the first and the last frame of each segment, at least 0.

    Returns:
        [N] bool, True for segments that may contain a transition.
    """
    chosen = np.zeros(len(distances), dtype=np.bool_)
    if not len(distances):
        return chosen
    overall = float(distances.mean())
    for first in range(0, len(distances), GROUP):
        group = distances[first : first + GROUP]
        local = float(group.mean())
        if local > 0:
            threshold = _LOCAL * local + _SPREAD * overall / local * float(group.std())
            chosen[first : first + GROUP] = group > threshold
    over_neighbor = np.zeros(len(distances), dtype=np.bool_)
    over_neighbor[1:] |= distances[1:] > _NEIGHBOR * distances[:-1]
    over_neighbor[:-1] |= distances[:-1] > _NEIGHBOR * distances[1:]
    return chosen | (over_neighbor & (distances > _GLOBAL * overall))


def narrow(
    first: int,
    whole: float,
    halves: tuple[float, float],
    quarters: tuple[tuple[float, float], tuple[float, float]],
) -> Candidate | None:
    """Locate the change within a 21-frame segment by two bisections.

    If one half has more than 1.5 times the other's difference and more than 0.7 of the whole difference, it is bisected
    again, with 2 and 0.8: a quarter of 6 frames that passes is a hard candidate, otherwise the half is a gradual
    candidate. If both halves have less than 0.3 of the whole difference, there is no lasting change (a flash at the end
    frames, or noise). Anything else is a gradual candidate of the full length.

    Args:
        first: Number of the segment's first frame.
        whole: Difference between frames 0 and 20 of the segment.
        halves: Differences between frames 0 and 10, and 10 and 20.
        quarters: For each half, the differences over its first and last 5 frames.

    Returns:
        The candidate, or None if there is no lasting change.
    """
    if max(halves) < _STILL * whole:
        return None
    side = _larger(halves, whole, *_FIRST)
    if side is None:
        return Candidate("gradual", first, first + 20)
    start = first + 10 * side
    quarter = _larger(quarters[side], halves[side], *_SECOND)
    if quarter is None:
        return Candidate("gradual", start, start + 10)
    return Candidate("hard", start + 5 * quarter, start + 5 * quarter + 5)


def reduced_columns(histograms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project frames onto the leading singular vectors: the columns of S_k V_k^T, normalized to length 1.

    Args:
        histograms: [T, B], one histogram per frame.

    Returns:
        [T, K] with K = min(8, T, B).
    """
    # The Gram matrix [T, T] has the same right singular vectors as the tall matrix [B, T] and is much smaller.
    values, vectors = np.linalg.eigh(histograms @ histograms.T)
    rank = min(_RANK, *histograms.shape)
    scales = np.sqrt(np.maximum(values[::-1][:rank], 0.0))
    columns: NDArray[np.float64] = vectors[:, ::-1][:, :rank] * scales
    columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-12)
    return columns


def cosines_to(columns: NDArray[np.float64], frame: int) -> NDArray[np.float64]:
    """Return the cosine similarities [T], in [-1, 1], of all frames to ``frame``."""
    cosines: NDArray[np.float64] = np.clip(columns @ columns[frame], -1.0, 1.0)
    return cosines


def find_cut(columns: NDArray[np.float64]) -> tuple[int, float] | None:
    """Find the hard cut among a candidate's frames, at the smallest cosine between neighbors.

    Returns:
        Position of the new shot's first frame, and 1 - cosine there; None if the first and last frames are similar
        (cosine above 0.95).
    """
    if float(columns[0] @ columns[-1]) > _SAME:
        return None
    neighbors = np.sum(columns[:-1] * columns[1:], axis=1)
    lowest = int(np.argmin(neighbors))
    return lowest + 1, float(np.clip(1.0 - neighbors[lowest], 0.0, 1.0))


def find_transition(columns: NDArray[np.float64]) -> float | None:
    """Return the confidence that a gradual transition spans these frames, by the inverted triangle test.

    During a transition, frame t moves away from the first frame f and toward the last frame l, so that
    |cos(f, t) - cos(t, l)| falls linearly from its maximum to 0 halfway through and then rises again. The curve,
    divided by its maximum, is compared with that triangle.

    Returns:
        1 - mean distance from the triangle, in [0.75, 1]; None if the ends are similar (cosine above 0.95), the lowest
        point is not in the middle half, or the distance is above 0.25.
    """
    if len(columns) < 3 or float(columns[0] @ columns[-1]) > _SAME:
        return None
    curve = np.abs(cosines_to(columns, 0) - cosines_to(columns, len(columns) - 1))
    curve /= curve.max()
    axis = np.linspace(0.0, 1.0, len(curve))
    lowest = float(axis[int(np.argmin(curve))])
    distance = float(np.mean(np.abs(curve - np.abs(1.0 - 2.0 * axis))))
    if not _CENTER[0] <= lowest <= _CENTER[1] or distance > _TRIANGLE:
        return None
    return 1.0 - distance


def _larger(pair: tuple[float, float], whole: float, ratio: float, share: float) -> int | None:
    """Return the half (0 or 1) above ``ratio`` times the other's difference and ``share`` of the whole, or None."""
    for side in (0, 1):
        if pair[side] > ratio * pair[1 - side] and pair[side] > share * whole:
            return side
    return None
