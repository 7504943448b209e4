"""Detections by a trained clip encoder in one video: cuts, gradual transitions, shots and critical scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.contract import DetectedCut, DetectedCuts
from vidkin.shots.critical import critical_score
from vidkin.shots.learned.gradual import GradualTransition, find_gradual
from vidkin.shots.learned.hard_cuts import find_cuts
from vidkin.shots.learned.rules import ShotRules
from vidkin.shots.learned.shot_windows import Encode, ShotWindows
from vidkin.shots.learned.slope_cuts import find_slope_cuts
from vidkin.shots.shot import Curve

__all__ = ["ShotAnalysis", "find_shots"]


@dataclass(frozen=True, slots=True)
class ShotAnalysis:
    """The result of the learned detector for one video.

    Attributes:
        cuts: First frames of new shots after hard cuts, with confidences.
        gradual: Gradual transitions.
        stretches: [start, end) frames of the shots between transitions, one more than there are transitions; empty if
            a transition is at an end of the video.
        critical: Critical score of each stretch in [0, 1]; None without a rule for it.
        curve: [T] c at the last frame of each window: the distance to the first window of its shot. At the frame of a
            hard cut it is the distance of the window that saw the cut; 0 before the first full window of a shot.
    """

    cuts: tuple[tuple[int, float], ...]
    gradual: tuple[GradualTransition, ...]
    stretches: tuple[tuple[int, int], ...]
    critical: tuple[float, ...] | None
    curve: NDArray[np.float64] = field(repr=False)

    def detected_cuts(self, frames: Sequence[int], curve: Curve | None = None) -> DetectedCuts:
        """The cuts in the form of the detector contract.

        Args:
            frames: [T] numbers, in the video, of the frames with features.
            curve: The curve to include in the result.
        """
        cuts = [DetectedCut(frames[frame], "hard", confidence) for frame, confidence in self.cuts]
        cuts += [
            DetectedCut(
                max(1, frames[(transition.first + transition.last) // 2]),
                "gradual",
                transition.confidence,
                frames[transition.first],
                frames[transition.last],
            )
            for transition in self.gradual
        ]
        return DetectedCuts(tuple(sorted(cuts, key=lambda cut: cut.frame)), curve, self.critical)


def find_shots(features: NDArray[np.float32], encode: Encode, rules: ShotRules) -> ShotAnalysis:
    """Find cuts, gradual transitions, shots and their critical scores from features of frames [T, F].

    Args:
        features: Features of all frames in order (or of the frames at the rules' rate).
        encode: Function from clips of features [B, W, F] to embeddings [B, D] of unit length.
        rules: Rules fitted for this encoder.
    """
    windows = ShotWindows(features, rules.window, encode)
    find = find_slope_cuts if rules.method == "slope" else find_cuts
    cuts = find(windows, rules.cut)
    starts = [cut.frame for cut in cuts]
    gradual = [] if rules.gradual is None else find_gradual(windows, starts, rules.gradual)
    # [start, end) of the stretches before, between and after transitions, one more than transitions; some can be
    # empty.
    edges = sorted([(cut, cut) for cut in starts] + [(one.first, one.last + 1) for one in gradual])
    begins = [0, *(following for _, following in edges)]
    ends = [*(end for end, _ in edges), len(windows)]
    stretches = [(start, max(start, end)) for start, end in zip(begins, ends, strict=True)]
    curves = [windows.curve(start, end) for start, end in stretches]
    critical = None
    if rules.critical is not None:
        critical = tuple(critical_score(curve, rules.critical) for curve in curves)
    whole = np.zeros(len(windows))
    for (start, end), curve in zip(stretches, curves, strict=True):
        if len(curve):
            whole[end - len(curve) : end] = curve
            if end in starts:
                whole[end] = windows.curve(start, end + 1)[-1]
    return ShotAnalysis(
        cuts=tuple((cut.frame, cut.confidence) for cut in cuts),
        gradual=tuple(gradual),
        stretches=tuple(stretches),
        critical=critical,
        curve=whole,
    )
