"""What a trained clip encoder needs to cut video: its window, and rules fitted on labelled videos; kept beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.atomic import write_text
from vidkin.errors import InvalidArgumentError
from vidkin.shots.critical import TrendTest, critical_score, fit_trend
from vidkin.shots.fitted_rule import FittedRule, fit_rule
from vidkin.shots.learned.gradual import FoundGradual, find_gradual, gradual_examples
from vidkin.shots.learned.slope import CUT_NUMBERS, Encode, ShotWindows, cut_examples, find_cuts

__all__ = ["RULES_FILE", "FoundShots", "ShotRules", "find_shots", "fit_shot_rules"]

PathLike = str | os.PathLike[str]

RULES_FILE = "shots.json"
"""Name of the file of rules in a model's folder."""

_FORMAT = "vidkin-shot-rules-1"


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """Thresholds of the learned detector, fitted on labelled videos that it is not judged on.

    Attributes:
        window: Frames a window, 2 or more; the sources take 40.
        rate: Frames a second that are looked at; None takes every frame.
        cut: When the slope of the curve changes suddenly.
        gradual: When two sides without a sudden change are two shots; None looks for hard cuts alone.
        critical: When the curve of a shot increases; None gives shots no critical score.
        fitted_on: What the rules were fitted on, in words.
    """

    window: int
    cut: FittedRule
    rate: float | None = None
    gradual: FittedRule | None = None
    critical: FittedRule | None = None
    fitted_on: str = ""

    def __post_init__(self) -> None:
        if self.window < 2:
            raise InvalidArgumentError(f"window is {self.window} frames, allowed is 2 or more")
        if self.rate is not None and not self.rate > 0:
            raise InvalidArgumentError(f"rate is {self.rate} frames a second, allowed is above 0 or None")

    def save(self, folder: PathLike) -> Path:
        """Write ``shots.json`` into a model's folder."""
        document = {
            "format": _FORMAT,
            "window": self.window,
            "rate": self.rate,
            "cut": self.cut.as_dict(),
            "gradual": None if self.gradual is None else self.gradual.as_dict(),
            "critical": None if self.critical is None else self.critical.as_dict(),
            "fitted_on": self.fitted_on,
        }
        path = Path(folder) / RULES_FILE
        write_text(path, json.dumps(document, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: PathLike) -> ShotRules:
        """Read ``shots.json`` of a model's folder.

        Raises:
            InvalidArgumentError: There is none, or it is damaged.
        """
        path = Path(folder) / RULES_FILE
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentError(
                f"{path} cannot be read ({error.strerror}): this model was not fitted to find shots; "
                "`vidkin train-shots` makes one that is (in Python: fit_shot_rules, ShotRules.save)"
            ) from error
        except ValueError as error:
            raise InvalidArgumentError(f"{path} is not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise InvalidArgumentError(f"{path} holds no rules of the format {_FORMAT!r}")
        try:
            rate = document["rate"]
            return cls(
                window=int(document["window"]),
                rate=None if rate is None else float(rate),
                cut=FittedRule.from_dict(document["cut"]),
                gradual=_optional(document["gradual"]),
                critical=_optional(document["critical"]),
                fitted_on=str(document["fitted_on"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{path} is damaged: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class FoundShots:
    """What the learned detector finds in the features of one video.

    Attributes:
        cuts: First frames of new shots after hard cuts, with confidences.
        gradual: Gradual transitions.
        stretches: [start, end) frames of the shots between them, one more than there are; empty where a transition is
            at an end of the video.
        critical: Critical score of each stretch in [0, 1]; None without a rule for it.
        curve: [T] c at the frame in which each window ends: the distance to the first window of its shot. At the frame
            of a hard cut it is that of the window which saw it; 0 before the first full window of a shot.
    """

    cuts: tuple[tuple[int, float], ...]
    gradual: tuple[FoundGradual, ...]
    stretches: tuple[tuple[int, int], ...]
    critical: tuple[float, ...] | None
    curve: NDArray[np.float64] = field(repr=False)


def find_shots(features: NDArray[np.float32], encode: Encode, rules: ShotRules) -> FoundShots:
    """Cuts, gradual transitions, shots and their critical scores from features of frames [T, F].

    Args:
        features: Of every frame in order (or of those at the rules' rate).
        encode: Clips of features [B, W, F] to embeddings [B, D] of unit length.
        rules: Of this encoder.
    """
    windows = ShotWindows(features, rules.window, encode)
    cuts = find_cuts(windows, rules.cut)
    frames = [cut.frame for cut in cuts]
    gradual = [] if rules.gradual is None else find_gradual(windows, frames, rules.gradual)
    stretches = _stretches(len(windows), frames, gradual)
    curves = [windows.curve(start, end) for start, end in stretches]
    critical = None
    if rules.critical is not None:
        critical = tuple(critical_score(curve, rules.critical) for curve in curves)
    return FoundShots(
        tuple((cut.frame, cut.confidence) for cut in cuts),
        tuple(gradual),
        tuple(stretches),
        critical,
        _whole_curve(windows, stretches, frames, curves),
    )


def fit_shot_rules(
    videos: Sequence[NDArray[np.float32]],
    labels: Sequence[Sequence[tuple[int, int]]],
    encode: Encode,
    *,
    window: int,
    rate: float | None = None,
    cut_numbers: Sequence[str] = CUT_NUMBERS,
    gradual: bool = True,
    critical: Sequence[Sequence[bool]] | None = None,
    trend: TrendTest = "combined",
    fitted_on: str = "",
) -> ShotRules:
    """Fit all rules on videos with labelled shots.

    Args:
        videos: Features of the frames of each, [T, F].
        labels: Shots of each as [start, end) frames in order; frames between two are a gradual transition.
        encode: As for `find_shots`.
        window: Frames a window.
        rate: Kept in the rules.
        cut_numbers: What the rule for cuts looks at; ``("jump",)`` is the slope of the curve alone, as published.
        gradual: Fit a rule for gradual transitions too, if the labels have any.
        critical: For each video which of its shots are critical; None fits no rule for it.
        trend: The test for an increasing curve.
        fitted_on: Kept in the rules.

    Raises:
        InvalidArgumentError: There is nothing to fit on: no cut, or shots that are all critical or all not.
    """
    if len(videos) != len(labels) or (critical is not None and len(critical) != len(videos)):
        raise InvalidArgumentError(
            f"there must be labels for every video, given are {len(labels)} for {len(videos)} videos"
        )
    cuts = _Examples()
    sides = _Examples()
    curves: list[NDArray[np.float64]] = []
    for features, shots in zip(videos, labels, strict=True):
        windows = ShotWindows(features, window, encode)
        cuts.add(*cut_examples(windows, shots), 0)
        sides.add(*gradual_examples(windows, *_boundaries(shots)))
        curves += [windows.curve(start, end) for start, end in shots]
    return ShotRules(
        window=window,
        rate=rate,
        cut=fit_rule(cuts.numbers, cuts.labels, names=cut_numbers),
        gradual=sides.fit() if gradual and any(sides.labels) else None,
        critical=(
            None
            if critical is None
            else fit_trend(curves, [label for video in critical for label in video], test=trend)
        ),
        fitted_on=fitted_on,
    )


class _Examples:
    """Numbers with labels of several videos."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []
        self.labels: list[bool] = []
        self.missed = 0

    def add(self, numbers: Sequence[Any], labels: Sequence[bool], missed: int) -> None:
        self.numbers += numbers
        self.labels += labels
        self.missed += missed

    def fit(self) -> FittedRule:
        return fit_rule(self.numbers, self.labels, names=tuple(self.numbers[0]), missed=self.missed)


def _optional(values: Any) -> FittedRule | None:
    return None if values is None else FittedRule.from_dict(values)


def _boundaries(shots: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]]]:
    """Hard cuts and gradual transitions ([first, last]) between labelled shots; also before the first shot."""
    cuts: list[int] = []
    transitions: list[tuple[int, int]] = []
    before = 0
    for number, (start, end) in enumerate(shots):
        if start > before:
            transitions.append((before, start - 1))
        elif number:
            cuts.append(start)
        before = end
    return cuts, transitions


def _stretches(count: int, cuts: Sequence[int], transitions: Sequence[FoundGradual]) -> list[tuple[int, int]]:
    """[start, end) of what lies before, between and behind cuts and transitions; one more than these, some empty."""
    edges = sorted([(cut, cut) for cut in cuts] + [(found.first, found.last + 1) for found in transitions])
    starts = [0, *(following for _, following in edges)]
    ends = [*(end for end, _ in edges), count]
    return [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]


def _whole_curve(
    windows: ShotWindows,
    stretches: Sequence[tuple[int, int]],
    cuts: Sequence[int],
    curves: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    whole = np.zeros(len(windows))
    seen = set(cuts)
    for (start, end), curve in zip(stretches, curves, strict=True):
        if len(curve):
            whole[end - len(curve) : end] = curve
            if end in seen:
                whole[end] = windows.curve(start, end + 1)[-1]
    return whole
