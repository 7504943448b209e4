"""Evaluate how well a detector finds cuts and critical shots of labeled videos."""

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

# A detected critical shot counts as right if its intersection over union with a labeled one is above this.
_MIN_IOU = 0.5

_NOTHING = DetectionScores(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Figures(Result):
    """Precision, recall and F1 with their counts, as plain values.

    Attributes:
        precision, recall, f1: Shares in [0, 1].
        right, false, missed: Numbers of detections.
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
        cause: What is wrong with it.
    """

    path: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoScores(Result):
    """Counts of one video, as in `DetectorEvaluation`."""

    path: str
    cuts: DetectionScores
    hard: DetectionScores
    gradual: DetectionScores
    critical: DetectionScores | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {"path": self.path, **_figures(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> VideoScores:
        """Rebuild the scores from the values of :meth:`to_dict`."""
        given = as_object(cls, values)
        return read_fields(cls, {**given, **_counts(given)})

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """The type of each plain value by its key."""
        return {**field_types(cls), **_TYPES}


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorEvaluation(Result):
    """Precision, recall and F1 of a detector, pooled over labeled videos.

    Attributes:
        detector: Name of the detector.
        tolerance: Maximum distance in frames of a correct cut.
        cuts: Transitions of any kind. A detection within a labeled gradual transition is right.
        hard: Hard cuts and jumps alone.
        gradual: Gradual transitions alone.
        critical: Critical shots: a detected one is right if its intersection over union with a labeled one is above one
            half. None if the detector does not judge shots, or no label is critical.
        videos: Counts of each video.
        broken: Path and cause of the videos that cannot be read or do not fit their labels.
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
        """The figures as ``vidkin evaluate --format json`` prints them."""
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
        """The type of each plain value by its key."""
        return {**field_types(cls), **_TYPES, "broken": tuple[BrokenVideo, ...]}


@check_arguments
def evaluate_detector(
    detector: str,
    labels: PathLike | Sequence[VideoAnnotation],
    *,
    tolerance: int = 2,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> DetectorEvaluation:
    """Measure a detector on labeled videos.

    Args:
        detector: A name for `open_detector`, or the folder of a trained detector.
        labels: Videos with their shots, or a JSON file of them.
        tolerance: Maximum distance in frames of a correct cut.
        on_progress: Callback that receives (videos done, number of videos, name of the next one).

    Raises:
        InvalidArgumentError: No detector has this name, or the labels cannot be read.
    """
    check_not_negative(tolerance=tolerance)
    annotations = read_shot_annotations(labels) if isinstance(labels, str | os.PathLike) else list(labels)
    if not annotations:
        raise InvalidArgumentError("labels must contain at least one video, got none")
    open_detector(detector)  # reports a wrong name before any video is read
    has_critical = any(shot.critical is not None for one in annotations for shot in one.shots)
    scores, broken = [], []
    for done, truth in enumerate(annotations):
        path = os.fspath(truth.video)
        if on_progress is not None:
            on_progress(done, len(annotations), truth.video.name)
        try:
            found = detect(path, detector)
        except MediaError as error:
            broken.append((path, error.cause))
            continue
        frames = len(found.frame_times)
        if truth.shots and truth.shots[-1].end > frames:
            broken.append((path, f"has {frames} frames, but is labeled up to frame {truth.shots[-1].end}"))
            continue
        scores.append(_score(found, truth, tolerance, has_critical=has_critical))
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


def _score(found: ShotDetection, truth: VideoAnnotation, tolerance: int, *, has_critical: bool) -> VideoScores:
    guess = annotate_shots(found)
    # If only part of a video is labeled, detections outside of it do not count.
    first, last = (truth.shots[0].start, truth.shots[-1].end) if truth.shots else (0, 0)
    inside = [cut for cut in guess.cuts if first < _frames(cut)[0] and _frames(cut)[1] < last]

    def count(*, gradual: bool | None) -> DetectionScores:
        sides: list[list[Boundary]] = [
            [cut for cut in cuts if gradual is None or isinstance(cut, tuple) is gradual]
            for cuts in (inside, truth.cuts)
        ]
        return boundary_scores(*sides, tolerance=tolerance)

    critical = None
    if has_critical and any(shot.critical is not None for shot in found.shots):
        wanted = [shot for shot in truth.shots if shot.critical is not None]
        hits = [
            any(_overlap(shot.start, shot.end, other.start, other.end) > _MIN_IOU for other in wanted)
            for shot in guess.shots
            if shot.critical is not None and shot.start < last and shot.end > first
        ]
        # Shots of a video do not overlap, so none can exceed one half with two others.
        critical = DetectionScores(sum(hits), len(hits) - sum(hits), len(wanted) - sum(hits))
    return VideoScores(
        path=found.path,
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


# Types of the scores by key in plain values.
_TYPES: Mapping[str, Any] = {"cuts": Figures, "hard": Figures, "gradual": Figures, "critical": Figures | None}


def _figures(scores: VideoScores | DetectorEvaluation) -> dict[str, Any]:
    figures = {name: getattr(scores, name) for name in _TYPES}
    return {
        name: None
        if one is None
        else Figures(
            one.precision, one.recall, one.f1, one.true_positives, one.false_positives, one.false_negatives
        ).to_dict()
        for name, one in figures.items()
    }


def _counts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the counts of figures as fields of `DetectionScores`."""
    counts: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        figures = read_value(name, kind, values.get(name))
        if figures is not None:
            names = ("true_positives", "false_positives", "false_negatives")
            counts[name] = dict(zip(names, (figures.right, figures.false, figures.missed), strict=True))
    return counts
