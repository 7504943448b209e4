"""The default detector: distances of frame vectors where the picture moves, and a network for transitions."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np

from vidkin.media import FramePlanes
from vidkin.models.frame_extractor import load_frame_encoder
from vidkin.models.networks.frame_encoder import FrameEncoder
from vidkin.shots.contract import DetectedCuts
from vidkin.shots.cuts.frame_vectors import GRID
from vidkin.shots.cuts.model import CutModel
from vidkin.shots.cuts.proposals import ProposalMaker
from vidkin.shots.cuts.rules import decide
from vidkin.shots.shot import Curve

__all__ = ["CutDetector"]

PathLike = str | os.PathLike[str]


class CutDetector:
    """Hard cuts, also inside one scene, and dissolves, fades and wipes.

    The band of the film's self-similarity (`vidkin.shots.band`), read by a small network, says where a cut or a
    transition may be. Only there frames go through the frame encoder that search uses as well, and the distances of
    their vectors decide: a hard cut differs from what the picture does just before and after it, and stays different;
    a transition leads somewhere else. The picture has to be one: where there is nothing but plain color, no change of
    it is a transition.

    Args:
        encoder: The frame encoder; None is the shipped one. The stored rules fit no other.
        weights: A file of `CutModel.save`; None is the model that ships with the package.
        hard: Probability from which on a hard cut counts, in (0, 1); None as stored with the weights.
        gradual: The same of a gradual transition.

    The curve is the larger of the network's two answers and, where it was looked at, of the distance of the vectors.
    Memory: 12 MiB, and some 60 bytes for every frame. Films need at least two frames to be cut. Shots are not judged
    as critical: that takes a learned measure.
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
        """Take the next frames."""
        self._proposals.push(planes)
        self._times += planes.timestamps.tolist()

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        curve = self._proposals.finish()
        cuts = decide(self._proposals.hard, self._proposals.gradual, self._rules)
        return DetectedCuts(cuts, Curve(np.array(self._times), curve, "change"))


# Shared by all detectors, which only read them.
_shipped_model = cache(CutModel.load)
_shipped_encoder = cache(lambda: load_frame_encoder().fold())
