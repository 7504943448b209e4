"""Places where a film may be cut, and what is measured there: all that a decision needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.band.features import BAND_LAGS, BandFeatures
from vidkin.shots.band.network import TransitionNetwork
from vidkin.shots.band.rules import find_stretches
from vidkin.shots.cuts.frame_vectors import BandGrid, FrameVectors, VectorNetwork
from vidkin.shots.shot import Transition

__all__ = ["GRADUAL_NUMBERS", "GRADUAL_TYPES", "HARD_NUMBERS", "Proposal", "ProposalMaker"]

GRADUAL_TYPES: tuple[Transition, ...] = ("dissolve", "fade", "wipe")
HARD_NUMBERS = ("distance", "contrast", "network", "across", "share", "structure", "brightness")
"""What is measured at a frame that may begin a shot."""
GRADUAL_NUMBERS = (
    "ends",
    "before",
    "after",
    "network",
    "peak",
    "length",
    "picture",
    "dark",
    "middle",
    "excess",
    "hold",
)
"""What is measured in a stretch that may be a transition."""

LEAST_DISTANCE = 0.01
"""Below this distance of two frames there is no cut between them."""

# The network's answer for a frame depends on this many frames to each side.
_CONTEXT = 62
_STEP = 128
_PUSHED = 64
_ROOM = 512
# Where the cheap curve moves: the network gives this much for a cut, or luma without brightness and contrast changes
# by this much and by this many times what it does around.
_UNLIKELY = 0.02
_MOVES, _TIMES = 0.12, 1.2
_GRADUAL = 0.25
# Where the network is this sure and the vectors this far from each other, no frames around are looked at.
_CLEAR, _FAR = 0.9, 0.3
# Frames compared on either side of a cut.
_SIDE = 3
_REACH = 4
_CONTRAST = 4 * len(BAND_LAGS) + 1
_BRIGHTNESS = 4 * len(BAND_LAGS)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A place where the film may be cut.

    Attributes:
        first: First frame of the new shot, or of the transition.
        last: ``first``, or the last frame of the transition.
        numbers: As `HARD_NUMBERS` or `GRADUAL_NUMBERS` name them.
        kind: ``hard``, ``dissolve``, ``fade`` or ``wipe``.
    """

    first: int
    last: int
    numbers: tuple[float, ...]
    kind: Transition


def _usual(distances: NDArray[np.float64], frame: int, times: float = 2.0, floor: float = 0.004) -> float:
    """What a distance is compared with: ``times * (median + maximum / 2 + floor)`` of three to either side.

    Beyond the ends there is nothing to compare with, and fewer are taken; NaN stands for an unknown distance.
    """
    around = np.concatenate(
        [distances[max(1, frame - _SIDE) : frame], distances[frame + 1 : frame + 1 + _SIDE]]
    )
    around = around[~np.isnan(around)]
    if not len(around):
        return times * floor
    return times * (float(np.median(around)) + float(around.max()) / 2 + floor)


