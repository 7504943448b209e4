"""Stretches classified by the network as transitions, divided where one ends and the next begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.band import BAND_CONTEXT, BAND_LAGS, BandFeatures, TransitionReader, find_stretches
from vidkin.shots.contract import Transition
from vidkin.shots.cut_numbers import (
    AROUND,
    SIDE,
    BandGrid,
    FrameVectors,
    VectorNetwork,
    measure_cut,
    measure_transition,
    stands_out,
)

LEAST_PICTURE = 3.0

"""Least contrast of luma (deviation, of 255) of a frame that shows a picture rather than a plain background."""

# Least answer of the network for a frame that can lie in a transition, and for one that certainly does.
_POSSIBLE, _SURE = 0.25, 0.9

_SHORTEST = 3

# Contrast of a plain background. A background longer than this many frames separates a fade-out from a fade-in; its
# first and last frames belong to them.
_GROUND, _ONE_FADE = 1.0, 10


def propose_stretches(answers: NDArray[np.float32], contrasts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """First and last frames of stretches that can be transitions.

    Args:
        answers: [T] probability that each frame lies in a transition.
        contrasts: [T] deviation of luma, of 255.
    """
    parts = []
    for first, last in find_stretches(answers > _POSSIBLE):
        for start, end in _divide_at_dips(first, last, answers):
            parts += _divide_at_ground(start, end, contrasts)
    return parts


def _divide_at_dips(first: int, last: int, answers: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Small gaps divide a stretch only if both sides are certainly separate transitions."""
    low = np.flatnonzero(answers[first : last + 1] <= _POSSIBLE) + first
    for frame in low.tolist():
        before = find_stretches(answers[first:frame] > _POSSIBLE)
        after = find_stretches(answers[frame + 1 : last + 1] > _POSSIBLE)
        if not before or not after:
            continue
        end, start = first + before[-1][1], frame + 1 + after[0][0]
        if answers[first : end + 1].max() >= _SURE and answers[start : last + 1].max() >= _SURE:
            return [(first, end), *_divide_at_dips(start, last, answers)]
    return [(first, last)]


def _divide_at_ground(first: int, last: int, contrasts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """A plain background shown for long between pictures lies between two fades."""
    ground = np.flatnonzero(contrasts[first : last + 1] < _GROUND) + first
    runs = np.split(ground, np.flatnonzero(np.diff(ground) > 1) + 1)
    for run in runs:
        if len(run) <= _ONE_FADE:
            continue
        start, end = int(run[0]), int(run[-1])
        shown = (contrasts[max(0, first - 3) : start + 1], contrasts[end : last + 4])
        if start - first + 1 >= _SHORTEST <= last - end + 1 and min(part.max() for part in shown) >= LEAST_PICTURE:
            return [(first, start), *_divide_at_ground(end, last, contrasts)]
    return [(first, last)]


# Places where a film can be cut, with the measurements needed to decide.


GRADUAL_TYPES: tuple[Transition, ...] = ("dissolve", "fade", "wipe")

LEAST_DISTANCE = 0.01

"""Least distance of two frames with a cut between them."""

_STEP = 128

_PUSHED = 64

_ROOM = 512

# Where the inexpensive curve moves: the network's answer for a cut is at least this, or luma without brightness and
# contrast changes by this much and by this many times its surroundings.
_UNLIKELY = 0.02

_MOVES, _TIMES = 0.12, 1.2

# Where the network is this certain and the vectors are this far apart, surrounding frames are not examined.
_CLEAR, _FAR = 0.97, 0.5

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
    """

    first: int
    last: int
    numbers: tuple[float, ...]
    kind: Transition


class ProposalMaker:
    """Takes the frames of a film and returns proposals for all frames the network has fully seen.

    Args:
        network: Network with five answers per frame: hard, gradual, and the kinds of gradual transitions.
        encoder: Encoder of single frames.

    Memory: 512 frames at 24 KiB, and 40 bytes for every frame. The result does not depend on how the frames are
    divided into blocks.
    """

    def __init__(self, network: TransitionReader, encoder: VectorNetwork) -> None:
        self.vectors = FrameVectors(encoder, _ROOM)
        self.hard: list[Proposal] = []
        self.gradual: list[Proposal] = []
        self._network = network
        self._grid = BandGrid()
        self._band = BandFeatures()
        self._rows = np.zeros((0, 0), np.float32)
        self._from = 0  # number of the first row in memory
        self._done = 0
        self._looked = 0  # hard cuts are looked for from here on
        self._open = 0  # gradual transitions are looked for from here on
        self._answers = _GrowingRows()
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
        self._advance(self.vectors.count, last=True)
        if not self.vectors.count:
            return np.zeros(0)
        curve: NDArray[np.float64] = self._answers.rows[:, :2].max(1).astype(np.float64)
        for frame, distance in self._distances.items():
            curve[frame] = max(curve[frame], min(1.0, distance))
        return curve

    def _take_rows(self) -> None:
        rows = self._band.take()
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
        self._propose_gradual(until, last=last)

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
        stretches = propose_stretches(self._answers.rows[begin:until, 1], self._seen.rows[begin:until, 1] * 128)
        settled = until if last else until - 16
        for start, stop in stretches:
            first, end = begin + start, begin + stop
            if end >= settled and end - first < _ROOM // 2:
                settled = min(settled, first)
                break
            numbers = measure_transition(first, end, self.vectors, self._answers.rows, self._seen.rows)
            kinds = self._answers.rows[first : end + 1, 2:].mean(0)
            self.gradual.append(Proposal(first, end, numbers, GRADUAL_TYPES[int(kinds.argmax())]))
        self._open = max(self._open, settled)


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
        end = self._count + len(rows)
        if end > len(self._held):
            larger = np.empty((max(2 * len(self._held), end), rows.shape[1]), np.float32)
            larger[: self._count] = self.rows if self._count else 0
            self._held = larger
        self._held[self._count : end] = rows
        self._count = end
