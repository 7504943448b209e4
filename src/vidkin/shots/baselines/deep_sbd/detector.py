"""DeepSBD: a 3-D network says of every 16 frames whether they hold a transition."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.shots.baselines.deep_sbd.rules import (
    CLASSES,
    SEGMENT,
    STRIDE,
    SegmentRun,
    bhattacharyya,
    largest_difference,
    runs,
)
from vidkin.shots.baselines.histograms import HistogramStore
from vidkin.shots.contract import DetectedCut, DetectedCuts, RgbFrame
from vidkin.shots.learned.detector import Fit, squared
from vidkin.shots.shot import Curve

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DeepSbdBaseline", "SegmentNetwork", "open_deep_sbd"]

_BATCH = 8


class SegmentNetwork(Protocol):
    """What the detector needs of a network (`models.DeepSBDNetwork`)."""

    def __call__(self, volumes: Tensor) -> Tensor:
        """Volumes [B, 3, 16, S, S] in 0..1 to logits [B, 3] of none, gradual, sharp."""


class DeepSbdBaseline:
    """DeepSBD (Hassanien et al., "Large-scale, fast and accurate shot boundary detection through spatio-temporal
    convolutional neural networks", 2017).

    Segments of 16 frames, every 8 frames, get the most probable of the classes none, gradual and sharp (softmax); the
    last one is filled up with the last frame. Neighbours of one class are joined. Of sharp runs the cut is where
    a frame differs most from the one before; gradual runs are intervals. Runs whose first and last frame have like
    colours are dropped: their HSV histograms' Bhattacharyya coefficient is above ``similarity``. That
    coefficient and its threshold are ours, as the publication is not among our sources; it was set beforehand.

    Args:
        network: In eval mode.
        size: S, side of the square pictures that it takes.
        fit: How frames become square.
        similarity: In (0, 1]; lower drops more, 1 drops nothing.
    """

    def __init__(
        self, network: SegmentNetwork, *, size: int = 112, fit: Fit = "stretch", similarity: float = 0.95
    ) -> None:
        if not 0.0 < similarity <= 1.0:
            raise InvalidArgumentError(f"similarity must be above 0 and at most 1, given is {similarity}")
        self.name = "deepsbd"
        self.short_side: int | None = size
        self._network, self._size, self._fit, self._similarity = network, size, fit, similarity
        self._recent: deque[NDArray[np.uint8]] = deque(maxlen=SEGMENT)
        self._taken = 0
        self._waiting: list[NDArray[np.uint8]] = []
        self._probabilities: list[NDArray[np.float64]] = []
        self._histograms = HistogramStore()
        self._differences: list[float] = []
        self._times: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Take the next frame."""
        image = squared(frame.image, self._size, self._fit)
        before = self._recent[-1] if self._recent else image
        spread = np.maximum(image, before) - np.minimum(image, before)
        self._differences.append(float(spread.mean()))
        self._histograms.append(image)
        self._times.append(frame.time)
        self._take(image)

    def finish(self) -> DetectedCuts:
        """The cuts; as the curve the probability of any transition, at the middle of each segment."""
        frames = len(self._times)
        if frames == 0:
            return DetectedCuts(())
        while self._taken < SEGMENT or (self._taken - SEGMENT) % STRIDE:
            self._take(self._recent[-1])
        self._classify()
        probabilities = np.concatenate(self._probabilities)
        cuts: dict[int, DetectedCut] = {}
        # Hard cuts first: where runs of both kinds overlap, a gradual one may not hide the frame of a cut.
        for run in sorted(runs(probabilities, frames), key=lambda found: found.kind == "gradual"):
            if self._is_transition(run):
                cut = self._cut(run, cuts)
                cuts.setdefault(cut.frame, cut)
        middles = np.minimum(np.arange(len(probabilities)) * STRIDE + SEGMENT // 2, frames - 1)
        kept = np.unique(middles, return_index=True)[1]
        curve = Curve(
            np.array(self._times)[middles[kept]], 1.0 - probabilities[kept, 0], "probability of a transition"
        )
        return DetectedCuts(tuple(cuts[frame] for frame in sorted(cuts)), curve)

    def _take(self, image: NDArray[np.uint8]) -> None:
        self._recent.append(image)
        self._taken += 1
        if self._taken >= SEGMENT and (self._taken - SEGMENT) % STRIDE == 0:
            self._waiting.append(np.stack(self._recent))
            if len(self._waiting) == _BATCH:
                self._classify()

    def _classify(self) -> None:
        import torch

        if not self._waiting:
            return
        segments = torch.from_numpy(np.stack(self._waiting)).permute(0, 4, 1, 2, 3).float().div_(255.0)
        with torch.inference_mode():
            probabilities = self._network(segments).double().softmax(dim=1)
        self._probabilities.append(probabilities.cpu().numpy())
        self._waiting.clear()

    def _is_transition(self, run: SegmentRun) -> bool:
        ends = self._histograms.rows(run.first, run.first), self._histograms.rows(run.last, run.last)
        return bhattacharyya(ends[0][0], ends[1][0]) <= self._similarity

    def _cut(self, run: SegmentRun, used: dict[int, DetectedCut]) -> DetectedCut:
        if run.kind == "hard":
            frame = largest_difference(np.array(self._differences), run, used)
            return DetectedCut(frame, "hard", run.probability)
        return DetectedCut((run.first + run.last + 1) // 2, "gradual", run.probability, run.first, run.last)


def open_deep_sbd(model: str | os.PathLike[str], *, similarity: float = 0.95) -> DeepSbdBaseline:
    """The detector of a folder that holds a trained network of kind ``deep_sbd``.

    Raises:
        UnknownExtractorError: There is no model.
        InvalidArgumentError: It is of another kind, or does not take segments of 16 frames to three classes.
    """
    from vidkin.models import load_model

    network = load_model(model)
    config = network.config
    if config.kind != "deep_sbd" or config.frames != SEGMENT or config.classes != len(CLASSES):
        raise InvalidArgumentError(
            f"{os.fspath(model)} holds a network of kind {config.kind!r} with {config.frames} frames and "
            f"{config.classes} classes; deepsbd needs 'deep_sbd' with {SEGMENT} frames and the {len(CLASSES)} classes "
            f"{', '.join(CLASSES)}"
        )
    names = tuple(network.class_names)
    if names and names != CLASSES:
        raise InvalidArgumentError(
            f"{os.fspath(model)} has the classes {', '.join(names)}; deepsbd needs {', '.join(CLASSES)} in this order"
        )
    return DeepSbdBaseline(network, size=config.size, fit=config.fit, similarity=similarity)