class ProposalMaker:
    """Takes the frames of a film and gives the proposals of all that is behind the network's horizon.

    Args:
        network: Five answers for each frame: hard, gradual, and the kinds of gradual transitions.
        encoder: Makes vectors of single frames.

    Memory: 512 frames at 24 KiB, and 40 bytes for every frame. What is found does not depend on how the frames were
    cut into blocks.
    """

    def __init__(self, network: TransitionNetwork, encoder: VectorNetwork) -> None:
        self.vectors = FrameVectors(encoder, _ROOM)
        self.hard: list[Proposal] = []
        self.gradual: list[Proposal] = []
        self._network = network
        self._grid = BandGrid()
        self._band = BandFeatures()
        self._rows = np.zeros((0, 0), np.float32)
        self._from = 0  # number of the first row that is held
        self._done = 0
        self._open = 0  # gradual transitions are looked for from here on
        self._answers = _GrowingRows()
        self._seen = _GrowingRows()
        self._distances: dict[int, float] = {}

    def push(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        for start in range(0, len(planes), _PUSHED):
            part = FramePlanes(
                planes.luma[start : start + _PUSHED],
                planes.chroma[start : start + _PUSHED],
                planes.timestamps[start : start + _PUSHED],
            )
            self._push(part)

    def finish(self) -> NDArray[np.float64]:
        """All that is left; the curve [T]: the larger of the network's answers, or the vectors' distance at cuts."""
        self._take_rows()
        self._advance(self.vectors.count, last=True)
        if not self.vectors.count:
            return np.zeros(0)
        curve: NDArray[np.float64] = self._answers.rows[:, :2].max(1).astype(np.float64)
        for frame, distance in self._distances.items():
            curve[frame] = max(curve[frame], min(1.0, distance))
        return curve

    def _push(self, planes: FramePlanes) -> None:
        # Blocks are filled up to fixed numbers of frames, so that nothing depends on how they come.
        while len(planes):
            room = _PUSHED - self.vectors.count % _PUSHED
            part = FramePlanes(planes.luma[:room], planes.chroma[:room], planes.timestamps[:room])
            self.vectors.push(part)
            self._band.push(self._grid.thin(part))
            planes = FramePlanes(planes.luma[room:], planes.chroma[room:], planes.timestamps[room:])
            ready = (self.vectors.count - _CONTEXT) // _STEP * _STEP
            if ready > self._done:
                self._take_rows()
                self._advance(ready)

    def _take_rows(self) -> None:
        rows = self._band.take()
        self._rows = np.concatenate([self._rows, rows]) if self._rows.size else rows

    def _advance(self, until: int, *, last: bool = False) -> None:
        """Answers and proposals of the frames up to ``until``."""
        done, self._done = self._done, until
        if until > done:
            first = max(self._from, done - _CONTEXT)
            piece = torch.from_numpy(self._rows[first - self._from : until + _CONTEXT - self._from])
            answers = self._network.probabilities(piece).numpy()[done - first : until - first]
            rows = self._rows[done - self._from : until - self._from]
            self._answers.append(answers)
            self._seen.append(rows[:, [0, _CONTRAST, _BRIGHTNESS]])
            self._propose_hard(done, until)
            kept = max(0, until - _CONTEXT - _REACH)
            self._rows, self._from = self._rows[kept - self._from :], kept
        self._propose_gradual(until, last=last)

    def _propose_hard(self, done: int, until: int) -> None:
        answers = self._answers.rows[done:, 0]
        structure = self._rows[:, 0].astype(np.float64)
        held = self._from
        chosen = []
        for frame in range(max(1, done), until):
            moved = structure[frame - held]
            if answers[frame - done] > _UNLIKELY or (
                moved > _MOVES and moved > _TIMES * _usual(structure, frame - held, 1.0, 0.01)
            ):
                chosen.append(frame)
        vectors = self.vectors
        vectors.encode(frame - side for frame in chosen for side in (0, 1))
        chosen = [frame for frame in chosen if vectors.distance(frame - 1, frame) > LEAST_DISTANCE]
        unclear = [
            frame
            for frame in chosen
            if answers[frame - done] < _CLEAR or vectors.distance(frame - 1, frame) < _FAR
        ]
        vectors.encode(frame + side for frame in unclear for side in range(-_REACH, _SIDE + 1))
        for frame in chosen:
            numbers = float(answers[frame - done]), float(structure[frame - held])
            self.hard.append(self._hard(frame, *numbers, side=_SIDE if frame in unclear else 0))

    def _hard(self, frame: int, answer: float, structure: float, *, side: int) -> Proposal:
        """What is measured at a frame, against ``side`` frames before and after it."""
        vectors = self.vectors
        count = vectors.count
        distance = vectors.distance(frame - 1, frame)
        self._distances[frame] = distance
        places = range(frame - side, frame + side + 1)
        distances = [vectors.distance(place - 1, place) if 1 <= place < count else np.nan for place in places]
        usual = _usual(np.array([np.nan, *distances]), side + 1)
        before = range(max(0, frame - max(1, side)), frame)
        after = range(frame, min(count, frame + max(1, side)))
        across = min(vectors.distance(one, other) for one in before for other in after)
        row = self._rows[frame - self._from]
        numbers = (
            np.log(distance + 1e-4),
            np.log(distance / usual + 1e-2),
            _logit(answer),
            np.log(across + 1e-3),
            across / distance,
            structure,
            abs(float(row[_BRIGHTNESS + 4])) / 8,
        )
        return Proposal(frame, frame, tuple(float(number) for number in numbers), "hard")

    def _propose_gradual(self, until: int, *, last: bool) -> None:
        if until <= self._open:
            return
        answers = self._answers.rows[self._open : until]
        begin = self._open
        stretches = find_stretches(answers[:, 1] > _GRADUAL)
        settled = until if last else until - 16
        for start, stop in stretches:
            first, end = begin + start, begin + stop
            if end >= settled and end - first < _ROOM // 2:
                settled = min(settled, first)
                break
            self.gradual.append(self._gradual(first, end))
        self._open = max(self._open, settled)

    def _gradual(self, first: int, end: int) -> Proposal:
        vectors = self.vectors
        answers, seen = self._answers.rows[first : end + 1], self._seen.rows
        middle = (first + end) // 2
        one, other = first - 2, end + 2
        vectors.encode((one, other, one - 6, other + 6, middle))
        ends = vectors.distance(one, other)
        before, after = vectors.distance(one - 6, one), vectors.distance(other, other + 6)
        to_middle = min(vectors.distance(one, middle), vectors.distance(middle, other))
        around = seen[max(0, first - 3) : end + 4, 1] * 128
        inside = seen[first : end + 1]
        found = GRADUAL_TYPES[int(answers[:, 2:].mean(0).argmax())]
        numbers = (
            np.log(ends + 1e-3),
            np.log(before + 1e-3),
            np.log(after + 1e-3),
            _logit(float(answers[:, 1].mean())),
            _logit(float(answers[:, 1].max())),
            np.log(end - first + 1),
            np.log(float(around.max()) + 1.0),
            np.log(float(inside[:, 1].min()) * 128 + 1.0),
            np.log(to_middle + 1e-3),
            np.log((ends + 1e-3) / (before + after + 1e-2)),
            float(inside[:, 0].max()),
        )
        return Proposal(first, end, tuple(float(number) for number in numbers), found)


class _GrowingRows:
    """Rows that more are added to, without copying all of them each time."""

    def __init__(self) -> None:
        self._held = np.zeros((0, 0), np.float32)
        self._count = 0

    @property
    def rows(self) -> NDArray[np.float32]:
        """[T, C] of all that were added."""
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


def _logit(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)
    return float(np.log(share / (1 - share)))
