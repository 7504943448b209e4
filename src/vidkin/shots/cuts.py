"""The default detector: where a film can be cut, which of these places are cuts, and how sure that is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import shipped_encoder
from vidkin.media import FramePlanes
from vidkin.shots.band import (
    BAND_CONTEXT,
    BAND_LAGS,
    BandFeatures,
    TransitionReader,
    open_network,
    refuse_unreadable,
)
from vidkin.shots.between import GradualReader
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, Transition
from vidkin.shots.cut_numbers import AROUND, HARD_NUMBERS, SIDE, measure_cut, stands_out
from vidkin.shots.fades import LEAST_PICTURE, PLAIN, SHORTEST, propose_stretches, settle_fades
from vidkin.shots.frame_vectors import GRID, BandGrid, FrameVectors, VectorNetwork
from vidkin.shots.gradual_numbers import GRADUAL_NUMBERS, can_be_a_transition, frames_of_transition, measure_transition
from vidkin.shots.thinning import FrameThinner

GRADUAL_TYPES: tuple[Transition, ...] = ("dissolve", "fade", "wipe")

LEAST_DISTANCE = 0.01

"""Least distance of two frames with a cut between them."""

# What is added to the logits of the kinds: soft wipes look a little like dissolves.
_KIND_BIAS = np.array([0.0, 0.0, 2.0])

# Frames that the networks read at a time, beside those before and after that they need; of a block; in memory.
_STEP, _PUSHED, _ROOM = 384, 64, 896

# A stretch of more frames than this is measured before its end is settled, while its first frames are held.
_MOST_UNSETTLED = 213

# Where the inexpensive curve moves: the network's answer for a cut is at least this, or luma without brightness and
# contrast changes by this much and by this many times its surroundings.
_UNLIKELY = 0.02

_MOVES, _TIMES = 0.12, 1.2

# Where the network is this certain and the vectors are this far apart, surrounding frames are not examined.
_CLEAR, _FAR = 0.97, 0.5

# Least answer of the first and last frame of a transition: shots that move look like its first frames.
_PROBABLE: Mapping[Transition, float] = {"dissolve": 0.55, "wipe": 0.5}

# Columns of the band used to measure transitions: change of structure, and contrast.
_SEEN = [0, 4 * len(BAND_LAGS) + 1]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A place where the film can be cut.

    Attributes:
        first: First frame of the new shot, or of the transition.
        last: ``first``, or the last frame of the transition.
        numbers: Measurements, in the order of `HARD_NUMBERS` or `GRADUAL_NUMBERS`.
        kind: ``hard``, ``dissolve``, ``fade`` or ``wipe``.
        kind_confidence: Confidence in [0, 1] that it is of this kind.
    """

    first: int
    last: int
    numbers: tuple[float, ...]
    kind: Transition
    kind_confidence: float = 1.0


