"""Compare the cuts detected in several videos with their labels: pooled precision, recall and F1."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import Boundary, BoundaryRule, DetectionScores, boundary_scores
from vidkin.shots.contract import DetectedCut
from vidkin.shots.shot import Cut

__all__ = ["BoundaryLabels", "ShotScores", "cut_boundaries", "evaluate_cuts", "read_boundary_labels"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class BoundaryLabels:
    """The labeled cuts and transitions of a video.

    Attributes:
        hard: First frames of new shots.
        gradual: First and last frames of gradual transitions.
    """

    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...] = ()

    @property
    def boundaries(self) -> list[Boundary]:
        """Hard cuts and gradual transitions, as measures take them."""
        return [*self.hard, *((float(first), float(last)) for first, last in self.gradual)]


@dataclass(frozen=True, slots=True)
class ShotScores:
    """Scores over videos.

    Attributes:
        every: Hard cuts and gradual transitions together: the main figure.
        hard: Detected hard cuts against labeled hard cuts; one inside a labeled transition counts as neither right nor
            wrong.
        gradual_found: Labeled gradual transitions touched by any detected cut.
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
    """Score the cuts detected in several videos, pooled.

    Args:
        videos: For each video its detected cuts and its labels.
        tolerance: Frames by which a match can be off.
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
    """Cuts as measures take them: a frame, or the first and last frame of a gradual transition."""
    return [
        (float(cut.start_frame), float(cut.end_frame))
        if cut.is_gradual and cut.start_frame is not None and cut.end_frame is not None
        else cut.frame
        for cut in cuts
    ]


def read_boundary_labels(path: PathLike) -> dict[str, BoundaryLabels]:
    """Read labels by video name from JSON: ``{"videos": {name: {"hard": [..], "gradual": [{"start", "end"}, ..]}}}``.

    Raises:
        InvalidArgumentError: The file cannot be read or has another format.
    """
    try:
        videos = parse_json(Path(path).read_text(encoding="utf-8"))["videos"]
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
