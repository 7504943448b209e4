"""Evaluate detected cuts and critical shots against labels, pooled over videos."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from vidkin._base.files import PathLike
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import (
    Boundary,
    BoundaryRule,
    DetectionScores,
    average_precision,
    boundary_scores,
    clip_scores,
    temporal_average_precision,
)
from vidkin.shots.contract import Cut, DetectedCut
from vidkin_research.learned.fitted_rule import FittedRule
from vidkin_research.learned.trend import critical_score, rise_moment
from vidkin_research.learned.windows import ShotWindows


@dataclass(frozen=True, slots=True)
class BoundaryLabels:
    """The labeled cuts and transitions of a video.

    Attributes:
        hard: First frames of new shots.
        gradual: First and last frame of each gradual transition.
    """

    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...] = ()

    @property
    def boundaries(self) -> list[Boundary]:
        """Hard cuts and gradual transitions, in the format that measures take."""
        return [*self.hard, *((float(first), float(last)) for first, last in self.gradual)]


@dataclass(frozen=True, slots=True)
class ShotScores:
    """Scores pooled over videos.

    Attributes:
        every: Hard cuts and gradual transitions together; the main score.
        hard: Detected hard cuts against labeled hard cuts; a cut inside a labeled transition counts as neither correct
            nor wrong.
        gradual_found: Number of labeled gradual transitions that overlap any detected cut.
        gradual_total: Number of labeled gradual transitions.
    """

    every: DetectionScores
    hard: DetectionScores
    gradual_found: int
    gradual_total: int

    def __add__(self, other: ShotScores) -> ShotScores:
        return ShotScores(
            self.every + other.every,
            self.hard + other.hard,
            self.gradual_found + other.gradual_found,
            self.gradual_total + other.gradual_total,
        )


def evaluate_cuts(
    videos: Iterable[tuple[Sequence[Cut | DetectedCut], BoundaryLabels]],
    *,
    tolerance: float = 2,
    rule: BoundaryRule = "nearest",
) -> ShotScores:
    """Score the cuts detected in several videos, pooled over the videos.

    Args:
        videos: Detected cuts and labels of each video.
        tolerance: Maximum distance of a match in frames.
        rule: Matching rule, see :func:`vidkin.metric.measures.boundary_scores`.
    """
    nothing = DetectionScores(0, 0, 0)
    total = ShotScores(nothing, nothing, 0, 0)
    for cuts, labels in videos:
        detected = cut_boundaries(cuts)
        hard: list[Boundary] = []
        spans = [(first - tolerance, last + tolerance) for first, last in labels.gradual]
        for cut in cuts:
            if not cut.is_gradual and not any(first <= cut.frame <= last for first, last in spans):
                hard.append(cut.frame)
        touched = 0
        for first, last in spans:
            ends = (one if isinstance(one, tuple) else (one, one) for one in detected)
            touched += any(start <= last and end >= first for start, end in ends)
        total += ShotScores(
            every=boundary_scores(detected, labels.boundaries, tolerance=tolerance, rule=rule),
            hard=boundary_scores(hard, list(labels.hard), tolerance=tolerance, rule=rule),
            gradual_found=touched,
            gradual_total=len(spans),
        )
    return total


def cut_boundaries(cuts: Iterable[Cut | DetectedCut]) -> list[Boundary]:
    """Convert cuts to the format that measures take: a frame, or the first and last frame of a gradual transition."""
    return [
        (float(cut.start_frame), float(cut.end_frame))
        if cut.is_gradual and cut.start_frame is not None and cut.end_frame is not None
        else cut.frame
        for cut in cuts
    ]


def read_boundary_labels(path: PathLike) -> dict[str, BoundaryLabels]:
    """Read labels by video name from JSON: ``{"videos": {name: {"hard": [..], "gradual": [{"start", "end"}, ..]}}}``.

    Raises:
        InvalidArgumentError: The file cannot be read or has a different format.
    """
    try:
        videos = read_json(path)["videos"]
        return {
            name: BoundaryLabels(
                tuple(int(frame) for frame in entry["hard"]),
                tuple((int(part["start"]), int(part["end"])) for part in entry.get("gradual", ())),
            )
            for name, entry in videos.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)}: not a file of cuts ({error!r}); it must have the form "
            '{"videos": {name: {"hard": [frame, ...], "gradual": [{"start": frame, "end": frame}, ...]}}}'
        ) from error


# Scores for detecting critical clips and their moments, over several videos.


# A detected shot matches a labeled one if their intersection over union exceeds this.
_SAME_SHOT = 0.5


@dataclass(frozen=True, slots=True)
class JudgedShot:
    """A shot as classified by a detector.

    Attributes:
        start: First frame of the shot.
        end: First frame after the shot.
        score: Confidence that it is critical, in [0, 1]; critical from 0.5.
        moment: Time in seconds at which its event starts.
    """

    start: int
    end: int
    score: float
    moment: float


@dataclass(frozen=True, slots=True)
class TrueShot:
    """A labeled shot: frames [start, end), and the time in seconds at which its event starts; None if it has no
    event."""

    start: int
    end: int
    moment: float | None


@dataclass(frozen=True, slots=True)
class CriticalScores:
    """Scores over all shots of all videos.

    Attributes:
        clips: Precision, recall and F1 of the binary decision per shot.
        average_precision: Average precision of the shots ranked by score, in [0, 1]; ties are averaged over all orders.
        spotting: Average precision of the moments for each tolerance (full window width in seconds).
    """

    clips: DetectionScores
    average_precision: float
    spotting: Mapping[float, float]


def judge_shots(
    windows: ShotWindows, stretches: Sequence[tuple[int, int]], rule: FittedRule, *, rate: float
) -> list[JudgedShot]:
    """Classify shots [start, end) of a video by the trends of their curves.

    The moment of an event is the time of the last frame of the window at which the curve leaves its calm part.

    Args:
        windows: Windows of the video.
        stretches: Shots of the video.
        rule: Rule for what counts as increasing.
        rate: Frames per second.
    """
    judged = []
    for start, end in stretches:
        curve = windows.curve(start, end)
        frame = min(start + rise_moment(curve) + windows.window - 1, max(start, end - 1))
        judged.append(JudgedShot(start, end, critical_score(curve, rule), frame / rate))
    return judged


def score_critical(
    judged: Sequence[Sequence[JudgedShot]],
    truth: Sequence[Sequence[TrueShot]],
    *,
    tolerances: Sequence[float] = (1.0, 2.0, 4.0),
) -> CriticalScores:
    """Score the classification of the labeled shots, given the true cuts.

    Raises:
        InvalidArgumentError: The classified shots are not the labeled ones.
    """
    for number, (shots, labels) in enumerate(zip(judged, truth, strict=True)):
        if [(shot.start, shot.end) for shot in shots] != [(shot.start, shot.end) for shot in labels]:
            raise InvalidArgumentError(
                f"shots judged in video {number} must be the labeled ones; use score_detected_critical for others"
            )
    scores = [shot.score for video in judged for shot in video]
    critical = [shot.moment is not None for video in truth for shot in video]
    ranked = average_precision(torch.tensor(scores), torch.tensor(critical, dtype=torch.int64), ties="expected")
    return CriticalScores(
        clip_scores([score >= 0.5 for score in scores], critical),
        float(ranked),
        _spotting(judged, truth, tolerances),
    )


def score_detected_critical(
    judged: Sequence[Sequence[JudgedShot]],
    truth: Sequence[Sequence[TrueShot]],
    *,
    tolerances: Sequence[float] = (1.0, 2.0, 4.0),
) -> CriticalScores:
    """Score shots between detected cuts.

    A critical shot is correct if its intersection over union with a critical labeled shot is more than half. Average
    precision is computed over these matches in descending order of score.
    """
    ranked: list[tuple[float, bool]] = []
    total = 0
    for shots, labels in zip(judged, truth, strict=True):
        critical = [shot for shot in labels if shot.moment is not None]
        total += len(critical)
        for shot in shots:
            # Shots of a video do not overlap, so a shot cannot match two others.
            right = any(
                (min(shot.end, other.end) - max(shot.start, other.start))
                / (max(shot.end, other.end) - min(shot.start, other.start))
                > _SAME_SHOT
                for other in critical
            )
            ranked.append((shot.score, right))
    ranked.sort(key=lambda pair: -pair[0])
    right_so_far, area = 0, 0.0
    for rank, (_, right) in enumerate(ranked, start=1):
        right_so_far += right
        area += right_so_far / rank if right else 0.0
    yes = [right for score, right in ranked if score >= 0.5]
    return CriticalScores(
        DetectionScores(sum(yes), len(yes) - sum(yes), total - sum(yes)),
        area / total if total else float("nan"),
        _spotting(judged, truth, tolerances),
    )


def _spotting(
    judged: Sequence[Sequence[JudgedShot]], truth: Sequence[Sequence[TrueShot]], tolerances: Sequence[float]
) -> dict[float, float]:
    moments = [(number, shot.moment, shot.score) for number, video in enumerate(judged) for shot in video]
    events = [(number, shot.moment) for number, video in enumerate(truth) for shot in video if shot.moment is not None]
    return {
        tolerance: temporal_average_precision(
            torch.tensor([moment for _, moment, _ in moments]),
            torch.tensor([score for _, _, score in moments]),
            torch.tensor([moment for _, moment in events]),
            tolerance=tolerance,
            videos=torch.tensor([number for number, _, _ in moments]),
            truth_videos=torch.tensor([number for number, _ in events]),
        )
        for tolerance in tolerances
    }
