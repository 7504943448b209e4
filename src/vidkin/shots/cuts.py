"""The probability that a proposal is correct: a small network on its measurements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from vidkin._base.files import PathLike
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.features.square_encoder import shipped_encoder
from vidkin.media import FramePlanes
from vidkin.shots.band import TransitionReader, open_network, refuse_unreadable
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts
from vidkin.shots.cut_numbers import GRADUAL_NUMBERS, GRID, HARD_NUMBERS, VectorNetwork
from vidkin.shots.cut_proposals import LEAST_PICTURE, Proposal, ProposalMaker

# Standardized numbers are clipped to this.
_FURTHEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalScore:
    """Probability from numbers: the logistic function of a weighted sum of the numbers and a few hidden units.

    Attributes:
        means: Mean of each number.
        deviations: Standard deviation of each number; ``(number - mean) / deviation`` is used, clipped to 4 on either
            side.
        weights: Weight of each standardized number.
        bias: Constant added to the sum.
        units: For each hidden unit, a weight for each standardized number, then its bias; its value is the hyperbolic
            tangent of their sum. Without units the score is a plain weighted sum.
        shares: Weight of each hidden unit.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    units: tuple[tuple[float, ...], ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.weights)
        fits = len(self.means) == len(self.deviations) == count and len(self.shares) == len(self.units)
        if not fits or any(len(unit) != count + 1 for unit in self.units) or min(self.deviations) <= 0:
            raise InvalidArgumentError(
                f"a score of {count} numbers must have as many means and deviations above 0, and {count + 1} weights "
                f"of each hidden unit, got {len(self.means)}, {len(self.deviations)} and "
                f"{sorted({len(unit) for unit in self.units})}"
            )

    def probability(self, numbers: Sequence[float]) -> float:
        """Probability in 0..1."""
        values = (np.asarray(numbers) - self.means) / self.deviations
        values = values.clip(-_FURTHEST, _FURTHEST)
        total = float(np.dot(self.weights, values)) + self.bias
        if self.units:
            hidden = np.array(self.units)
            total += float(np.dot(self.shares, np.tanh(hidden[:, :-1] @ values + hidden[:, -1])))
        return float(1 / (1 + np.exp(-np.clip(total, -50, 50))))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """The score from a parsed JSON table."""
        return cls(
            means=tuple(table["means"]),
            deviations=tuple(table["deviations"]),
            weights=tuple(table["weights"]),
            bias=float(table["bias"]),
            units=tuple(tuple(unit) for unit in table["units"]),
            shares=tuple(table["shares"]),
        )


# From proposals to cuts: two scores decide, and contradictions are resolved.


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
                raise InvalidArgumentError(f"{name} must have {len(numbers)} weights, got {len(rule.weights)}")
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


# The transition network and the decision rules, as one file.


_OUTPUTS = 5


@dataclass(frozen=True, slots=True, eq=False)
class CutModel:
    """The trained parts of the default detector.

    Attributes:
        network: Network with five answers per frame, from the band of the film's self-similarity.
        rules: Rules that decide about proposals, usable only with the frame encoder they were fitted with.
        provenance: Training data and results, as plain values.
    """

    network: TransitionReader
    rules: CutRules
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def notes(self) -> dict[str, Any]:
        """What a file of weights tells beside them, for `vidkin.shots.training.transitions.write_network`."""
        return {"rules": asdict(self.rules), "provenance": dict(self.provenance)}

    @classmethod
    def load(cls, path: PathLike | None = None) -> CutModel:
        """Load a file of weights with the notes of a model; None is the bundled model.

        Raises:
            InvalidArgumentError: The file does not hold such a model.
        """
        file = os.fspath(Path(__file__).with_name("data") / "cuts.safetensors" if path is None else path)
        with refuse_unreadable(f"{file} must be a model of the detector 'cuts'"):
            network, metadata = open_network(file, outputs=_OUTPUTS)
            rules = parse_json(metadata["rules"])
            scores = {name: ProposalScore.from_table(rules[name]) for name in ("hard", "gradual")}
            return cls(network, CutRules(**{**rules, **scores}), parse_json(metadata.get("provenance", "{}")))


# The default detector: distances of frame vectors at changes of the picture, and a network for transitions.


class CutDetector:
    """Finds hard cuts, even within one scene, and dissolves, fades and wipes.

    The band of the film's self-similarity (`vidkin.shots`), read by a small network, shows where a cut or a
    transition can be. Only there do frames go through the frame encoder that search uses as well, and the distances of
    their vectors decide: a hard cut stands out from the changes just before and after it, and the picture stays
    different; a transition leads to another picture. A change of plain color without a picture is not a transition.

    Args:
        encoder: The frame encoder; None is the bundled one. The stored rules fit no other.
        weights: A file of weights with the notes of a `CutModel`; None is the bundled model.
        hard: Least probability of a hard cut, in (0, 1); None uses the value stored with the weights.
        gradual: Least probability of a gradual transition, in (0, 1).

    The curve is the larger of the network's two answers and, where computed, the distance of the vectors. Memory: 12
    MiB, and about 60 bytes per frame. Films need at least two frames to be cut. Shots get no critical score, which
    requires a learned distance.
    """

    grid = GRID

    def __init__(
        self,
        encoder: VectorNetwork | None = None,
        *,
        weights: PathLike | None = None,
        hard: float | None = None,
        gradual: float | None = None,
    ) -> None:
        self.name = "cuts"
        model = _shipped_model() if weights is None else CutModel.load(weights)
        stored = model.rules
        self._rules = replace(
            stored,
            hard_threshold=stored.hard_threshold if hard is None else hard,
            gradual_threshold=stored.gradual_threshold if gradual is None else gradual,
        )
        self._proposals = ProposalMaker(model.network, shipped_encoder() if encoder is None else encoder)
        self._times: list[float] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        self._proposals.push(planes)
        self._times += planes.timestamps.tolist()

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        curve = self._proposals.finish()
        cuts = decide(self._proposals.hard, self._proposals.gradual, self._rules)
        return DetectedCuts(cuts, Curve(np.array(self._times), curve, "change"))


# Shared by all detectors, which never change them.
_shipped_model = cache(CutModel.load)
