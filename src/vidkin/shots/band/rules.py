"""From probabilities per frame to cuts: peaks become hard cuts, stretches become gradual transitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.band.network import TransitionThresholds
from vidkin.shots.contract import DetectedCut

__all__ = ["Probabilities", "cuts_from_probabilities", "find_stretches"]

# No second hard cut within this many frames of a stronger one.
_NEIGHBORS = 2
# Shorter stretches are noise, or the uncertain edge of a hard cut.
_MIN_FRAMES = 3
# Gaps of up to this many frames do not divide a transition.
_GAP = 2
# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a certain
# cut counts by itself.
_BLURRED = 8
_SURE = 0.8

Probabilities = NDArray[np.float32]
"""[T, 2], probabilities of a hard cut at the frame, and of the frame being inside a gradual transition."""


def cuts_from_probabilities(
    probabilities: Probabilities, thresholds: TransitionThresholds
) -> tuple[DetectedCut, ...]:
    """Cuts in order of frames.

    Args:
        probabilities: [T, 2] probabilities from a network.
        thresholds: Least probabilities that count.

    Returns:
        The cuts. The confidence of a hard cut is its probability; the confidence of a gradual transition is the mean
        over its frames, and its frame is the middle one. A video does not start with a cut, or with a transition that
        leaves it no first frame.
    """
    hard, gradual = probabilities[:, 0], probabilities[:, 1]
    # Frames from 1 on that are above the threshold and the largest, or first of equals, of their neighborhood.
    peaks: list[int] = []
    for frame in (np.flatnonzero(hard[1:] > thresholds.hard) + 1).tolist():
        start = max(0, frame - _NEIGHBORS)
        around = hard[start : frame + _NEIGHBORS + 1]
        if hard[frame] >= around.max() and not (peaks and frame - peaks[-1] <= _NEIGHBORS):
            peaks.append(frame)
    hard_cuts = set(peaks)
    cuts: list[DetectedCut] = []
    for first, last in find_stretches(gradual > thresholds.gradual):
        inside = [peak for peak in peaks if first - 1 <= peak <= last + 1]
        if inside and last - first <= _BLURRED:
            continue
        hard_cuts -= {peak for peak in inside if hard[peak] < _SURE}
        if hard_cuts.isdisjoint(inside) and last >= 1:
            cuts.append(
                DetectedCut(
                    max(1, (first + last + 1) // 2),
                    "gradual",
                    float(gradual[first : last + 1].mean()),
                    start_frame=first,
                    end_frame=last,
                )
            )
    cuts += [DetectedCut(peak, "hard", float(hard[peak])) for peak in hard_cuts]
    return tuple(sorted(cuts, key=lambda cut: cut.frame))


def find_stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last frames of the stretches that are long enough, across small gaps."""
    frames = np.flatnonzero(inside)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > _GAP + 1)
    firsts = frames[np.concatenate([[0], breaks + 1])]
    lasts = frames[np.concatenate([breaks, [len(frames) - 1]])]
    return [
        (int(first), int(last))
        for first, last in zip(firsts, lasts, strict=True)
        if last - first + 1 >= _MIN_FRAMES
    ]
