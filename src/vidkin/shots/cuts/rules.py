"""From proposals to cuts: two scores decide, and contradictions are resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.errors import InvalidArgumentError
from vidkin.shots.contract import DetectedCut
from vidkin.shots.cuts.gradual_numbers import GRADUAL_NUMBERS
from vidkin.shots.cuts.hard_numbers import HARD_NUMBERS
from vidkin.shots.cuts.proposals import Proposal
from vidkin.shots.cuts.scoring import ProposalScore
from vidkin.shots.cuts.stretches import LEAST_PICTURE

__all__ = ["CutRules", "decide"]

# No second hard cut within this many frames of a more certain one.
_NEIGHBORS = 1
# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a certain
# cut counts by itself.
_BLURRED = 8
_SURE = 0.9
# A plain cut: logarithm of the ratio between its change and the changes within the shots; share of blocks that stay;
# distance of the vectors.
_STILL, _NOTHING_STAYS, _ANOTHER = 3.5, 0.1, 0.1
# It also changes more than anything shortly before and after, because repeated frames change just as much again.
_ONCE = 0.1
# A jump within a scene that stays: logarithms of the ratios between its change and those of surrounding frames, and of
# any frames shortly before and after; change of brightness. The parts that change moved before or move after, or are
# large.
_JUMPS, _ALONE, _AS_BRIGHT, _LIKELY = 0.9, 0.3, 0.1, 0.6
_MOVED, _MUCH_STAYS = 0.05, 0.8
# A graphic: how well the changed part fills a rectangle in which nothing moves, while the rest stays.
_RECTANGLE, _FULL_RECTANGLE, _IDLE, _REST_STAYS = 0.35, 0.5, 0.1, 0.7
# A wipe, unless it is very unlikely: the shots differ, and frames in between are divided between them and progress
# from one to the other.
_POSSIBLE_WIPE, _SHOTS_DIFFER, _DIVIDED, _GOES_OVER = 0.3, 0.6, 0.35, 0.25
# A cut at most this many frames from the ends of a transition does not replace it.
_EDGE = 2
_PICTURE = GRADUAL_NUMBERS.index("picture")


@dataclass(frozen=True, slots=True)
class CutRules:
    """Scores and thresholds for the decisions, fitted on composed films.

    Attributes:
        hard: Score of `HARD_NUMBERS`.
        gradual: Score of `GRADUAL_NUMBERS`.
        hard_threshold: Least probability of a hard cut.
        gradual_threshold: Least probability of a gradual transition.
    """

    hard: ProposalScore
    gradual: ProposalScore
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
    """Decide which proposals are cuts; return them in order of frames.

    Args:
        hard: Proposals of hard cuts.
        gradual: Proposals of gradual transitions.
        rules: Scores and thresholds.
    """
    # Frames above the threshold without a more certain one beside them.
    probabilities = {proposal.first: _judge_hard(proposal, rules) for proposal in hard}
    peaks: dict[int, float] = {}
    for candidate in sorted(probabilities, key=lambda candidate: -probabilities[candidate]):
        near = any(abs(candidate - other) <= _NEIGHBORS for other in peaks)
        if probabilities[candidate] >= rules.hard_threshold and not near:
            peaks[candidate] = probabilities[candidate]
    kept = dict(peaks)
    cuts: dict[int, DetectedCut] = {}
    for proposal in gradual:
        first, last = proposal.first, proposal.last
        probability = _judge_gradual(proposal, rules)
        picture = float(np.exp(proposal.numbers[_PICTURE])) - 1
        # Without a picture on either side or in between, a change of brightness is not a transition.
        if probability < rules.gradual_threshold or last < 1 or picture < LEAST_PICTURE:
            continue
        touching = [frame for frame in peaks if first - 1 <= frame <= last + 1]
        if touching and last - first <= _BLURRED:
            continue
        for frame in touching:
            if peaks[frame] < _SURE:
                kept.pop(frame, None)
        # A certain cut at the start or end of a transition is kept beside it; one farther inside replaces it.
        if not any(frame in kept for frame in touching if first + _EDGE < frame < last + 1 - _EDGE):
            middle = max(1, (first + last + 1) // 2)
            cuts[middle] = DetectedCut(middle, proposal.kind, probability, first, last)
    for frame, probability in kept.items():
        cuts[frame] = DetectedCut(frame, "hard", probability)
    return tuple(cuts[frame] for frame in sorted(cuts))


def _judge_hard(proposal: Proposal, rules: CutRules) -> float:
    """The probability of a hard cut: the score's probability, except in clear cases."""
    probability = rules.hard.probability(proposal.numbers)
    numbers = dict(zip(HARD_NUMBERS, proposal.numbers, strict=True))
    changes, rectangle = 1 - numbers["stays"], numbers["rectangle"]
    if 0 < changes < 1 - _REST_STAYS and numbers["alive"] < _IDLE and rectangle > _FULL_RECTANGLE:
        return min(probability, rules.hard_threshold / 2)
    # Both shots are nearly still and have nothing in common.
    if (
        numbers["steady"] >= _STILL
        and numbers["stays"] <= _NOTHING_STAYS
        and numbers["distance"] >= np.log(_ANOTHER)
        and numbers["again"] > _ONCE
    ):
        return max(probability, _SURE)
    # The room, the camera and most of the people are the same a moment later.
    if (
        numbers["contrast"] >= _JUMPS
        and numbers["again"] >= _ALONE
        and numbers["brightness"] < _AS_BRIGHT
        and rectangle < _RECTANGLE
        and (numbers["alive"] > _MOVED or numbers["stays"] < _MUCH_STAYS)
    ):
        return max(probability, _LIKELY)
    return probability


def _judge_gradual(proposal: Proposal, rules: CutRules) -> float:
    """The probability of a transition: the score's probability, except for wipes that show one shot beside the
    other."""
    probability = rules.gradual.probability(proposal.numbers)
    numbers = dict(zip(GRADUAL_NUMBERS, proposal.numbers, strict=True))
    if (
        proposal.kind == "wipe"
        and probability >= _POSSIBLE_WIPE
        and numbers["differ"] >= _SHOTS_DIFFER
        and numbers["divided"] >= _DIVIDED
        and numbers["swept"] >= _GOES_OVER
    ):
        return max(probability, _SURE)
    return probability
