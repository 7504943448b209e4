"""Stretches classified by the network as transitions, divided where one ends and the next begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.band.rules import find_stretches

__all__ = ["LEAST_PICTURE", "propose_stretches"]

LEAST_PICTURE = 3.0
"""Least contrast of luma (deviation, of 255) of a frame that shows a picture rather than a plain background."""

# Least answer of the network for a frame that can lie in a transition, and for one that certainly does.
_POSSIBLE, _SURE = 0.25, 0.9
_SHORTEST = 3
# Contrast of a plain background. A background longer than this many frames separates a fade-out from a fade-in; its
# first and last frames belong to them.
_GROUND, _ONE_FADE = 1.0, 10


def propose_stretches(answers: NDArray[np.float32], contrasts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """First and last frames of stretches that can be transitions.

    Args:
        answers: [T] probability that each frame lies in a transition.
        contrasts: [T] deviation of luma, of 255.
    """
    parts = []
    for first, last in find_stretches(answers > _POSSIBLE):
        for start, end in _divide_at_dips(first, last, answers):
            parts += _divide_at_ground(start, end, contrasts)
    return parts


def _divide_at_dips(first: int, last: int, answers: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Small gaps divide a stretch only if both sides are certainly separate transitions."""
    low = np.flatnonzero(answers[first : last + 1] <= _POSSIBLE) + first
    for frame in low.tolist():
        before = find_stretches(answers[first:frame] > _POSSIBLE)
        after = find_stretches(answers[frame + 1 : last + 1] > _POSSIBLE)
        if not before or not after:
            continue
        end, start = first + before[-1][1], frame + 1 + after[0][0]
        if answers[first : end + 1].max() >= _SURE and answers[start : last + 1].max() >= _SURE:
            return [(first, end), *_divide_at_dips(start, last, answers)]
    return [(first, last)]


def _divide_at_ground(first: int, last: int, contrasts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """A plain background shown for long between pictures lies between two fades."""
    ground = np.flatnonzero(contrasts[first : last + 1] < _GROUND) + first
    runs = np.split(ground, np.flatnonzero(np.diff(ground) > 1) + 1)
    for run in runs:
        if len(run) <= _ONE_FADE:
            continue
        start, end = int(run[0]), int(run[-1])
        shown = (contrasts[max(0, first - 3) : start + 1], contrasts[end : last + 4])
        if (
            start - first + 1 >= _SHORTEST <= last - end + 1
            and min(part.max() for part in shown) >= LEAST_PICTURE
        ):
            return [(first, start), *_divide_at_ground(end, last, contrasts)]
    return [(first, last)]
