"""Hard cuts where the slope of a shot's curve changes suddenly, with a new curve after each cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.shots.fitted_rule import FittedRule
from vidkin.shots.learned.shot_windows import ShotWindows

__all__ = ["CUT_NUMBERS", "HardCut", "cut_examples", "find_cuts"]

CUT_NUMBERS = ("jump", "leap", "step", "novelty", "across")
"""Numbers available to a rule for cuts, see `ShotWindows.numbers`."""

# Frames within which a network responds to the first frame of a new shot.
_ANSWER = 2


@dataclass(frozen=True, slots=True)
class HardCut:
    """A cut between the frames ``frame - 1`` and ``frame``.

    Attributes:
        frame: First frame of the new shot.
        confidence: Confidence from the rule: 1/2 at its threshold, 1 certain.
    """

    frame: int
    confidence: float


def find_cuts(windows: ShotWindows, rule: FittedRule) -> list[HardCut]:
    """Find hard cuts in order by walking through a video: each sudden change of slope is a cut and starts a new curve.

    Where the rule's threshold is exceeded, the cut lies between the last two frames of the window. Networks that
    respond a frame late, or to the first trace of a cut, are corrected by the frames themselves: among the frame
    before, this one and the two after it, the cut is where the features of two neighbors differ most.
    """
    cuts: list[HardCut] = []
    start = 0
    while (cut := _first_cut(windows, rule, start)) is not None:
        cuts.append(cut)
        start = cut.frame
    return cuts


def cut_examples(
    windows: ShotWindows, shots: Sequence[tuple[int, int]], *, keep: int = 1
) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Numbers of frames with labels to fit a rule on: is this the first frame of the next shot?

    Each shot is followed from its own true start, as the walk does after a cut in the right place.

    Args:
        windows: Windows of the video.
        shots: [start, end) frames in order. If a shot ends at the start of the next, there is a hard cut. Frames
            between two shots are a gradual transition: the shot is then followed through it, without a positive. The
            end of the last shot gives no positive.
        keep: Use every ``keep``-th frame without a cut.
    """
    examples: list[Mapping[str, float]] = []
    labels: list[bool] = []
    for number, (start, end) in enumerate(shots):
        following = shots[number + 1][0] if number + 1 < len(shots) else None
        hard = following == end
        stop = end if following is None or hard else following + windows.window
        for frame, numbers in windows.numbers(start):
            if frame > stop or (frame == stop and not hard):
                break
            if frame == end and hard:
                examples.append(numbers)
                labels.append(True)
            elif (frame - start) % keep == 0:
                examples.append(numbers)
                labels.append(False)
    return examples, labels


def _first_cut(windows: ShotWindows, rule: FittedRule, start: int) -> HardCut | None:
    """The first cut after ``start``."""
    passed: list[tuple[int, float]] = []
    for frame, numbers in windows.numbers(start):
        if passed and frame > passed[0][0] + _ANSWER:
            break
        if passed or rule.probability(numbers) >= rule.threshold:
            passed.append((frame, rule.confidence(numbers)))
    if not passed:
        return None
    frames = range(max(start + 1, passed[0][0] - 1), passed[-1][0] + 1)
    change = [windows.change(frame) for frame in frames]
    return HardCut(frames[int(np.argmax(change))], max(confidence for _, confidence in passed))
