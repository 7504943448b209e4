"""From proposals to cuts: two weighted sums decide, and what contradicts each other is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.errors import InvalidArgumentError
from vidkin.shots.contract import DetectedCut
from vidkin.shots.cuts.proposals import GRADUAL_NUMBERS, HARD_NUMBERS, Proposal

__all__ = ["CutRules", "WeightedSum", "decide"]

# No second hard cut within so many frames of a surer one.
_NEIGHBORS = 1
# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a sure
# cut stands by itself.
_BLURRED = 8
_SURE = 0.9
# Without a picture on either side, and none between, a change of brightness is no transition between shots.
_LEAST_PICTURE = 3.0
_PICTURE = GRADUAL_NUMBERS.index("picture")


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Probability from numbers: the logistic function of a weighted sum.

    Attributes:
        weights: One for each number.
        bias: Added to the sum.
    """

    weights: tuple[float, ...]
    bias: float

    def probability(self, numbers: Sequence[float]) -> float:
        """In 0..1."""
        total = float(np.dot(self.weights, numbers)) + self.bias
        return float(1 / (1 + np.exp(-np.clip(total, -50, 50))))


@dataclass(frozen=True, slots=True)
class CutRules:
    """What decides, fitted on composed films.

    Attributes:
        hard: Of `HARD_NUMBERS`.
        gradual: Of `GRADUAL_NUMBERS`.
        hard_threshold: Probability from which on a hard cut counts.
        gradual_threshold: Probability from which on a gradual transition counts.
    """

    hard: WeightedSum
    gradual: WeightedSum
    hard_threshold: float = 0.5
    gradual_threshold: float = 0.5

    def __post_init__(self) -> None:
        for name, rule, numbers in (
            ("hard", self.hard, HARD_NUMBERS),
            ("gradual", self.gradual, GRADUAL_NUMBERS),
        ):
            if len(rule.weights) != len(numbers):
                raise InvalidArgumentError(
                    f"{name} must have {len(numbers)} weights, got {len(rule.weights)}"
                )
        for name in ("hard_threshold", "gradual_threshold"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} must be above 0 and below 1, got {getattr(self, name)}")


def decide(hard: Sequence[Proposal], gradual: Sequence[Proposal], rules: CutRules) -> tuple[DetectedCut, ...]:
    """Cuts in the order of frames.

    Args:
        hard: Proposals of hard cuts.
        gradual: Proposals of gradual transitions.
        rules: What decides.
    """
    # Frames above the threshold that no surer one stands beside.
    probabilities = {proposal.first: rules.hard.probability(proposal.numbers) for proposal in hard}
    peaks: dict[int, float] = {}
    for candidate in sorted(probabilities, key=lambda candidate: -probabilities[candidate]):
        near = any(abs(candidate - other) <= _NEIGHBORS for other in peaks)
        if probabilities[candidate] >= rules.hard_threshold and not near:
            peaks[candidate] = probabilities[candidate]
    kept = dict(peaks)
    cuts: dict[int, DetectedCut] = {}
    for proposal in gradual:
        first, last = proposal.first, proposal.last
        probability = rules.gradual.probability(proposal.numbers)
        picture = float(np.exp(proposal.numbers[_PICTURE])) - 1
        if probability < rules.gradual_threshold or last < 1 or picture < _LEAST_PICTURE:
            continue
        inside = [frame for frame in peaks if first - 1 <= frame <= last + 1]
        if inside and last - first <= _BLURRED:
            continue
        for frame in inside:
            if peaks[frame] < _SURE:
                kept.pop(frame, None)
        if not any(frame in kept for frame in inside):
            middle = max(1, (first + last + 1) // 2)
            cuts[middle] = DetectedCut(middle, proposal.kind, probability, first, last)
    for frame, probability in kept.items():
        cuts[frame] = DetectedCut(frame, "hard", probability)
    return tuple(cuts[frame] for frame in sorted(cuts))
