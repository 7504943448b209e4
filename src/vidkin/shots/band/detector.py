"""The default detector: the band of the video's self-similarity, read by a small network. No image network."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

from vidkin.media import FramePlanes
from vidkin.shots.band.features import BandFeatures
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds
from vidkin.shots.band.rules import cuts_of_probabilities
from vidkin.shots.contract import DetectedCuts
from vidkin.shots.shot import Curve

__all__ = ["BandDetector"]

PathLike = str | os.PathLike[str]


class BandDetector:
    """Hard cuts and gradual transitions from how far every frame is from the 32 before it.

    Each frame becomes 3,500 samples of its decoded planes; their distances at ten lags in four views (structure without
    brightness, colour, histograms, layout) are the band of the self-similarity matrix. A network of 29,000 parameters,
    trained on composed videos only, says for every frame whether a shot begins there and whether it is inside a
    transition: it has learned that what comes back after a flash, moves or shakes is no cut.

    Args:
        weights: A file of `TransitionNetwork.save`; None is the network that ships with the package.
        hard: Probability from which on a hard cut counts; None as stored with the weights.
        gradual: The same of a frame in a gradual transition.

    The curve is the larger of both probabilities. Memory: some 200 bytes a frame. Shots are not judged
    as critical: that takes a learned measure.
    """

    def __init__(
        self, *, weights: PathLike | None = None, hard: float | None = None, gradual: float | None = None
    ) -> None:
        self.name = "band"
        self._network = _shipped() if weights is None else TransitionNetwork.load(weights)
        stored = self._network.thresholds
        self._thresholds = TransitionThresholds(
            hard=stored.hard if hard is None else hard,
            gradual=stored.gradual if gradual is None else gradual,
        )
        self._features = BandFeatures()
        self._times: list[float] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        self._features.push(planes)
        self._times += planes.timestamps.tolist()

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        probabilities = self._network.probabilities(self._features.finish()).numpy()
        cuts = cuts_of_probabilities(probabilities, self._thresholds)
        curve = Curve(
            np.array(self._times), probabilities.max(1).astype(np.float64), "transition probability"
        )
        return DetectedCuts(cuts, curve)


@lru_cache(maxsize=1)
def _shipped() -> TransitionNetwork:
    """Shared by all detectors, which only read it."""
    return TransitionNetwork.load()
