"""Evaluate a detector on the cuts and critical shots of labeled videos."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.boundaries import Boundary, DetectionScores, boundary_scores
from vidkin._base.files import PathLike
from vidkin._base.plain import as_object, field_types, read_fields, read_value
from vidkin._base.values import Result, as_json, check_not_negative
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.shots.contract import ShotDetection
from vidkin.shots.detect import detect
from vidkin.shots.labels import VideoAnnotation, annotate_shots, read_shot_annotations
from vidkin.shots.registry import open_detector

# A detected critical shot is correct if its intersection over union with a labeled one exceeds this threshold.
_MIN_IOU = 0.5

_NOTHING = DetectionScores(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Figures(Result):
    """Precision, recall, F1 and the underlying counts, as plain values.

    Attributes:
        precision, recall, f1: Metrics in [0, 1].
        right, false, missed: Numbers of true positives, false positives and false negatives.
    """

    precision: float
    recall: float
    f1: float
    right: int
    false: int
    missed: int


@dataclass(frozen=True, slots=True)
class BrokenVideo(Result):
    """A video that could not be read.

    Attributes:
        path: The file.
        cause: Cause of the failure.
    """

    path: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoScores(Result):
    """Counts for one video; the attributes are those of `DetectorEvaluation`."""

    path: str
    cuts: DetectionScores
    hard: DetectionScores
    gradual: DetectionScores
    critical: DetectionScores | None

    def to_dict(self) -> dict[str, Any]:
        """Convert the metrics to plain values."""
        return {"path": self.path, **_figures(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> VideoScores:
        """Rebuild the scores from the values of :meth:`to_dict`."""
        given = as_object(cls, values)
        return read_fields(cls, {**given, **_counts(given)})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """Return the type of each plain value by key."""
        return {**field_types(cls), **_TYPES}


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorEvaluation(Result):
    """Precision, recall and F1 of a detector, pooled over labeled videos.

    Attributes:
        detector: Name of the detector.
        tolerance: Maximum distance in frames between a detected cut and its label.
        cuts: Transitions of any kind. A detection within a labeled gradual transition is correct.
        hard: Only hard cuts and jumps.
        gradual: Only gradual transitions.
        critical: Critical shots. A detected one is correct if its intersection over union with a labeled one exceeds
            0.5. None if the detector does not score shots, or no label is critical.
        videos: Counts for each video.
        broken: Path and cause for each video that cannot be read or does not match its labels.
    """

    detector: str
    tolerance: int
    cuts: DetectionScores
    hard: DetectionScores
    gradual: DetectionScores
    critical: DetectionScores | None
    videos: tuple[VideoScores, ...]
    broken: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Convert the evaluation to plain values, as printed by ``vidkin evaluate --format json``."""
        return {
            "detector": self.detector,
            "tolerance": self.tolerance,
            **_figures(self),
            "videos": [video.to_dict() for video in self.videos],
            "broken": [as_json(BrokenVideo(path, cause)) for path, cause in self.broken],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DetectorEvaluation:
        """Rebuild the evaluation from the values of :meth:`to_dict`."""
        given = as_object(cls, values)
        broken = read_value("broken", tuple[BrokenVideo, ...], given.get("broken", ()))
        pairs = [(one.path, one.cause) for one in broken]
        return read_fields(cls, {**given, **_counts(given), "broken": pairs})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """Return the type of each plain value by key."""
        return {**field_types(cls), **_TYPES, "broken": tuple[BrokenVideo, ...]}


@check_arguments
def evaluate_detector(
    detector: str,
    labels: PathLike | Sequence[VideoAnnotation],
    *,
    tolerance: int = 2,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> DetectorEvaluation:
    """Evaluate a detector on labeled videos.

    Args:
        detector: A name for `open_detector`, or the folder of a trained detector.
        labels: Videos with their shots, or a JSON file with such labels.
        tolerance: Maximum distance in frames between a detected cut and its label.
        on_progress: Callback that receives (videos done, total number of videos, name of the next video).

    Raises:
        InvalidArgumentError: There is no detector with this name, or the labels cannot be read.
    """
    check_not_negative(tolerance=tolerance)
    annotations = read_shot_annotations(labels) if isinstance(labels, str | os.PathLike) else list(labels)
    if not annotations:
        raise InvalidArgumentError("labels must contain at least one video, got none")
    open_detector(detector)  # reports an unknown name before any video is read
    has_critical = any(shot.critical is not None for one in annotations for shot in one.shots)
    scores, broken = [], []
    for done, truth in enumerate(annotations):
        path = os.fspath(truth.video)
        if on_progress is not None:
            on_progress(done, len(annotations), truth.video.name)
        try:
            detection = detect(path, detector)
        except MediaError as error:
            broken.append((path, error.cause))
            continue
        frames = len(detection.frame_times)
        if truth.shots and truth.shots[-1].end > frames:
            broken.append((path, f"has {frames} frames, but is labeled up to frame {truth.shots[-1].end}"))
            continue
        scores.append(_score(detection, truth, tolerance, has_critical=has_critical))
    judged = [one.critical for one in scores if one.critical is not None]
    return DetectorEvaluation(
        detector=detector,
        tolerance=tolerance,
        cuts=_pool(one.cuts for one in scores),
        hard=_pool(one.hard for one in scores),
        gradual=_pool(one.gradual for one in scores),
        critical=_pool(judged) if judged else None,
        videos=tuple(scores),
        broken=tuple(broken),
    )


def _score(detection: ShotDetection, truth: VideoAnnotation, tolerance: int, *, has_critical: bool) -> VideoScores:
    predicted = annotate_shots(detection)
    # If only part of a video is labeled, ignore detections outside that part.
    first, last = (truth.shots[0].start, truth.shots[-1].end) if truth.shots else (0, 0)
    inside = [cut for cut in predicted.cuts if first < _frames(cut)[0] and _frames(cut)[1] < last]

    def count(*, gradual: bool | None) -> DetectionScores:
        sides: list[list[Boundary]] = [
            [cut for cut in cuts if gradual is None or isinstance(cut, tuple) is gradual]
            for cuts in (inside, truth.cuts)
        ]
        return boundary_scores(*sides, tolerance=tolerance)

    critical = None
    if has_critical and any(shot.critical is not None for shot in detection.shots):
        labeled = [shot for shot in truth.shots if shot.critical is not None]
        hits = [
            any(_overlap(shot.start, shot.end, other.start, other.end) > _MIN_IOU for other in labeled)
            for shot in predicted.shots
            if shot.critical is not None and shot.start < last and shot.end > first
        ]
        # A shot can match only one other, because the shots of a video do not overlap.
        critical = DetectionScores(sum(hits), len(hits) - sum(hits), len(labeled) - sum(hits))
    return VideoScores(
        path=detection.path,
        cuts=count(gradual=None),
        hard=count(gradual=False),
        gradual=count(gradual=True),
        critical=critical,
    )


def _frames(cut: int | tuple[int, int]) -> tuple[int, int]:
    return cut if isinstance(cut, tuple) else (cut, cut)


def _overlap(start: int, end: int, first: int, last: int) -> float:
    return (min(end, last) - max(start, first)) / (max(end, last) - min(start, first))


def _pool(parts: Iterable[DetectionScores]) -> DetectionScores:
    return sum(parts, start=_NOTHING)


# Types of the scores in plain values, by key.
_TYPES: Mapping[str, Any] = {"cuts": Figures, "hard": Figures, "gradual": Figures, "critical": Figures | None}


def _figures(scores: VideoScores | DetectorEvaluation) -> dict[str, Any]:
    return {
        name: None
        if one is None
        else Figures(
            one.precision, one.recall, one.f1, one.true_positives, one.false_positives, one.false_negatives
        ).to_dict()
        for name in _TYPES
        for one in (getattr(scores, name),)
    }


def _counts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the counts as fields of `DetectionScores`."""
    counts: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        figures = read_value(name, kind, values.get(name))
        if figures is not None:
            names = ("true_positives", "false_positives", "false_negatives")
            counts[name] = dict(zip(names, (figures.right, figures.false, figures.missed), strict=True))
    return counts
