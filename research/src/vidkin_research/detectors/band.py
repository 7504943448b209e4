"""The detector ``band``: a small network that reads the band of the video's self-similarity, without an image
network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from vidkin._base.files import PathLike
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.media import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes
from vidkin.shots import Curve, DetectedCut, DetectedCuts
from vidkin.shots.band import BandFeatures, Probabilities, TransitionReader, open_network, refuse_unreadable
from vidkin.shots.fades import find_stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionThresholds:
    """Minimum probabilities, fitted on composed videos and stored with the weights.

    Attributes:
        hard: Minimum probability of a hard cut at its frame.
        gradual: Minimum probability of a frame inside a gradual transition.
    """

    hard: float = 0.5
    gradual: float = 0.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 < value < 1:
                raise InvalidArgumentError(f"threshold {name} must be above 0 and below 1, got {value}")


def read_thresholds(metadata: Mapping[str, str]) -> TransitionThresholds:
    """Read the thresholds in the metadata of a file of weights; use it in `refuse_unreadable`."""
    return TransitionThresholds(**parse_json(metadata["thresholds"]))


# Minimum distance in frames from a stronger hard cut.
_NEIGHBORS = 2

# A stretch up to this length with a hard cut in it is that cut, blurred by encoding; in a longer stretch, only a
# certain cut counts separately.
_MAX_BLUR = 8

_SURE = 0.8


def cuts_from_probabilities(probabilities: Probabilities, thresholds: TransitionThresholds) -> tuple[DetectedCut, ...]:
    """Find the cuts in order of frames.

    Args:
        probabilities: [T, 2] probabilities from a network.
        thresholds: Minimum probabilities.

    Returns:
        The cuts. The confidence of a hard cut is its probability; the confidence of a gradual transition is the mean
        over its frames, and its frame is the middle one. There is no cut at the first frame, and no transition that
        begins with it.
    """
    hard, gradual = probabilities[:, 0], probabilities[:, 1]
    # Frames from 1 on that are above the threshold and the maximum (the first of equals) of their neighborhood.
    peaks: list[int] = []
    for frame in (np.flatnonzero(hard[1:] > thresholds.hard) + 1).tolist():
        start = max(0, frame - _NEIGHBORS)
        around = hard[start : frame + _NEIGHBORS + 1]
        if hard[frame] >= around.max() and not (peaks and frame - peaks[-1] <= _NEIGHBORS):
            peaks.append(frame)
    hard_cuts = set(peaks)
    cuts: list[DetectedCut] = []
    for first, last in find_stretches(gradual > thresholds.gradual):
        inside = [peak for peak in peaks if first - 1 <= peak <= last + 1]
        if inside and last - first <= _MAX_BLUR:
            continue
        hard_cuts -= {peak for peak in inside if hard[peak] < _SURE}
        if hard_cuts.isdisjoint(inside) and last >= 1:
            cuts.append(
                DetectedCut(
                    max(1, (first + last + 1) // 2),
                    "gradual",
                    float(gradual[first : last + 1].mean()),
                    start_frame=first,
                    end_frame=last,
                )
            )
    cuts += [DetectedCut(peak, "hard", float(hard[peak])) for peak in hard_cuts]
    return tuple(sorted(cuts, key=lambda cut: cut.frame))


class BandDetector:
    """Finds hard cuts and gradual transitions from the distances of every frame to the 32 before it.

    Each frame becomes 3,500 samples of its decoded planes; their distances at ten lags in four views (structure without
    brightness, color, histograms, layout) are the band of the self-similarity matrix. A network of 29,000 parameters,
    trained only on composed videos, predicts for every frame whether a shot begins there and whether it is inside a
    transition; it has learned that a scene that moves, shakes or returns after a flash is not a cut.

    Args:
        weights: A file written by `TransitionNetwork.save`; None is the bundled network.
        hard: Minimum probability of a hard cut, in (0, 1); None uses the value stored with the weights. Raise it for
            fewer false cuts.
        gradual: Minimum probability of a frame inside a gradual transition, in (0, 1).

    The curve is the larger of both probabilities. Memory: about 200 bytes per frame. Shots get no critical score,
    which requires a learned distance.
    """

    def __init__(
        self, *, weights: PathLike | None = None, hard: float | None = None, gradual: float | None = None
    ) -> None:
        self.name = "band"
        self.grid = (PLANE_HEIGHT, PLANE_WIDTH)
        self._network, stored = _shipped_network() if weights is None else _load(weights)
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
        probabilities = self._network.probabilities(self._features.take())
        cuts = cuts_from_probabilities(probabilities, self._thresholds)
        curve = Curve(np.array(self._times), probabilities.max(1).astype(np.float64), "transition probability")
        return DetectedCuts(cuts, curve)


def _load(path: PathLike) -> tuple[TransitionReader, TransitionThresholds]:
    with refuse_unreadable(f"{os.fspath(path)}: not a network of transitions"):
        network, metadata = open_network(path, outputs=2)
        return network, read_thresholds(metadata)


# Shared by all detectors, which never modify it.
_shipped_network = cache(lambda: _load(Path(__file__).with_name("data") / "band.safetensors"))
