"""Measurements of a stretch that can be a transition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.cuts.frame_vectors import FrameVectors
from vidkin.shots.cuts.hard_numbers import logit
from vidkin.shots.cuts.regions import changed_blocks, compare_regions

__all__ = ["GRADUAL_NUMBERS", "measure_transition", "measure_wipe"]

GRADUAL_NUMBERS = (
    "ends",
    "before",
    "after",
    "network",
    "peak",
    "length",
    "picture",
    "dark",
    "middle",
    "excess",
    "hold",
    "dissolve",
    "wipe",
    "hard",
    "steps",
    "stays",
    "stayed",
    "filled",
    "ramp",
    "differ",
    "divided",
    "swept",
)
"""Names of the numbers of `measure_transition`."""

# Frames beyond a stretch at which the shots are examined, and how far the shots themselves are followed.
_BEYOND, _FOLLOWED = 2, 6
# Places in the stretch whose vectors are compared: quarters of the way.
_MARKS = 5


def measure_transition(
    first: int,
    last: int,
    vectors: FrameVectors,
    answers: NDArray[np.float32],
    seen: NDArray[np.float32],
) -> tuple[float, ...]:
    """Measure `GRADUAL_NUMBERS` of a transition.

    Args:
        first, last: First and last frame of the transition.
        vectors: Vectors of the film's last frames.
        answers: [T, 5] answers of the network for all frames so far.
        seen: [T, 2] change of structure, and contrast, of all frames so far.
    """
    one, other, middle = first - _BEYOND, last + _BEYOND, (first + last) // 2
    marks = [one, *(first + round((last - first) * part / (_MARKS - 1)) for part in range(_MARKS)), other]
    vectors.encode((*marks, one - _FOLLOWED, other + _FOLLOWED, middle))
    ends = vectors.distance(one, other)
    before, after = vectors.distance(one - _FOLLOWED, one), vectors.distance(other, other + _FOLLOWED)
    to_middle = min(vectors.distance(one, middle), vectors.distance(middle, other))
    # A transition progresses from place to place, away from one shot and toward the other.
    steps = [vectors.distance(*pair) for pair in itertools.pairwise(marks)]
    way = [vectors.distance(one, mark) - vectors.distance(mark, other) for mark in marks[1:-1]]
    own = answers[first : last + 1]
    inside, around = seen[first : last + 1], seen[max(0, first - 3) : last + 4, 1] * 128
    stays, filled = compare_regions(vectors.luma(one), vectors.luma(other))
    stayed = min(
        compare_regions(vectors.luma(start), vectors.luma(start + _FOLLOWED))[0]
        for start in (one - _FOLLOWED, other)
    )
    kinds = own[:, 2:].mean(0)
    wiped = measure_wipe([vectors.luma(mark) for mark in marks])
    numbers = (
        np.log(ends + 1e-3),
        np.log(before + 1e-3),
        np.log(after + 1e-3),
        logit(own[:, 1].mean()),
        logit(own[:, 1].max()),
        np.log(last - first + 1),
        np.log(around.max() + 1.0),
        np.log(inside[:, 1].min() * 128 + 1.0),
        np.log(to_middle + 1e-3),
        np.log((ends + 1e-3) / (before + after + 1e-2)),
        inside[:, 0].max(),
        kinds[0],
        kinds[2],
        logit(own[:, 0].max()),
        max(steps) / (sum(steps) + 1e-2),
        stays,
        stayed,
        filled,
        (way[-1] - way[0]) / (_MARKS - 1),
        *wiped,
    )
    return tuple(float(number) for number in numbers)


def measure_wipe(frames: Sequence[NDArray[np.uint8]]) -> tuple[float, float, float]:
    """How far frames within a transition are divided into blocks of either shot, as in a wipe; values in 0..1.

    Args:
        frames: Luma [128, 128] of the shot before, of the transition's first frame, of frames within it, of its last
            frame, and of the shot after.

    Returns:
        The share of blocks that differ between the shots; the share of these that match exactly one of the shots in
        frames within the transition; and how many more match the shot after in its last frame than in its first.
    """
    before, after = frames[0], frames[-1]
    differ = changed_blocks(before, after)
    if not differ.any():
        return 0.0, 0.0, 0.0
    old, new = (
        np.array([~changed_blocks(shot, frame)[differ] for frame in frames[2:-2]]) for shot in (before, after)
    )
    over = (new & ~old).mean(1)
    return float(differ.mean()), float((new ^ old).mean()), float(max(0.0, over[-1] - over[0]))
