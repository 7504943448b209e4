"""Measurements of a stretch that can be a gradual transition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.contract import Transition
from vidkin.shots.cut_numbers import logit
from vidkin.shots.frame_vectors import FrameVectors
from vidkin.shots.motion import BEYOND, measure_motion
from vidkin.shots.regions import (
    PictureBlocks,
    changed_blocks,
    compare_regions,
)

GRADUAL_NUMBERS = (
    "ends", "before", "after", "network", "peak", "length", "picture", "dark", "middle", "excess", "hold",
    "dissolve", "wipe", "hard", "steps", "stays", "stayed", "filled", "ramp", "differ", "divided", "swept",
    "appears", "least", "shifts", "appeared", "shifted",
)  # fmt: skip

"""Names of the numbers of `measure_transition`."""

# Frames beyond a stretch over which the shots are followed.
_FOLLOWED = 6

# Places in the stretch whose vectors are compared: quarters of the way.
_MARKS = 5


def frames_of_transition(first: int, last: int) -> tuple[int, ...]:
    """The frames whose vectors `measure_transition` compares."""
    one, *_, other = marks = _marks(first, last)
    return (*marks, one - _FOLLOWED, other + _FOLLOWED, (first + last) // 2)


def _marks(first: int, last: int) -> list[int]:
    inside = (first + round((last - first) * part / (_MARKS - 1)) for part in range(_MARKS))
    return [first - BEYOND, *inside, last + BEYOND]


def measure_transition(
    first: int,
    last: int,
    vectors: FrameVectors,
    answers: NDArray[np.float32],
    seen: NDArray[np.float32],
    *,
    follow: bool = False,
) -> tuple[float, ...]:
    """Measure `GRADUAL_NUMBERS` of a transition.

    Args:
        first, last: First and last frame of the transition.
        vectors: Vectors of the film's last frames.
        answers: [T, 5] answers of the network for all frames so far.
        seen: [T, 2] change of structure, and contrast, of all frames so far.
        follow: Whether what moves is followed (`measure_motion`), which tells both from a camera; otherwise the last
            five numbers are 0.
    """
    one, *_, other = marks = _marks(first, last)
    middle = (first + last) // 2
    vectors.encode(frames_of_transition(first, last))
    ends = vectors.distance(one, other)
    before, after = vectors.distance(one - _FOLLOWED, one), vectors.distance(other, other + _FOLLOWED)
    to_middle = min(vectors.distance(one, middle), vectors.distance(middle, other))
    # A transition progresses from place to place, away from one shot and toward the other.
    steps = [vectors.distance(*pair) for pair in itertools.pairwise(marks)]
    way = [vectors.distance(one, mark) - vectors.distance(mark, other) for mark in marks[1:-1]]
    own = answers[first : last + 1]
    inside, around = seen[first : last + 1], seen[max(0, first - 3) : last + 4, 1] * 128
    stays, filled = compare_regions(vectors.blocks(one), vectors.blocks(other))
    stayed = min(
        compare_regions(vectors.blocks(start), vectors.blocks(start + _FOLLOWED))[0]
        for start in (one - _FOLLOWED, other)
    )
    kinds = own[:, 2:].mean(0)
    wiped = measure_wipe([vectors.blocks(mark) for mark in marks])
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
        *(measure_motion(vectors, first, last) if follow else (0.0,) * 5),
    )
    return tuple(float(number) for number in numbers)


def measure_wipe(frames: Sequence[PictureBlocks]) -> tuple[float, float, float]:
    """How far frames within a transition are divided into blocks of either shot, as in a wipe; values in 0..1.

    Args:
        frames: The shot before, the transition's first frame, frames within it, its last frame, and the shot after.

    Returns:
        The share of blocks that differ between the shots; the share of these that match exactly one of the shots in
        frames within the transition; and how many more match the shot after in its last frame than in its first.
    """
    before, after = frames[0], frames[-1]
    differ = changed_blocks(before, after)
    if not differ.any():
        return 0.0, 0.0, 0.0
    old, new = (np.array([~changed_blocks(shot, frame)[differ] for frame in frames[2:-2]]) for shot in (before, after))
    over = (new & ~old).mean(1)
    return float(differ.mean()), float((new ^ old).mean()), float(max(0.0, over[-1] - over[0]))


# Seconds that a dissolve takes at most: what changes for longer is a camera that moves. From so many seconds on, what
# is found again nearly whole, where little stays and the camera moves before or after, is one as well.
_LONGEST_DISSOLVE, _NOT_SHORT = 4.6, 0.8

_HARDLY_APPEARS, _HARDLY_STAYED, _MOVES_BESIDE = 0.055, 0.35, 0.015


def can_be_a_transition(kind: Transition, numbers: Sequence[float], seconds: float) -> bool:
    """Whether a proposal of a gradual transition is more than what a moving camera shows.

    Args:
        kind: Its kind.
        numbers: Its `GRADUAL_NUMBERS`.
        seconds: How long it takes.
    """
    if kind == "fade":
        return True
    appears, stayed, shifted = (numbers[GRADUAL_NUMBERS.index(name)] for name in ("appears", "stayed", "shifted"))
    is_camera = appears < _HARDLY_APPEARS and stayed < _HARDLY_STAYED and shifted > _MOVES_BESIDE
    return not (is_camera and seconds > _NOT_SHORT) and not (kind == "dissolve" and seconds > _LONGEST_DISSOLVE)
