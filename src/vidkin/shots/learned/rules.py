"""Settings for cutting video with a trained clip encoder: its window, and rules fitted on labeled videos."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.atomic import write_text
from vidkin._base.checks import check_at_least, check_choice, check_positive
from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.shots.critical import TrendTest, fit_trend
from vidkin.shots.fitted_rule import FittedRule, fit_rule
from vidkin.shots.learned.gradual import SIDE_NUMBERS, gradual_examples
from vidkin.shots.learned.hard_cuts import CUT_NUMBERS, cut_examples
from vidkin.shots.learned.shot_windows import Encode, ShotWindows
from vidkin.shots.learned.slope_cuts import SLOPE_NUMBERS, slope_examples

__all__ = ["CUT_RULES", "RULES_FILE", "CutRule", "ShotRules", "fit_shot_rules"]

PathLike = str | os.PathLike[str]

CutRule = Literal["extended", "slope"]
"""How cuts are found. ``slope``, the published rule: a sudden change in the slope of the curve, over full windows.
``extended``, ours: the novelty of neighboring windows, the frames themselves and both sides count as well, shots
shorter than a window have a curve, and gradual transitions are found."""

CUT_RULES: tuple[CutRule, ...] = get_args(CutRule)

RULES_FILE = "shots.json"
"""Name of the file of rules in a model's folder."""

_FORMAT = "vidkin-shot-rules-1"


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """Thresholds of the learned detector, fitted on labeled videos other than the test videos.

    Attributes:
        window: Number of frames per window, at least 2; the sources use 40.
        rate: Frames per second to examine, above 0; None uses every frame.
        cut: Rule for cuts: when the slope of the curve changes suddenly.
        method: How the rule is used.
        gradual: Rule for gradual transitions: when two sides without a sudden change are two shots; None finds only
            hard cuts.
        critical: Rule for critical shots: when the curve of a shot increases; None gives shots no critical score.
        fitted_on: Description of the data the rules were fitted on.
    """

    window: int
    cut: FittedRule
    method: CutRule = "extended"
    rate: float | None = None
    gradual: FittedRule | None = None
    critical: FittedRule | None = None
    fitted_on: str = ""

    def __post_init__(self) -> None:
        check_at_least(2, window=self.window)
        check_choice("method", self.method, CUT_RULES)
        if self.rate is not None:
            check_positive(rate=self.rate)

    def save(self, folder: PathLike) -> Path:
        """Write ``shots.json`` into a model's folder, and return its path."""
        document = {
            "format": _FORMAT,
            "window": self.window,
            "rate": self.rate,
            "method": self.method,
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
        """Read ``shots.json`` from a model's folder.

        Raises:
            InvalidArgumentError: The file is missing or damaged.
        """
        path = Path(folder) / RULES_FILE
        try:
            document = parse_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentError(
                f"{path}: cannot be read ({error.strerror}), so this model does not detect shots; "
                "train one that does with `vidkin train-shots`"
            ) from error
        except ValueError as error:
            raise InvalidArgumentError(f"{path}: not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise InvalidArgumentError(f"{path}: must hold rules of the format {_FORMAT!r}")
        try:
            rate = document["rate"]
            gradual, critical = (
                None if document[name] is None else FittedRule.from_dict(document[name])
                for name in ("gradual", "critical")
            )
            return cls(
                window=int(document["window"]),
                rate=None if rate is None else float(rate),
                cut=FittedRule.from_dict(document["cut"]),
                method=document.get("method", "extended"),
                gradual=gradual,
                critical=critical,
                fitted_on=str(document["fitted_on"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{path}: damaged: {type(error).__name__}: {error}") from error


def fit_shot_rules(
    videos: Sequence[NDArray[np.float32]],
    labels: Sequence[Sequence[tuple[int, int]]],
    encode: Encode,
    *,
    window: int,
    rate: float | None = None,
    method: CutRule = "extended",
    gradual: bool = True,
    critical: Sequence[Sequence[bool]] | None = None,
    trend: TrendTest = "combined",
    fitted_on: str = "",
) -> ShotRules:
    """Fit all rules on videos with labeled shots.

    Args:
        videos: Features [T, F] of the frames of each video.
        labels: Shots of each video as [start, end) frames in order; frames between two are a gradual transition.
        encode: Encoder, as in `find_shots`.
        window: Number of frames per window.
        rate: Rate to store in the rules.
        method: ``slope`` is the published rule, which knows only hard cuts.
        gradual: Also fit a rule for gradual transitions, if the labels have any and the method knows them.
        critical: For each video, whether each of its shots is critical; None fits no such rule.
        trend: The test for an increasing curve.
        fitted_on: Description of the data, to store in the rules.

    Raises:
        InvalidArgumentError: There is nothing to fit on: no cut, or no difference in whether shots are critical.
    """
    if len(videos) != len(labels) or (critical is not None and len(critical) != len(videos)):
        raise InvalidArgumentError(
            f"labels and critical must have one entry per video, got {len(labels)} labels"
            f"{'' if critical is None else f' and {len(critical)} critical'} for {len(videos)} videos"
        )
    cuts: list[Mapping[str, float]] = []
    is_cut: list[bool] = []
    sides: list[Mapping[str, float]] = []
    is_gradual: list[bool] = []
    missed = missed_cuts = 0
    curves: list[NDArray[np.float64]] = []
    for features, shots in zip(videos, labels, strict=True):
        windows = ShotWindows(features, window, encode)
        curves += [windows.curve(start, end) for start, end in shots]
        if method == "slope":
            examples, answers, unreached = slope_examples(windows, shots)
            cuts += examples
            is_cut += answers
            missed_cuts += unreached
            continue
        examples, answers = cut_examples(windows, shots)
        cuts += examples
        is_cut += answers
        examples, answers, without_candidate = gradual_examples(windows, *_transitions(shots))
        sides += examples
        is_gradual += answers
        missed += without_candidate
    names = SLOPE_NUMBERS if method == "slope" else CUT_NUMBERS
    cut_rule = fit_rule(cuts, is_cut, names=names, missed=missed_cuts)
    gradual_rule = critical_rule = None
    if gradual and any(is_gradual):
        gradual_rule = fit_rule(sides, is_gradual, names=SIDE_NUMBERS, missed=missed)
    if critical is not None:
        critical_rule = fit_trend(curves, [label for video in critical for label in video], test=trend)
    return ShotRules(
        window=window,
        rate=rate,
        method=method,
        cut=cut_rule,
        gradual=gradual_rule,
        critical=critical_rule,
        fitted_on=fitted_on,
    )


def _transitions(shots: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]]]:
    """Hard cuts and gradual transitions ([first, last]) between labeled shots; also before the first shot."""
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
