"""The default detector: a network on downscaled frames, whose predictions are converted to transitions."""

from __future__ import annotations

import numpy as np

from vidkin._base.files import PathLike
from vidkin.media import FramePlanes
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts
from vidkin.shots.finish import Finisher
from vidkin.shots.network import GRID, HARD, INSIDE, SHIPPED, Answers, NetworkReader, Numbers
from vidkin.shots.thinning import FrameThinner


class CutDetector:
    """Finds hard cuts, jumps within one camera setup, dissolves, fades and wipes.

    Args:
        network: ONNX file, see `vidkin.shots.network.NetworkReader`, with its thresholds in a JSON file of the same
            name; None for the built-in network.
        hard: Minimum probability of a hard cut, in (0, 1); None for the network's default.
        gradual: Minimum probability of a gradual transition, in (0, 1); None for the network's default.

    Above 75 frames per second, only about 30 frames per second are analyzed, and cuts are then located exactly by the
    differences between all frames. Below 3 frames per second, frames are repeated. The curve is the maximum of the
    probability of a cut and the probability of being inside a gradual transition. Memory: 10 MiB plus about 50 bytes
    per frame.
    """

    grid = GRID

    def __init__(
        self, *, network: PathLike | None = None, hard: float | None = None, gradual: float | None = None
    ) -> None:
        self.name = "cuts"
        file = SHIPPED if network is None else network
        self._finisher = Finisher(Numbers.load(file, hard=hard, gradual=gradual))
        self._reader, self._thinner = NetworkReader(file), FrameThinner()
        self._curve = [np.zeros(0)]
        self._cuts: list[DetectedCut] = []
        self._returned = 0

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        self._push(self._thinner.push(planes))

    def finish(self) -> DetectedCuts:
        """Return the cuts in all frames pushed."""
        self._push(self._thinner.release())
        blocks = self._reader.finish()
        for rows in blocks:
            self._read(rows, is_last=rows is blocks[-1])
        curve = self._thinner.spread(np.concatenate(self._curve))
        return DetectedCuts(tuple(self._cuts), Curve(self._thinner.times, curve, "change"))

    def settled(self) -> tuple[DetectedCut, ...]:
        """Return cuts that no later frame can change and that no earlier call returned, about half a minute after the
        frames."""
        first, self._returned = self._returned, len(self._cuts)
        return tuple(self._cuts[first:])

    def _push(self, pieces: list[FramePlanes]) -> None:
        for planes in pieces:
            for rows in self._reader.push(planes):
                self._read(rows)

    def _read(self, rows: Answers, *, is_last: bool = False) -> None:
        self._curve.append(rows[:, [HARD, INSIDE]].max(1))
        for cut in map(self._thinner.restore, self._finisher.push(rows, is_last=is_last)):
            # With thinned frames, two cuts can map to the same frame; keep the first.
            if not self._cuts or cut.frame > self._cuts[-1].frame:
                self._cuts.append(cut)
