"""The default detector: distances of frame vectors at changes of the picture, and a network for transitions."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np

from vidkin.features.frame_encoder import FrameEncoder, load_frame_encoder
from vidkin.media import FramePlanes
from vidkin.shots.contract import DetectedCuts
from vidkin.shots.cuts.frame_vectors import GRID
from vidkin.shots.cuts.model import CutModel
from vidkin.shots.cuts.proposals import ProposalMaker
from vidkin.shots.cuts.rules import decide
from vidkin.shots.shot import Curve

__all__ = ["CutDetector"]

PathLike = str | os.PathLike[str]


class CutDetector:
    """Finds hard cuts, even within one scene, and dissolves, fades and wipes.

    The band of the film's self-similarity (`vidkin.shots.band`), read by a small network, shows where a cut or a
    transition can be. Only there do frames go through the frame encoder that search uses as well, and the distances of
    their vectors decide: a hard cut stands out from the changes just before and after it, and the picture stays
    different; a transition leads to another picture. A change of plain color without a picture is not a transition.

    Args:
        encoder: The frame encoder; None is the bundled one. The stored rules fit no other.
        weights: A file written by `CutModel.save`; None is the bundled model.
        hard: Least probability of a hard cut, in (0, 1); None uses the value stored with the weights.
        gradual: Least probability of a gradual transition, in (0, 1).

    The curve is the larger of the network's two answers and, where computed, the distance of the vectors. Memory: 12
    MiB, and about 60 bytes per frame. Films need at least two frames to be cut. Shots get no critical score, which
    requires a learned distance.
    """

    grid = GRID

    def __init__(
        self,
        encoder: FrameEncoder | None = None,
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
        self._proposals = ProposalMaker(
            model.network, _shipped_encoder() if encoder is None else encoder.fold()
        )
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
_shipped_encoder = cache(lambda: load_frame_encoder().fold())
