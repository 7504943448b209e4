"""Detections of several videos against their labels: pooled precision, recall and F1."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import Boundary, BoundaryRule, DetectionScores, boundary_scores
from vidkin.shots.contract import DetectedCut
from vidkin.shots.shot import Cut

__all__ = ["BoundaryLabels", "ShotScores", "boundaries_of_cuts", "evaluate_cuts", "read_boundary_labels"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class BoundaryLabels:
    """Where a video is cut.

    Attributes:
        hard: First frames of new shots.
        gradual: First and last frames of gradual transitions.
    """

    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...] = ()

    @property
    def boundaries(self) -> list[Boundary]:
        """All of them, as measures take them."""
        return [*self.hard, *((float(first), float(last)) for first, last in self.gradual)]


@dataclass(frozen=True, slots=True)
class ShotScores:
    """Scores over videos.

    Attributes:
        every: Hard cuts and gradual transitions together: the main figure.
        hard: Reported hard cuts against labelled hard cuts; one reported inside a labelled transition counts as
            neither right nor wrong.
        gradual_found: Labelled gradual transitions that anything reported falls into.
        gradual_total: Labelled gradual transitions.
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
    found: Iterable[tuple[Sequence[Cut | DetectedCut], BoundaryLabels]],
    *,
    tolerance: float = 2,
    rule: BoundaryRule = "nearest",
) -> ShotScores:
    """Scores of cuts found in several videos, pooled.

    Args:
        found: Of each video the cuts and the labels.
        tolerance: Frames by which a match may be off.
        rule: See :func:`vidkin.metric.measures.boundary_scores`.
    """
    nothing = DetectionScores(0, 0, 0)
    total = ShotScores(nothing, nothing, 0, 0)
    for cuts, labels in found:
        total += _scores(cuts, labels, tolerance, rule)
    return total


def boundaries_of_cuts(cuts: Iterable[Cut | DetectedCut]) -> list[Boundary]:
    """As measures take them: a frame, or the first and last frame of a gradual transition."""
    return [
        cut.frame
        if cut.kind == "hard" or cut.start_frame is None or cut.end_frame is None
        else (float(cut.start_frame), float(cut.end_frame))
        for cut in cuts
    ]


def read_boundary_labels(path: PathLike) -> dict[str, BoundaryLabels]:
    """Labels by name of video from JSON: ``{"videos": {name: {"hard": [..], "gradual": [{"start", "end"}, ..]}}}``.

    Raises:
        InvalidArgumentError: The file is not like that.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return {name: _labels(entry) for name, entry in content["videos"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)} does not hold labels of cuts ({error!r}); wanted is "
            '{"videos": {name: {"hard": [frame, ...], "gradual": [{"start": frame, "end": frame}, ...]}}}'
        ) from error


def _labels(entry: Mapping[str, Any]) -> BoundaryLabels:
    gradual = tuple((int(part["start"]), int(part["end"])) for part in entry.get("gradual", ()))
    return BoundaryLabels(tuple(int(frame) for frame in entry["hard"]), gradual)


def _scores(
    cuts: Sequence[Cut | DetectedCut], labels: BoundaryLabels, tolerance: float, rule: BoundaryRule
) -> ShotScores:
    reported = boundaries_of_cuts(cuts)
    every = boundary_scores(reported, labels.boundaries, tolerance=tolerance, rule=rule)
    outside = [
        cut.frame
        for cut in cuts
        if cut.kind == "hard"
        and not any(first - tolerance <= cut.frame <= last + tolerance for first, last in labels.gradual)
    ]
    gradual = sum(
        any(_touches(boundary, first - tolerance, last + tolerance) for boundary in reported)
        for first, last in labels.gradual
    )
    hard = boundary_scores(outside, list(labels.hard), tolerance=tolerance, rule=rule)
    return ShotScores(every, hard, gradual, len(labels.gradual))


def _touches(boundary: Boundary, first: float, last: float) -> bool:
    start, end = boundary if isinstance(boundary, tuple) else (boundary, boundary)
    return start <= last and end >= first
