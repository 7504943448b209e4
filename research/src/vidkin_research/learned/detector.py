"""Shot detection with a trained clip encoder: fitted rules, analysis of a video, and the detector."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike, write_text
from vidkin._base.values import check_at_least, check_choice, check_positive, read_json
from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes
from vidkin.media.frames import fit_to_square, is_before
from vidkin.media.picture_edits import resize
from vidkin.models import open_encoder, read_model_info
from vidkin.shots import open_detector
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, PlanesDetector, RgbFrame
from vidkin_research.learned.fitted_rule import FittedRule, fit_rule
from vidkin_research.learned.trend import TrendTest, critical_score, fit_trend
from vidkin_research.learned.windows import (
    CUT_NUMBERS,
    SIDE_NUMBERS,
    SLOPE_NUMBERS,
    Encode,
    GradualTransition,
    HardCut,
    ShotWindows,
    cut_examples,
    find_cuts,
    find_gradual,
    find_slope_cuts,
    gradual_examples,
    slope_examples,
)

if TYPE_CHECKING:
    from vidkin.media.frames import Fit

CutRule = Literal["extended", "slope", "default"]
"""Cut rule. ``slope`` is the published rule: a sudden change in the slope of the curve, over full windows. ``extended``
is ours: it also uses the novelty of neighboring windows, the frames themselves and both sides of a cut, computes a
curve for shots shorter than a window, and finds gradual transitions. ``default``: vidkin's default detector finds the
transitions, and the metric only decides which shots are critical."""

CUT_RULES: tuple[CutRule, ...] = get_args(CutRule)

RULES_FILE = "shots.json"

"""Name of the rules file in a model folder."""

_FORMAT = "vidkin-shot-rules-1"


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """Rules of the learned detector, fitted to labeled videos that are not used for testing.

    Attributes:
        window: Number of frames per window, at least 2; the sources use 40.
        rate: Frames per second to sample, above 0; None uses every frame.
        cut: Rule for a sudden change in the slope of the curve; None if the default detector finds cuts.
        method: How cuts are found.
        gradual: Rule for gradual transitions, where both sides differ without a sudden change; None finds only hard
            cuts.
        critical: Rule for an increasing curve, which marks critical shots; None computes no critical scores.
        fitted_on: Description of the data that the rules were fitted to.
    """

    window: int
    cut: FittedRule | None
    method: CutRule = "extended"
    rate: float | None = None
    gradual: FittedRule | None = None
    critical: FittedRule | None = None
    fitted_on: str = ""

    def __post_init__(self) -> None:
        check_at_least(2, window=self.window)
        check_choice("method", self.method, CUT_RULES)
        if (self.cut is None) is not (self.method == "default"):
            raise InvalidArgumentError(
                f"method {self.method!r} must have {'no' if self.method == 'default' else 'a'} rule for cuts"
            )
        if self.rate is not None:
            check_positive(rate=self.rate)

    def save(self, folder: PathLike) -> Path:
        """Write ``shots.json`` to a model folder and return its path."""
        document = {
            "format": _FORMAT,
            "window": self.window,
            "rate": self.rate,
            "method": self.method,
            "cut": None if self.cut is None else self.cut.as_dict(),
            "gradual": None if self.gradual is None else self.gradual.as_dict(),
            "critical": None if self.critical is None else self.critical.as_dict(),
            "fitted_on": self.fitted_on,
        }
        path = Path(folder) / RULES_FILE
        write_text(path, json.dumps(document, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: PathLike) -> ShotRules:
        """Read ``shots.json`` from a model folder.

        Raises:
            InvalidArgumentError: The file is missing or damaged.
        """
        path = Path(folder) / RULES_FILE
        try:
            document = read_json(path)
        except OSError as error:
            raise InvalidArgumentError(
                f"{path}: cannot be read ({error.strerror}), so this model cannot detect shots; "
                "train a shot detector with `vidkin train-shots`"
            ) from error
        except ValueError as error:
            raise InvalidArgumentError(f"{path}: not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise InvalidArgumentError(f"{path}: must contain rules in the format {_FORMAT!r}")
        try:
            rate = document["rate"]
            cut, gradual, critical = (
                None if document[name] is None else FittedRule.from_dict(document[name])
                for name in ("cut", "gradual", "critical")
            )
            return cls(
                window=int(document["window"]),
                rate=None if rate is None else float(rate),
                cut=cut,
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
    """Fit all rules to videos with labeled shots.

    Args:
        videos: Frame features [T, F] of each video.
        labels: Shots of each video as [start, end) frames, in order; frames between shots are gradual transitions.
        encode: Encoder, as in `find_shots`.
        window: Number of frames per window.
        rate: Frame rate to store in the rules.
        method: ``slope`` is the published rule, which only finds hard cuts; ``default`` needs no cut rule.
        gradual: Whether to also fit a rule for gradual transitions, if labels have any and the method supports them.
        critical: Whether each shot of each video is critical; None fits no rule for critical shots.
        trend: Test for an increasing curve.
        fitted_on: Description of the data, to store in the rules.

    Raises:
        InvalidArgumentError: There are no cuts, or the shots are all critical or all not critical.
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
        if method == "default":
            continue
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
    cut_rule = gradual_rule = critical_rule = None
    if method != "default":
        names = SLOPE_NUMBERS if method == "slope" else CUT_NUMBERS
        cut_rule = fit_rule(cuts, is_cut, names=names, missed=missed_cuts)
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
    """Return the hard cuts and gradual transitions ([first, last]) between labeled shots and before the first shot."""
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


