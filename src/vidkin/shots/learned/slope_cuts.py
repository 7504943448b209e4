"""The published rule for cuts: only a sudden change in the slope of the curve over full windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vidkin.shots.fitted_rule import FittedRule
from vidkin.shots.learned.hard_cuts import HardCut
from vidkin.shots.learned.shot_windows import ShotWindows

__all__ = ["SLOPE_NUMBERS", "find_slope_cuts", "slope_examples"]

SLOPE_NUMBERS = ("jump",)
"""Numbers used by the rule, see `ShotWindows.slopes`."""


def find_slope_cuts(windows: ShotWindows, rule: FittedRule) -> list[HardCut]:
    """Find hard cuts by the published rule.

    The slope of the curve c(n) = ||f_1 - f_n|| changes suddenly at n = N_o: the cut lies between the last two frames
    of window N_o, and the next curve begins with the frame after it. Cuts closer than a window are missed, as the
    first window of a shot must be full. The paper does not define *suddenly*; here it is a fitted threshold on the
    number ``jump``.

    Source: Radial loss for learning fine-grained video similarity metric, section Testing.
    """
    cuts: list[HardCut] = []
    start = 0
    while True:
        for frame, numbers in windows.slopes(start):
            if rule.probability(numbers) >= rule.threshold:
                cuts.append(HardCut(frame, rule.confidence(numbers)))
                start = frame
                break
        else:
            return cuts


def slope_examples(
    windows: ShotWindows, shots: Sequence[tuple[int, int]]
) -> tuple[list[Mapping[str, float]], list[bool], int]:
    """Numbers of windows with labels to fit the rule on, and how many hard cuts no full window reaches.

    Each shot [start, end) is followed from its own true start to the first frame of the next one.
    """
    examples: list[Mapping[str, float]] = []
    labels: list[bool] = []
    missed = 0
    for number, (start, end) in enumerate(shots):
        hard = number + 1 < len(shots) and shots[number + 1][0] == end
        reached = False
        for frame, numbers in windows.slopes(start):
            if frame > end or (frame == end and not hard):
                break
            examples.append(numbers)
            labels.append(frame == end)
            reached |= frame == end
        missed += hard and not reached
    return examples, labels, missed