class ProposalMaker:
    """Takes the frames of a film and returns proposals for all frames the network has fully seen.

    Args:
        network: Network with five answers per frame from the band: hard, gradual, and the kinds of gradual transitions.
        gradual: Network with the same answers from the band and what lies between frames (`GradualReader`).
        encoder: Encoder of single frames.

    Memory: 896 frames at 24 KiB, and 60 bytes for every frame. The result does not depend on how the frames are
    divided into blocks.
    """

    def __init__(self, network: TransitionReader, gradual: TransitionReader, encoder: VectorNetwork) -> None:
        self.vectors = FrameVectors(encoder, _ROOM)
        self.hard: list[Proposal] = []
        self.gradual: list[Proposal] = []
        self._network = network
        self._grid = BandGrid()
        self._band = BandFeatures(keep_colors=True)
        self._inside = GradualReader(gradual)
        self._rows = np.zeros((0, 0), np.float32)
        self._from = 0  # number of the first row in memory
        self._done = 0
        self._looked = 0  # hard cuts are looked for from here on
        self._open = 0  # gradual transitions are looked for from here on
        self._answers = _GrowingRows()
        self._gradual_answers = _GrowingRows()
        self._seen = _GrowingRows()
        self._distances: dict[int, float] = {}

    def push(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        # Blocks are filled up to fixed numbers of frames, so that the result does not depend on how they arrive.
        while len(planes):
            room = _PUSHED - self.vectors.count % _PUSHED
            part, planes = planes[:room], planes[room:]
            self.vectors.push(part)
            self._band.push(self._grid.thin(part))
            ready = (self.vectors.count - BAND_CONTEXT) // _STEP * _STEP
            if ready > self._done:
                self._take_rows()
                self._advance(ready)

    def finish(self) -> NDArray[np.float64]:
        """The remaining proposals, and the curve [T]: the larger of the network's answers, or the vectors' distance at
        cuts."""
        self._take_rows()
        self._gradual_answers.append(self._inside.finish())
        self._advance(self.vectors.count, last=True)
        if not self.vectors.count:
            return np.zeros(0)
        curve: NDArray[np.float64] = np.maximum(self._answers.rows[:, 0], self._gradual_answers.rows[:, 1]).astype(
            float
        )
        for frame, distance in self._distances.items():
            curve[frame] = max(curve[frame], min(1.0, distance))
        return curve

    @property
    def proposed(self) -> int:
        """Number of frames before which all proposals are known."""
        return min(self._looked, self._open)

    @property
    def contrasts(self) -> NDArray[np.float32]:
        """[T] deviation of luma, of 255, of all frames done."""
        contrasts: NDArray[np.float32] = self._seen.rows[:, 1] * 128 if self._done else np.zeros(0, np.float32)
        return contrasts

    def _take_rows(self) -> None:
        rows = self._band.take()
        self._gradual_answers.append(self._inside.push(rows, self._band.take_colors()))
        self._rows = np.concatenate([self._rows, rows]) if self._rows.size else rows

    def _advance(self, until: int, *, last: bool = False) -> None:
        """Compute answers and proposals for the frames up to ``until``."""
        done, self._done = self._done, until
        if until > done:
            first = max(self._from, done - BAND_CONTEXT)
            piece = self._rows[first - self._from : until + BAND_CONTEXT - self._from]
            answers = self._network.probabilities(piece)[done - first : until - first]
            rows = self._rows[done - self._from : until - self._from]
            self._answers.append(answers)
            self._seen.append(rows[:, _SEEN])
            self._propose_hard(until if last else until - AROUND)
            kept = max(0, until - BAND_CONTEXT - AROUND)
            self._rows, self._from = self._rows[kept - self._from :], kept
        self._propose_gradual(min(until, len(self._gradual_answers.rows)), last=last)

    def _propose_hard(self, until: int) -> None:
        answers = self._answers.rows[:, 0]
        structure = self._rows[:, 0].astype(np.float64)
        frames = np.arange(max(1, self._looked), max(1, until))
        moves = structure[frames - self._from] > _MOVES
        moves[moves] = stands_out(structure, frames[moves] - self._from, _TIMES, 0.01)
        chosen: list[int] = frames[moves | (answers[frames] > _UNLIKELY)].tolist()
        self._looked = until
        vectors = self.vectors
        vectors.encode(frame - side for frame in chosen for side in (0, 1))
        chosen = [frame for frame in chosen if vectors.distance(frame - 1, frame) > LEAST_DISTANCE]
        unclear = {frame for frame in chosen if answers[frame] < _CLEAR or vectors.distance(frame - 1, frame) < _FAR}
        vectors.encode(frame + side for frame in unclear for side in range(-SIDE - 1, SIDE + 1))
        for frame in chosen:
            side = SIDE if frame in unclear else 0
            numbers = measure_cut(frame, vectors, self._rows, self._answers.rows, first_row=self._from, side=side)
            self.hard.append(Proposal(frame, frame, numbers, "hard"))
            self._distances[frame] = vectors.distance(frame - 1, frame)

    def _propose_gradual(self, until: int, *, last: bool) -> None:
        if until <= self._open:
            return
        begin = self._open
        answers = self._gradual_answers.rows
        stretches = propose_stretches(answers[begin:until, 1], self._seen.rows[begin:until, 1] * 128)
        settled = until if last else until - 16
        chosen: list[tuple[int, int]] = []
        for start, stop in stretches:
            first, end = begin + start, begin + stop
            if end >= settled and end - first < _MOST_UNSETTLED:
                settled = min(settled, first)
                break
            chosen.append((first, end))
        # Together, because the encoder takes half as long for a frame among many.
        self.vectors.encode(frame for stretch in chosen for frame in frames_of_transition(*stretch))
        for first, end in chosen:
            kind, sure = _kind_of_stretch(answers[first : end + 1, 2:].mean(0))
            follow = kind != "fade"
            numbers = measure_transition(first, end, self.vectors, answers, self._seen.rows, follow=follow)
            if kind == "dissolve" and (self.contrasts[max(0, first - 1) : end + 2] < PLAIN).any():
                # No dissolve shows a plain background.
                kind, sure = "fade", _SURE
            certain = np.flatnonzero(answers[first : end + 1, 1] > _PROBABLE.get(kind, 0.0))
            if len(certain) >= SHORTEST:
                first, end = first + int(certain[0]), first + int(certain[-1])
            self.gradual.append(Proposal(first, end, numbers, kind, sure))
        self._open = max(self._open, settled)


def _kind_of_stretch(answers: NDArray[np.float32]) -> tuple[Transition, float]:
    """The most likely of `GRADUAL_TYPES`, and its probability, from the mean answers about them."""
    shares = answers.clip(1e-4, 1 - 1e-4)
    logits = np.log(shares / (1 - shares)) + _KIND_BIAS
    chances = np.exp(logits - logits.max())
    kind = int(chances.argmax())
    return GRADUAL_TYPES[kind], float(chances[kind] / chances.sum())


class _GrowingRows:
    """Rows that can be extended without copying all of them each time."""

    def __init__(self) -> None:
        self._held = np.zeros((0, 0), np.float32)
        self._count = 0

    @property
    def rows(self) -> NDArray[np.float32]:
        """All rows added, [T, C]."""
        return self._held[: self._count]

    def append(self, rows: NDArray[np.float32]) -> None:
        """Add rows of the same width."""
        if not len(rows):
            return
        end = self._count + len(rows)
        if end > len(self._held):
            larger = np.empty((max(2 * len(self._held), end), rows.shape[1]), np.float32)
            larger[: self._count] = self.rows if self._count else 0
            self._held = larger
        self._held[self._count : end] = rows
        self._count = end


# Frames on either side of a cut that can have a say in it: a transition beside it, and a second of plain background.
_UNSETTLED = _MOST_UNSETTLED + 75

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
        """Probability in [0, 1] that numbers [N] of a place between two frames are those of a cut."""
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


# No second hard cut within this many frames of a more certain one.
_NEIGHBORS = 1

# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a certain
# cut counts by itself.
_BLURRED, _BLURRED_CERTAIN = 8, 12

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

# A screen or band in the picture may move: then it is a better rectangle, and the rest shows something rather than bars
# beside a narrow picture. Letters have one color, and there is a picture before and after (logarithm of contrast).
_SHARP_RECTANGLE, _HALF_STAYS, _SHOWS = 0.78, 0.5, 0.3
_ONE_COLOR, _BOTH_SHOW = 0.25, 2.5

# A screen in a picture that moves as a whole: blocks that are nowhere near in the other frame fill a rectangle of these
# shares of the picture.
_FILLED_ANEW, _SCREENS = 0.6, (0.1, 0.45)

# What moves fast anyway: other frames nearby change as much, none of them is a cut (logarithm of the odds), the change
# does not stand out from its surroundings, and this share of the picture is found again.
_AS_EVER, _NO_OTHER_CUT, _HARDLY_STANDS_OUT, _ANEW = 0.25, -2.5, 1.2, 0.7

# A frame this much calmer than those around was shown twice; the next one makes up for it.
_FROZEN = -2.0

# Distance of vectors below which a cut lies within one camera set-up, as a logarithm, and how sharp that limit is.
_SAME_SETUP, _SETUP_STEEPNESS = -0.8, 3.0

# Distance of structures from which the frames have nothing in common: that of two frames of noise is 1.4.
_UNRELATED = 1.25

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
        probability = rules.gradual.probability(proposal.numbers)
        picture = float(np.exp(proposal.numbers[_PICTURE])) - 1
        # Without a picture on either side or in between, a change of brightness is not a transition.
        if probability < rules.gradual_threshold or last < 1 or picture < LEAST_PICTURE:
            continue
        touching = [frame for frame in peaks if first - 1 <= frame <= last + 1]
        is_certain = any(peaks[frame] >= _SURE for frame in touching)
        if touching and last - first <= (_BLURRED_CERTAIN if is_certain else _BLURRED):
            continue
        for frame in touching:
            if peaks[frame] < _SURE:
                kept.pop(frame, None)
        # A certain cut at the start or end of a transition is kept beside it; one farther inside replaces it.
        if not any(frame in kept for frame in touching if first + _EDGE < frame < last + 1 - _EDGE):
            middle = max(1, (first + last + 1) // 2)
            cuts[middle] = DetectedCut(middle, proposal.kind, probability, first, last, proposal.kind_confidence)
    measured = {proposal.first: proposal.numbers for proposal in hard}
    for frame, probability in kept.items():
        kind, sure = _kind_of_cut(measured[frame])
        cuts[frame] = DetectedCut(frame, kind, probability, kind_confidence=sure)
    return tuple(cuts[frame] for frame in sorted(cuts))


def _judge_hard(proposal: Proposal, rules: CutRules) -> float:
    """The probability of a hard cut: the score's probability, except in clear cases."""
    probability = rules.hard.probability(proposal.numbers)
    numbers = dict(zip(HARD_NUMBERS, proposal.numbers, strict=True))
    changes, rectangle = 1 - numbers["stays"], numbers["rectangle"]
    is_still_graphic = changes < 1 - _REST_STAYS and numbers["alive"] < _IDLE and rectangle > _FULL_RECTANGLE
    is_screen = changes <= 1 - _HALF_STAYS and rectangle > _SHARP_RECTANGLE and numbers["beside_it"] >= _SHOWS
    are_letters = numbers["letters"] < _ONE_COLOR and numbers["picture"] > _BOTH_SHOW
    least, most = _SCREENS
    is_moving_screen = least <= numbers["anew"] <= most and numbers["anew_filled"] >= _FILLED_ANEW
    is_as_ever = (
        numbers["again"] < _AS_EVER
        and numbers["others"] < _NO_OTHER_CUT
        and numbers["contrast"] < _HARDLY_STANDS_OUT
        and numbers["anew"] < _ANEW
    )
    if (changes > 0 and (is_still_graphic or is_screen)) or are_letters or is_moving_screen or is_as_ever:
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
        and (rectangle < _RECTANGLE or numbers["stays"] < _HALF_STAYS)
        and numbers["frozen"] > _FROZEN
        and (numbers["alive"] > _MOVED or numbers["stays"] < _MUCH_STAYS)
    ):
        return max(probability, _LIKELY)
    return probability


def _kind_of_cut(numbers: Sequence[float]) -> tuple[Transition, float]:
    """``jump`` if both frames show one camera set-up, otherwise ``hard``; and how sure that is, from 1/2."""
    distance, structure, picture = (numbers[HARD_NUMBERS.index(name)] for name in ("distance", "structure", "picture"))
    # No camera shows a plain background, such as the black after titles.
    if structure > _UNRELATED or picture < np.log(PLAIN + 1):
        return "hard", 1.0
    same = float(1 / (1 + np.exp(np.clip(_SETUP_STEEPNESS * (distance - _SAME_SETUP), -50, 50))))
    return ("jump", same) if same > 0.5 else ("hard", 1 - same)


_OUTPUTS = 5

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True, eq=False)
class GradualModel:
    """The trained parts that find gradual transitions.

    Attributes:
        network: Network with five answers per frame, from the band and what lies between frames.
        score: Score of `GRADUAL_NUMBERS`.
        threshold: Least probability of a gradual transition.
        provenance: Training data and results, as plain values.
    """

    network: TransitionReader
    score: ProposalScore
    threshold: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def notes(self) -> dict[str, Any]:
        """What a file of weights tells beside them, for what writes such files."""
        rules = {"score": asdict(self.score), "threshold": self.threshold}
        return {"gradual": rules, "provenance": dict(self.provenance)}

    @classmethod
    def load(cls, path: PathLike | None = None) -> GradualModel:
        """Load a file of weights with the notes of a model; None is the bundled model.

        Raises:
            InvalidArgumentError: The file does not hold such a model.
        """
        file = os.fspath(_DATA / "gradual.safetensors" if path is None else path)
        with refuse_unreadable(f"{file} must be a model of gradual transitions"):
            network, metadata = open_network(file, outputs=_OUTPUTS)
            rules = parse_json(metadata["gradual"])
            score, threshold = ProposalScore.from_table(rules["score"]), float(rules["threshold"])
            return cls(network, score, threshold, parse_json(metadata.get("provenance", "{}")))


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
        """What a file of weights tells beside them, for what writes such files."""
        return {"rules": asdict(self.rules), "provenance": dict(self.provenance)}

    @classmethod
    def load(cls, path: PathLike | None = None) -> CutModel:
        """Load a file of weights with the notes of a model; None is the bundled model.

        Raises:
            InvalidArgumentError: The file does not hold such a model.
        """
        file = os.fspath(_DATA / "cuts.safetensors" if path is None else path)
        with refuse_unreadable(f"{file} must be a model of the detector 'cuts'"):
            network, metadata = open_network(file, outputs=_OUTPUTS)
            rules = parse_json(metadata["rules"])
            scores = {name: ProposalScore.from_table(rules[name]) for name in ("hard", "gradual")}
            return cls(network, CutRules(**{**rules, **scores}), parse_json(metadata.get("provenance", "{}")))


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

    Of more than 75 frames a second only about 30 are examined; a cut is then placed exactly by how much every frame
    changes. Of less than 3 a second each is examined as one that stays for a while. The curve is the larger of the
    network's two answers and, where computed, the distance of the vectors. Memory: 21 MiB, and about 250 bytes per
    frame. Films need at least two frames to be cut. Shots get no critical score, which requires a learned distance.
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
        transitions = _shipped_gradual()
        self._rules = replace(
            model.rules,
            gradual=transitions.score,
            hard_threshold=model.rules.hard_threshold if hard is None else hard,
            gradual_threshold=transitions.threshold if gradual is None else gradual,
        )
        encoder = shipped_encoder() if encoder is None else encoder
        self._proposals = ProposalMaker(model.network, transitions.network, encoder)
        self._thinner = FrameThinner()
        self._settled = 0

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        for piece in self._thinner.push(planes):
            self._proposals.push(piece)

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        thinner = self._thinner
        for piece in thinner.release():
            self._proposals.push(piece)
        curve = thinner.spread(self._proposals.finish())
        return DetectedCuts(self._cuts(0, self._proposals.vectors.count), Curve(thinner.times, curve, "change"))

    def settled(self) -> tuple[DetectedCut, ...]:
        """Cuts that no later frame changes and that no earlier call returned: those of frames up to about half a minute
        before the last one of a film."""
        until = self._proposals.proposed - _UNSETTLED
        if until <= self._settled:
            return ()
        first, self._settled = self._settled, until
        return self._cuts(first, until)

    def _cuts(self, first: int, until: int) -> tuple[DetectedCut, ...]:
        """The cuts at these of the frames examined, in frames of the video."""
        thinner, begin = self._thinner, first - _UNSETTLED
        times = thinner.passed.tolist()
        gradual = [
            one
            for one in self._proposals.gradual
            if one.last >= begin
            and can_be_a_transition(one.kind, one.numbers, times[one.last] - times[max(0, one.first - 1)])
        ]
        hard = [one for one in self._proposals.hard if one.first >= begin]
        settled = settle_fades(decide(hard, gradual, self._rules), self._proposals.contrasts, times)
        restored = [thinner.restore(cut) for cut in settled if first <= cut.frame < until]
        # Of two that are one among the frames of the video, the more certain one.
        by_frame = {cut.frame: cut for cut in sorted(restored, key=lambda cut: cut.confidence)}
        return tuple(by_frame[frame] for frame in sorted(by_frame))


# Shared by all detectors, which never change them.
_shipped_model = cache(CutModel.load)
_shipped_gradual = cache(GradualModel.load)
