"""The detector ``band``: the band of the video's self-similarity, read by a small network, without an image network."""

from __future__ import annotations

import os
from functools import cache

import numpy as np

from vidkin.media import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes
from vidkin.shots.band.features import BandFeatures
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds
from vidkin.shots.band.rules import cuts_from_probabilities
from vidkin.shots.contract import DetectedCuts
from vidkin.shots.shot import Curve

__all__ = ["BandDetector"]

PathLike = str | os.PathLike[str]


class BandDetector:
    """Finds hard cuts and gradual transitions from the distances of every frame to the 32 before it.

    Each frame becomes 3,500 samples of its decoded planes; their distances at ten lags in four views (structure without
    brightness, color, histograms, layout) are the band of the self-similarity matrix. A network of 29,000 parameters,
    trained only on composed videos, tells for every frame whether a shot begins there and whether it is inside a
    transition: it has learned that a scene that returns after a flash, moves or shakes is not a cut.

    Args:
        weights: A file written by `TransitionNetwork.save`; None is the bundled network.
        hard: Least probability of a hard cut, in (0, 1); None uses the value stored with the weights. Raise it for
            fewer false cuts.
        gradual: Least probability of a frame inside a gradual transition, in (0, 1).

    The curve is the larger of both probabilities. Memory: about 200 bytes per frame. Shots get no critical score,
    which requires a learned distance.
    """

    def __init__(
        self, *, weights: PathLike | None = None, hard: float | None = None, gradual: float | None = None
    ) -> None:
        self.name = "band"
        self.grid = (PLANE_HEIGHT, PLANE_WIDTH)
        self._network = _default_network() if weights is None else TransitionNetwork.load(weights)
        stored = self._network.thresholds
        self._thresholds = TransitionThresholds(
            hard=stored.hard if hard is None else hard,
            gradual=stored.gradual if gradual is None else gradual,
        )
        self._features = BandFeatures()
        self._times: list[float] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        self._features.push(planes)
        self._times += planes.timestamps.tolist()

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        probabilities = self._network.probabilities(self._features.finish()).numpy()
        cuts = cuts_from_probabilities(probabilities, self._thresholds)
        curve = Curve(
            np.array(self._times), probabilities.max(1).astype(np.float64), "transition probability"
        )
        return DetectedCuts(cuts, curve)


# Shared by all detectors, which never change it.
_default_network = cache(TransitionNetwork.load)
