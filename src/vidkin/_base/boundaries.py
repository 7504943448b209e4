"""Precision, recall and F1 score of detected shot boundaries (under two matching rules) and of classified clips."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_choice, check_not_negative
from vidkin.errors import InvalidArgumentError

Boundary = float | tuple[float, float]
"""A hard cut as the first frame of the new shot, or a gradual transition as its [first, last] frame."""

BoundaryRule = Literal["nearest", "overlap"]


@check_constructor
@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Numbers of correct, false and missed detections; add the scores of several videos to pool them.

    If there was nothing to detect and nothing was detected, precision, recall and F1 are 1; otherwise a ratio with a
    denominator of 0 is 0.

    Attributes:
        true_positives: Detections that match a label, 0 or more.
        false_positives: Detections that match no label.
        false_negatives: True boundaries or clips that were not detected.
    """

    true_positives: int
    false_positives: int
    false_negatives: int

    def __post_init__(self) -> None:
        if min(self.true_positives, self.false_positives, self.false_negatives) < 0:
            raise InvalidArgumentError(f"counts must be at least 0, got {self}")

    def __add__(self, other: DetectionScores) -> DetectionScores:
        return DetectionScores(
            self.true_positives + other.true_positives,
            self.false_positives + other.false_positives,
            self.false_negatives + other.false_negatives,
        )

    @property
    def precision(self) -> float:
        """Fraction of the detections that are correct."""
        return self._divide(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Fraction of the true boundaries that were detected."""
        return self._divide(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        twice = 2 * self.true_positives
        return self._divide(twice, twice + self.false_positives + self.false_negatives)

    def _divide(self, numerator: int, denominator: int) -> float:
        if denominator:
            return numerator / denominator
        return 1.0 if self == DetectionScores(0, 0, 0) else 0.0


@check_arguments
def boundary_scores(
    predicted: Sequence[Boundary],
    truth: Sequence[Boundary],
    *,
    tolerance: float = 0,
    rule: BoundaryRule = "nearest",
) -> DetectionScores:
    """Match the boundaries detected in one video against its labels.

    A boundary is a number c (hard cut: first frame of the new shot) or a pair (first, last) with the frames of a
    gradual transition. Any time unit works if it is used consistently.

    Args:
        predicted: Detected boundaries, in any order.
        truth: Labeled boundaries, in any order.
        tolerance: Maximum distance in frames between matching boundaries, 0 or more.
        rule: ``"nearest"`` (primary): greedy one-to-one matching, nearest pairs first; gradual transitions in the
            labels are matched before hard cuts. One detection inside such a transition (or within the tolerance)
            counts as correct, further ones as false positives.
            ``"overlap"``: each boundary becomes the interval from the last frame of the previous shot to the
            first frame of the next shot, widened by tolerance/2 - 1/2 on both sides; one pass through both lists in
            order of time matches overlapping intervals (the rule of TransNet V2, with tolerance 2).

    Returns:
        Counts with precision, recall and F1.

    Raises:
        InvalidArgumentError: A transition ends before it starts or the tolerance is negative.
    """
    check_not_negative(tolerance=tolerance)
    check_choice("rule", rule, ("nearest", "overlap"))
    intervals = sorted(_to_interval(boundary) for boundary in predicted)
    true_intervals = sorted(_to_interval(boundary) for boundary in truth)
    if rule == "nearest":
        matched = _match_nearest(intervals, true_intervals, tolerance)
    else:
        ours, theirs = _widen(predicted, tolerance), _widen(truth, tolerance)
        i = j = matched = 0
        while i < len(theirs) and j < len(ours):
            if ours[j][1] < theirs[i][0]:
                j += 1
            elif ours[j][0] > theirs[i][1]:
                i += 1
            else:
                matched, i, j = matched + 1, i + 1, j + 1
    return DetectionScores(matched, len(intervals) - matched, len(true_intervals) - matched)


@check_arguments
def boundaries_of_shots(shots: Sequence[tuple[float, float]]) -> list[Boundary]:
    """Return the boundaries between shots given as (first frame, last frame), both inclusive and in order of time.

    Adjacent shots are separated by a hard cut; frames between two shots form a gradual transition.

    Raises:
        InvalidArgumentError: A shot starts before the previous one ends.
    """
    boundaries: list[Boundary] = []
    for (_, last), (first, _) in pairwise(shots):
        if first <= last:
            raise InvalidArgumentError(
                f"shots must follow each other, got one that starts at frame {first} after one that ends at {last}"
            )
        boundaries.append(first if first == last + 1 else (last + 1, first - 1))
    return boundaries


@check_arguments
def clip_scores(predicted: Sequence[bool], truth: Sequence[bool]) -> DetectionScores:
    """Score yes/no answers per clip, for example "is critical", against labels.

    Raises:
        InvalidArgumentError: The lists differ in length.
    """
    if len(predicted) != len(truth):
        raise InvalidArgumentError(
            f"predicted and truth must have the same length, got {len(predicted)} and {len(truth)} clips"
        )
    pairs = [(bool(called), bool(critical)) for called, critical in zip(predicted, truth, strict=True)]
    return DetectionScores(pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True)))


def _to_interval(boundary: Boundary) -> tuple[float, float]:
    start, end = boundary if isinstance(boundary, tuple) else (boundary, boundary)
    if not start <= end:
        raise InvalidArgumentError(f"a transition must not end before it starts, got ({start}, {end})")
    return start, end


def _match_nearest(
    intervals: list[tuple[float, float]], true_intervals: list[tuple[float, float]], tolerance: float
) -> int:
    longest = max((end - start for start, end in intervals), default=0)
    starts = [start for start, _ in intervals]
    free = [True] * len(intervals)
    matched = 0
    for gradual in (True, False):
        pairs = []
        for number, (start, end) in enumerate(true_intervals):
            if (start < end) != gradual:
                continue
            first = bisect_left(starts, start - tolerance - longest)
            for candidate in range(first, bisect_right(starts, end + tolerance)):
                low, high = intervals[candidate]
                gap = max(0.0, low - end, start - high)
                # If several detections lie inside a transition, prefer the one nearest to its middle.
                middle = abs((low + high) - (start + end))
                if gap <= tolerance:
                    pairs.append((gap, middle, number, candidate))
        open_truths = {pair[2] for pair in pairs}
        for _, _, number, candidate in sorted(pairs):
            if number in open_truths and free[candidate]:
                open_truths.discard(number)
                free[candidate] = False
                matched += 1
    return matched


def _widen(boundaries: Sequence[Boundary], tolerance: float) -> list[tuple[float, float]]:
    """Return (last frame of the previous shot, first frame of the next shot), each moved outward by
    tolerance/2 - 1/2."""
    shift = tolerance / 2 - 0.5
    widened = []
    for boundary in boundaries:
        if isinstance(boundary, tuple):
            start, end = _to_interval(boundary)
            widened.append((start - 1 - shift, end + 1 + shift))
        else:
            widened.append((boundary - 1 - shift, boundary + shift))
    return sorted(widened)
