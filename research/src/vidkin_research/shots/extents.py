"""Measure how well detected transitions agree with labels in extent and kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vidkin.metric.measures import DetectionScores
from vidkin.shots import Cut, DetectedCut, Transition
from vidkin.shots.contract import SUDDEN

__all__ = ["MISSED", "LabeledTransition", "TransitionScores", "extent_overlap", "score_transitions"]

MISSED = "missed"
"""Key in `TransitionScores.confusion` for a labeled transition that was not found."""


@dataclass(frozen=True, slots=True)
class LabeledTransition:
    """A labeled transition.

    Attributes:
        kind: Kind of the transition.
        start, end: First and last frame of the transition; for a cut, both are the first frame of the new shot.
    """

    kind: Transition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TransitionScores:
    """Scores of transitions; adding them pools the scores of several videos.

    Attributes:
        found: Counts of correct detections, false detections and missed labels, regardless of kind.
        overlaps: Intersection over union of each label with the matching detection; 0 if the label was missed.
        kinds: The same counts by kind, where only detections of the same kind match. The label ``gradual`` leaves the
            kind open, so any gradual kind is correct.
        confusion: Number of labels by (labeled kind, detected kind or `MISSED`).
    """

    found: DetectionScores = DetectionScores(0, 0, 0)  # noqa: RUF009 - frozen
    overlaps: tuple[float, ...] = ()
    kinds: Mapping[str, DetectionScores] = field(default_factory=dict)
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: TransitionScores) -> TransitionScores:
        nothing = DetectionScores(0, 0, 0)
        names = dict.fromkeys([*self.kinds, *other.kinds])
        return TransitionScores(
            self.found + other.found,
            self.overlaps + other.overlaps,
            {name: self.kinds.get(name, nothing) + other.kinds.get(name, nothing) for name in names},
            dict(Counter(self.confusion) + Counter(other.confusion)),
        )

    @property
    def extent(self) -> float:
        """Mean intersection over union over all labels, in [0, 1]; nan without labels."""
        return sum(self.overlaps) / len(self.overlaps) if self.overlaps else float("nan")

    @property
    def kinds_right(self) -> float:
        """Fraction of the detected labels with the correct kind; nan if none was detected."""
        found = sum(count for (_, kind), count in self.confusion.items() if kind != MISSED)
        right = sum(count for (true, kind), count in self.confusion.items() if kind == true)
        return right / found if found else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON values."""
        return {
            "f1": self.found.f1,
            "right, false, missed": [
                self.found.true_positives,
                self.found.false_positives,
                self.found.false_negatives,
            ],
            "extent": self.extent,
            "kinds_right": self.kinds_right,
            "kinds": {name: scores.f1 for name, scores in self.kinds.items()},
            "confusion": {f"{true} as {found}": count for (true, found), count in sorted(self.confusion.items())},
        }


def extent_overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Intersection over union of two transitions, each given by its first and last frame.

    A transition lasts from the last frame of the previous shot to the first frame of the next one: (start - 1,
    end + 1), or (f - 1, f) for a cut at frame f. The result is in [0, 1].
    """
    (first, last), (start, end) = ((a - 1, b + 1 if b > a else b) for a, b in (one, other))
    union = max(last, end) - min(first, start)
    return max(0.0, min(last, end) - max(first, start)) / union


def score_transitions(
    videos: Iterable[tuple[Sequence[Cut | DetectedCut], Sequence[LabeledTransition]]], *, tolerance: int = 2
) -> TransitionScores:
    """Score the transitions detected in several videos.

    A detection and a label can match if their frames overlap or are at most ``tolerance`` frames apart. Matching is one
    to one, by largest overlap, then by distance.

    Args:
        videos: Detected cuts and labels of each video.
        tolerance: Maximum distance of a match in frames.
    """
    total = TransitionScores()
    for cuts, labels in videos:
        total += _score_one(list(cuts), list(labels), tolerance)
    return total


def _score_one(cuts: list[Cut | DetectedCut], labels: list[LabeledTransition], tolerance: int) -> TransitionScores:
    spans = [_frames(cut) for cut in cuts]
    pairs = []
    for row, label in enumerate(labels):
        for number, span in enumerate(spans):
            apart = max(span[0] - label.end, label.start - span[1], 0)
            if apart <= tolerance:
                overlap = extent_overlap(span, (label.start, label.end))
                pairs.append((-overlap, apart, row, number))
    matched: dict[int, tuple[int, float]] = {}
    used: set[int] = set()
    for negative, _, row, number in sorted(pairs):
        if row not in matched and number not in used:
            matched[row] = number, -negative
            used.add(number)
    found = DetectionScores(len(matched), len(cuts) - len(matched), len(labels) - len(matched))
    reported: list[str] = [cut.kind for cut in cuts]
    for row, (number, _) in matched.items():
        if labels[row].kind == "gradual" and reported[number] not in SUDDEN:
            reported[number] = "gradual"
    confusion: Counter[tuple[str, str]] = Counter(
        (label.kind, reported[matched[row][0]] if row in matched else MISSED) for row, label in enumerate(labels)
    )
    kinds = {}
    for kind in dict.fromkeys([*(label.kind for label in labels), *reported]):
        right = confusion[kind, kind]
        known = sum(label.kind == kind for label in labels)
        kinds[kind] = DetectionScores(right, reported.count(kind) - right, known - right)
    overlaps = tuple(matched[row][1] if row in matched else 0.0 for row in range(len(labels)))
    return TransitionScores(found, overlaps, kinds, dict(confusion))


def _frames(cut: Cut | DetectedCut) -> tuple[int, int]:
    first = cut.frame if cut.start_frame is None else cut.start_frame
    last = cut.frame if cut.end_frame is None else cut.end_frame
    return first, last