# Analysis of one video: cuts, gradual transitions, shots and critical scores.


@dataclass(frozen=True, slots=True)
class ShotAnalysis:
    """Result of the learned detector for one video.

    Attributes:
        cuts: First frames of new shots after hard cuts, with confidences.
        gradual: Gradual transitions.
        stretches: [start, end) frames of the shots before, between and after transitions; a shot is empty if a
            transition is at an end of the video.
        critical: Critical score of each shot in [0, 1]; None without a rule for critical shots.
        curve: [T] distance c from each window to the first window of its shot, at the window's last frame. At a hard
            cut it is the distance of the window that contains the cut; 0 before the first full window of a shot.
    """

    cuts: tuple[tuple[int, float], ...]
    gradual: tuple[GradualTransition, ...]
    stretches: tuple[tuple[int, int], ...]
    critical: tuple[float, ...] | None
    curve: NDArray[np.float64] = field(repr=False)

    def detected_cuts(self, frames: Sequence[int], curve: Curve | None = None) -> DetectedCuts:
        """Convert to the result of a shot detector.

        Args:
            frames: [T] numbers of the frames with features in the video.
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


def find_shots(
    features: NDArray[np.float32],
    encode: Encode,
    rules: ShotRules,
    *,
    detected: Sequence[DetectedCut] = (),
) -> ShotAnalysis:
    """Find cuts, gradual transitions, shots and their critical scores from frame features [T, F].

    Args:
        features: Features of all frames in order, or of the frames at the rules' rate.
        encode: Function from clip features [B, W, F] to unit-length embeddings [B, D].
        rules: Rules fitted for this encoder.
        detected: Transitions found by the default detector, in rows of ``features``; for the method ``default``.
    """
    windows = ShotWindows(features, rules.window, encode)
    if rules.cut is None:
        cuts: Sequence[HardCut] = [HardCut(cut.frame, cut.confidence) for cut in detected if not cut.is_gradual]
        gradual = [
            GradualTransition(cut.start_frame or cut.frame, cut.end_frame or cut.frame, cut.confidence)
            for cut in detected
            if cut.is_gradual
        ]
    else:
        cuts = (find_slope_cuts if rules.method == "slope" else find_cuts)(windows, rules.cut)
        starts = [cut.frame for cut in cuts]
        gradual = [] if rules.gradual is None else find_gradual(windows, starts, rules.gradual)
    starts = [cut.frame for cut in cuts]
    # [start, end) of the shots before, between and after transitions; some can be empty.
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


# The learned detector: a trained clip encoder behind the shot detector interface.


_BATCH = 16


class ShotModel(Protocol):
    """Clip encoder of the learned detector (:class:`vidkin.models.EncoderNetwork`)."""

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute features [N, F] of square images [N, 3, S, S] with values from 0 to 1."""
        ...

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit vectors [B, D] from clip features [B, W, F]."""
        ...


class LearnedDetector:
    """Finds cuts where the slope of c(n) = ||f_1 - f_n|| changes suddenly, and critical shots where c increases.

    f_n is the embedding of window n, and f_1 that of the first window of the shot. Each frame goes through the frame
    network once, as it arrives; windows of features are embedded in batches at the end. The features take about 5 KB of
    memory per frame.

    With the method ``default``, vidkin's default detector also processes every frame and finds the transitions.

    Args:
        model: The clip encoder.
        rules: Rules fitted for this model.
        size: S, side of the model's square input images, at least 8 pixels.
        fit: How frames are made square, see `fit_to_square`; must be the same as when the rules were fitted.
        name: Name for `open_detector`.

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
        self._cutter: PlanesDetector | None = None
        if rules.method == "default":
            cutter = open_detector("default")
            assert isinstance(cutter, PlanesDetector)
            self._cutter = cutter
            self.short_side = max(size, *cutter.grid)
        self._samples: list[FramePlanes] = []
        self._waiting: list[NDArray[np.uint8]] = []
        self._features: list[NDArray[np.float32]] = []
        self._frames: list[int] = []
        self._times: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame; if the rules have a frame rate, most frames are skipped."""
        if self._cutter is not None:
            self._samples.append(_plane_samples(frame, self._cutter.grid))
            if len(self._samples) == _BATCH:
                self._push_samples()
        rate = self._rules.rate
        if rate is not None and is_before(frame.time, len(self._frames) / rate):
            return
        self._frames.append(frame.index)
        self._times.append(frame.time)
        self._waiting.append(fit_to_square(frame.image, self._size, self._fit))
        if len(self._waiting) == _BATCH:
            self._encode_waiting()

    def finish(self) -> DetectedCuts:
        """Return the cuts, the curve, and a critical score for each shot if there is a rule for it."""
        if not self._frames:
            return DetectedCuts(())
        self._encode_waiting()
        own = () if self._cutter is None else self._finish_cutter(self._cutter)
        counted = [count_cut(cut, self._frames) for cut in own]
        analysis = find_shots(np.concatenate(self._features), self._model.head, self._rules, detected=counted)
        curve = Curve(np.array(self._times), analysis.curve, "distance to the first window of the shot")
        if self._cutter is not None:
            return DetectedCuts(own, curve, analysis.critical)
        return analysis.detected_cuts(self._frames, curve)

    def _finish_cutter(self, cutter: PlanesDetector) -> tuple[DetectedCut, ...]:
        self._push_samples()
        return cutter.finish().cuts

    def _push_samples(self) -> None:
        if self._samples and self._cutter is not None:
            luma, chroma, times = (
                np.concatenate([getattr(one, name) for one in self._samples])
                for name in ("luma", "chroma", "timestamps")
            )
            self._cutter.push_planes(FramePlanes(luma, chroma, times))
            self._samples.clear()

    def _encode_waiting(self) -> None:
        if self._waiting:
            self._features.append(self._model.frame_features(network_input(np.stack(self._waiting))))
            self._waiting.clear()


def open_learned(model: PathLike) -> LearnedDetector:
    """Open the detector in a model folder with rules (``shots.json``).

    Raises:
        InvalidArgumentError: The folder does not contain rules, or its model is not a clip encoder.
        UnknownExtractorError: The folder does not contain a model.
        MissingPartError: The folder was written before models ran without torch, and torch is not installed.
    """
    config = read_model_info(model).config
    if config.kind != "clip":
        raise InvalidArgumentError(
            f"{os.fspath(model)}: the model must be of kind 'clip' to detect shots, got {config.kind!r}"
        )
    rules = ShotRules.load(model)
    network = open_encoder(model)
    return LearnedDetector(network, rules, size=config.size, fit=config.fit, name=f"learned:{os.fspath(model)}")


def count_cut(cut: DetectedCut, frames: Sequence[int]) -> DetectedCut:
    """Convert the frame numbers of a transition to rows of ``frames``: the first row at or after each number."""
    last = len(frames) - 1
    first, start, end = (
        None if frame is None else min(last, bisect_left(frames, frame))
        for frame in (cut.frame, cut.start_frame, cut.end_frame)
    )
    return replace(cut, frame=max(1, first or 0), start_frame=start, end_frame=end)


# Conversion of RGB from 0 to 255 to limited-range Y, Cb and Cr (ITU-R BT.601), as decoders return them.
_TO_PLANES = np.array([
    [65.481, 128.553, 24.966],
    [-37.797, -74.203, 112.0],
    [112.0, -93.786, -18.214],
]) / 255.0  # fmt: skip
_ZEROS = np.array([16.0, 128.0, 128.0])


def _plane_samples(frame: RgbFrame, grid: tuple[int, int]) -> FramePlanes:
    """Sample a frame like the default detector: luma [1, H, W], and chroma at half that size."""
    small = resize(frame.image, grid[1], grid[0])
    planes = np.clip(np.rint(small @ _TO_PLANES.T + _ZEROS), 0, 255).astype(np.uint8)
    chroma = planes[::2, ::2, 1:].transpose(2, 0, 1)
    return FramePlanes(planes[None, ..., 0].copy(), chroma[None].copy(), np.array([frame.time]))


def network_input(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert square images [N, S, S, 3] to a network's input: [N, 3, S, S] with values from 0 to 1."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)
