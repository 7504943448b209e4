"""The learned detector: a trained clip encoder with the interface of shot detectors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin.media.squares import fit_to_square
from vidkin.media.time import SAME_TIME
from vidkin.models import ClipEncoder, load_model
from vidkin.shots.contract import DetectedCuts, RgbFrame
from vidkin.shots.learned.analysis import find_shots
from vidkin.shots.learned.encoding import ShotModel, encode_with, frame_features
from vidkin.shots.learned.rules import ShotRules
from vidkin.shots.shot import Curve

if TYPE_CHECKING:
    from vidkin.models.config import Fit

__all__ = ["LearnedDetector", "open_learned"]

_BATCH = 16


class LearnedDetector:
    """Finds cuts where the slope of c(n) = ||f_1 - f_n|| changes suddenly, and critical shots where c increases.

    f_n is the embedding of window n, f_1 the embedding of the first window of the shot. Each frame goes through the
    frame network once, as it arrives; windows of features are embedded in batches at the end. Memory holds the
    features: about 5 KB per frame.

    Args:
        model: The clip encoder, in eval mode.
        rules: Rules fitted for this model.
        size: S, side of the square images the model takes, at least 8 pixels.
        fit: How frames are made square, see `fit_to_square`; the same as when the rules were fitted.
        name: The name under which `open_detector` opens it.

    Source: Radial loss for learning fine-grained video similarity metric, section Testing.
    """

    def __init__(
        self,
        model: ShotModel,
        rules: ShotRules,
        *,
        size: int,
        fit: Fit = "stretch",
        name: str = "learned",
    ) -> None:
        check_at_least(8, size=size)
        self.name = name
        self.short_side: int | None = size
        self._model, self._rules, self._size, self._fit = model, rules, size, fit
        self._waiting: list[NDArray[np.uint8]] = []
        self._features: list[NDArray[np.float32]] = []
        self._frames: list[int] = []
        self._times: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame; if the rules state a rate, most frames are skipped."""
        rate = self._rules.rate
        if rate is not None and frame.time + SAME_TIME < len(self._frames) / rate:
            return
        self._frames.append(frame.index)
        self._times.append(frame.time)
        self._waiting.append(fit_to_square(frame.image, self._size, self._fit))
        if len(self._waiting) == _BATCH:
            self._encode_waiting()

    def finish(self) -> DetectedCuts:
        """Cuts, the curve, and a critical score for each shot if the rules have one."""
        if not self._frames:
            return DetectedCuts(())
        self._encode_waiting()
        analysis = find_shots(np.concatenate(self._features), encode_with(self._model), self._rules)
        curve = Curve(np.array(self._times), analysis.curve, "distance to the first window of the shot")
        return analysis.detected_cuts(self._frames, curve)

    def _encode_waiting(self) -> None:
        if self._waiting:
            self._features.append(frame_features(self._model, np.stack(self._waiting)))
            self._waiting.clear()


def open_learned(model: str | os.PathLike[str]) -> LearnedDetector:
    """Open the detector of a model's folder with rules (``shots.json``).

    Raises:
        InvalidArgumentError: The folder holds no rules, or no clip encoder.
        UnknownExtractorError: The folder holds no model.
    """
    network = load_model(model)
    if not isinstance(network, ClipEncoder):
        raise InvalidArgumentError(
            f"{os.fspath(model)}: the model must be of kind 'clip' to detect shots, got {network.config.kind!r}"
        )
    return LearnedDetector(
        network,
        ShotRules.load(model),
        size=network.config.size,
        fit=network.config.fit,
        name=f"learned:{os.fspath(model)}",
    )
