"""The score of two videos whose views have one vector a frame: their lines, judged by the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from vidkin._base.arguments import check_constructor
from vidkin._base.stopping import check_wanted
from vidkin.errors import InvalidArgumentError
from vidkin.match.compare import MIN_SIMILARITY, compare
from vidkin.match.frame_map import frame_map
from vidkin.match.measure import Measured, Sequenced
from vidkin.match.pose import WHOLE
from vidkin.match.verify import Verifier
from vidkin.similarity import FrameFeatures, PairScore, Segment

__all__ = ["VerifiedScorer"]


@check_constructor
@dataclass(frozen=True, slots=True)
class VerifiedScorer:
    """Scores how certain it is that two videos contain the same footage, and finds where.

    Each view of one video is compared with each view of the other one; the pair of views with the highest score of the
    verifier counts. The baseline of the features is the level of unrelated frames, see :func:`vidkin.match.levels`.

    Attributes:
        verifier: Judges a comparison.
    """

    verifier: Verifier

    name: ClassVar[str] = "verified"
    needs_background: ClassVar[bool] = True
    has_segments: ClassVar[bool] = True

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """Scores, segments, and maps of the whole frames; see :class:`vidkin.similarity.Scorer`.

        Raises:
            InvalidArgumentError: The features have more than one vector a view.
        """
        views, results = _views(query), []
        for target in targets:
            check_wanted()
            known = target.once(_views, partial(_views, target))
            results.append(self._score(views, known, mirrored))
        return results

    def _score(self, query: Sequence[Sequenced], target: Sequence[Sequenced], mirrored: bool) -> PairScore:
        best: tuple[float, Measured, Sequenced, Sequenced] | None = None
        whole = np.zeros((len(query[0]), len(target[0])), np.float32)
        for one in query:
            for other in target:
                similarity = frame_map(one.vectors, other.vectors, one.levels, other.levels)
                if one is query[0] and other is target[0]:
                    whole = np.clip(similarity, 0.0, 1.0)
                if not similarity.size or similarity.max() <= MIN_SIMILARITY:
                    continue
                measured = compare(one, other)
                score = self.verifier.score(measured)
                if best is None or score > best[0]:
                    best = score, measured, one, other
        if best is None:
            return PairScore(0.0, (), whole)
        score, measured, one, other = best
        return PairScore(score, _segments(measured, one, other, mirrored), whole)


def _views(features: FrameFeatures) -> list[Sequenced]:
    """The frames of each view that is described in at least one of them, the whole frames first."""
    if features.values.shape[2] != 1:
        raise InvalidArgumentError(f"features must have one vector a view, got {features.values.shape[2]}")
    values, views = features.values[:, :, 0], []
    for view in range(values.shape[1]):
        rows = np.flatnonzero(values[:, view].any(axis=1)) if view else np.arange(len(features))
        if len(rows) or not view:
            views.append(
                Sequenced(
                    values[rows, view].astype(np.float32, copy=False),
                    features.timestamps[rows].astype(np.float64, copy=False),
                    features.baselines[rows, view].astype(np.float32, copy=False),
                    features.information[rows].astype(np.float32, copy=False),
                    features.box(view, rows) if view else WHOLE,
                )
            )
    return views


def _segments(measured: Measured, query: Sequenced, target: Sequenced, mirrored: bool) -> tuple[Segment, ...]:
    """The lines that run forward, as times; a frame stays until the next one."""
    return tuple(
        Segment(
            query_start=float(query.times[rows[0]]),
            query_end=float(query.times[rows[-1]]) + query.period,
            target_start=float(target.times[columns.min()]),
            target_end=float(target.times[columns.max()]) + target.period,
            score=float(np.clip(similarity, 0.0, 1.0)),
            speed=line.speed,
            mirrored=mirrored,
            query_box=query.box,
            target_box=target.box,
        )
        for line, similarity in zip(measured.lines, measured.similarities, strict=True)
        for rows, columns in [(line.rows[line.columns >= 0], line.columns[line.columns >= 0])]
        if line.speed > 0
    )
