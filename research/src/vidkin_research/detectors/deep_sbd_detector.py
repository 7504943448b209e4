"""DeepSBD: a 3-D network that classifies segments of 16 frames by the transition they contain."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import fit_to_square
from vidkin.models import load_model
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, RgbFrame
from vidkin_research.detectors.deep_sbd_rules import (
    CLASSES,
    SEGMENT,
    STRIDE,
    bhattacharyya,
    find_segment_runs,
    largest_difference,
)
from vidkin_research.detectors.histograms import HistogramStore

if TYPE_CHECKING:
    from torch import Tensor

    from vidkin.media.frames import Fit

__all__ = ["DeepSbdBaseline", "SegmentNetwork", "open_deep_sbd"]

_BATCH = 8


class SegmentNetwork(Protocol):
    """The network the detector needs (`models.DeepSBDNetwork`)."""

    def __call__(self, volumes: Tensor) -> Tensor:
        """Return logits [B, 3] of none, gradual and sharp for volumes [B, 3, 16, S, S] in [0, 1]."""


class DeepSbdBaseline:
    """DeepSBD (Hassanien et al., "Large-scale, fast and accurate shot boundary detection through spatio-temporal
    convolutional neural networks", 2017).

    Segments of 16 frames with a stride of 8 get the most probable of the classes none, gradual and sharp (softmax); the
    last one is padded with the last frame. Neighboring segments of the same class are merged. In a sharp run, the cut
    is where a frame differs most from the previous one; a gradual run is reported as an interval. Runs whose first and
    last frames have similar colors, with a Bhattacharyya coefficient of their HSV histograms above ``similarity``, are
    dropped. The coefficient and its threshold are ours, because the publication was not available; the threshold was
    set before any evaluation.

    Args:
        network: The trained network, in eval mode.
        size: S, side of the network's square input images.
        fit: How frames are made square, see `fit_to_square`.
        similarity: Threshold in (0, 1]; lower values drop more runs, 1 drops none.
    """

    def __init__(
        self, network: SegmentNetwork, *, size: int = 112, fit: Fit = "stretch", similarity: float = 0.95
    ) -> None:
        if not 0.0 < similarity <= 1.0:
            raise InvalidArgumentError(f"similarity must be above 0 and at most 1, got {similarity}")
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
        """Process the next frame."""
        image = fit_to_square(frame.image, self._size, self._fit)
        before = self._recent[-1] if self._recent else image
        spread = np.maximum(image, before) - np.minimum(image, before)
        self._differences.append(float(spread.mean()))
        self._histograms.append(image)
        self._times.append(frame.time)
        self._push_image(image)

    def finish(self) -> DetectedCuts:
        """Return the cuts; the curve is the probability of any transition, at the middle of each segment."""
        frames = len(self._times)
        if frames == 0:
            return DetectedCuts(())
        while self._taken < SEGMENT or (self._taken - SEGMENT) % STRIDE:
            self._push_image(self._recent[-1])
        self._classify()
        probabilities = np.concatenate(self._probabilities)
        cuts: dict[int, DetectedCut] = {}
        # Hard cuts first: if runs of both kinds overlap, a gradual run must not hide the frame of a cut.
        for run in sorted(find_segment_runs(probabilities, frames), key=lambda run: run.kind == "gradual"):
            first, last = (self._histograms.rows(frame, frame)[0] for frame in (run.first, run.last))
            if bhattacharyya(first, last) > self._similarity:
                continue
            if run.kind == "hard":
                frame = largest_difference(np.array(self._differences), run, cuts)
                cut = DetectedCut(frame, "hard", run.probability)
            else:
                middle = (run.first + run.last + 1) // 2
                cut = DetectedCut(middle, "gradual", run.probability, run.first, run.last)
            cuts.setdefault(cut.frame, cut)
        middles = np.minimum(np.arange(len(probabilities)) * STRIDE + SEGMENT // 2, frames - 1)
        places = np.unique(middles, return_index=True)[1]
        curve = Curve(
            np.array(self._times)[middles[places]],
            1.0 - probabilities[places, 0],
            "probability of a transition",
        )
        return DetectedCuts(tuple(cuts[frame] for frame in sorted(cuts)), curve)

    def _push_image(self, image: NDArray[np.uint8]) -> None:
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


def open_deep_sbd(model: str | os.PathLike[str], *, similarity: float = 0.95) -> DeepSbdBaseline:
    """Open the detector in a folder with a trained network of kind ``deep_sbd``.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The model is of another kind, or does not map segments of 16 frames to three classes.
    """
    network = load_model(model)
    config = network.config
    if config.kind != "deep_sbd" or config.frames != SEGMENT or config.classes != len(CLASSES):
        raise InvalidArgumentError(
            f"{os.fspath(model)}: the model must be of kind 'deep_sbd' with {SEGMENT} frames and {len(CLASSES)} "
            f"classes, got {config.kind!r} with {config.frames} frames and {config.classes} classes"
        )
    names = tuple(network.class_names)
    if names and names != CLASSES:
        raise InvalidArgumentError(
            f"{os.fspath(model)}: the classes must be {', '.join(CLASSES)}, in this order, got {', '.join(names)}"
        )
    return DeepSbdBaseline(network, size=config.size, fit=config.fit, similarity=similarity)
