"""A rule of two constants on the vectors of every frame: what the default shot detector must not fall behind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.features.sessions import shipped_encoder
from vidkin.media import FramePlanes
from vidkin.shots.contract import DetectedCut, DetectedCuts
from vidkin.shots.frame_vectors import GRID, squares_of_planes

LEAST, FLOOR, SIDE = 0.01, 0.004, 3


class VectorRule:
    """A hard cut wherever ``d > .01`` and ``d > 2 (median + max / 2 + .004)`` of the three distances on either side."""

    name = "vector rule"
    grid = GRID

    def __init__(self) -> None:
        self._encoder = shipped_encoder()
        self._vectors: list[NDArray[np.float32]] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        self._vectors.append(self._encoder.encode(squares_of_planes(planes.luma, planes.chroma)))

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        vectors = np.concatenate(self._vectors)
        steps = 1 - (vectors[1:] * vectors[:-1]).sum(1)
        cuts = []
        for place, step in enumerate(steps):
            around = np.r_[steps[max(0, place - SIDE) : place], steps[place + 1 : place + 1 + SIDE]]
            usual = np.median(around) + around.max() / 2 if len(around) else 0.0
            if step > LEAST and step > 2 * (usual + FLOOR):
                cuts.append(DetectedCut(place + 1, "hard", min(1.0, float(step))))
        return DetectedCuts(tuple(cuts))
