"""From probabilities a frame to cuts: peaks become hard cuts, stretches become gradual transitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.band.network import TransitionThresholds
from vidkin.shots.contract import DetectedCut

__all__ = ["cuts_of_probabilities"]

# No second hard cut within so many frames of a stronger one.
_NEIGHBOURS = 2
# Shorter stretches are noise, or the unsure edge of a hard cut.
_SHORTEST = 3
# Gaps of up to so many frames do not divide a transition.
_GAP = 2
# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a sure
# cut stands by itself.
_BLURRED = 8
_SURE = 0.8

Probabilities = NDArray[np.float32]


def cuts_of_probabilities(
    probabilities: Probabilities, thresholds: TransitionThresholds
) -> tuple[DetectedCut, ...]:
    """Cuts in the order of frames.

    Args:
        probabilities: [T, 2] of a hard cut at the frame, and of the frame being inside a gradual transition.
        thresholds: From which on they count.

    Returns:
        Of hard cuts the confidence is their probability, of gradual transitions the mean over their frames; the frame
        of a gradual transition is the middle one. A video neither starts with a cut nor counts a transition that
        leaves it no first frame.
    """
    hard, gradual = probabilities[:, 0], probabilities[:, 1]
    peaks = _peaks(hard, thresholds.hard)
    stretches = _stretches(gradual > thresholds.gradual)
    kept = set(peaks)
    found: list[DetectedCut] = []
    for first, last in stretches:
        inside = [peak for peak in peaks if first - 1 <= peak <= last + 1]
        if inside and last - first <= _BLURRED:
            continue
        kept -= {peak for peak in inside if hard[peak] < _SURE}
        if kept.isdisjoint(inside) and last >= 1:
            found.append(
                DetectedCut(
                    max(1, (first + last + 1) // 2),
                    "gradual",
                    float(gradual[first : last + 1].mean()),
                    start_frame=first,
                    end_frame=last,
                )
            )
    found += [DetectedCut(peak, "hard", float(hard[peak])) for peak in kept]
    return tuple(sorted(found, key=lambda cut: cut.frame))


def _peaks(values: Probabilities, threshold: float) -> list[int]:
    """Frames from 1 on that are above the threshold and the largest, or first of equals, of their neighbourhood."""
    found: list[int] = []
    for frame in (np.flatnonzero(values[1:] > threshold) + 1).tolist():
        first = max(0, frame - _NEIGHBOURS)
        around = values[first : frame + _NEIGHBOURS + 1]
        if values[frame] >= around.max() and not (found and frame - found[-1] <= _NEIGHBOURS):
            found.append(frame)
    return found


def _stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last frames of stretches that are long enough, over small gaps."""
    frames = np.flatnonzero(inside)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > _GAP + 1)
    firsts = frames[np.concatenate([[0], breaks + 1])]
    lasts = frames[np.concatenate([breaks, [len(frames) - 1]])]
    return [
        (int(first), int(last))
        for first, last in zip(firsts, lasts, strict=True)
        if last - first + 1 >= _SHORTEST
    ]
