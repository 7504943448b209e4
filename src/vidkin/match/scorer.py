"""Copy scorer for features with one vector per frame and view: a verifier scores the lines in the similarity map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from vidkin._base.arguments import check_constructor
from vidkin._base.stopping import check_wanted
from vidkin.match.comparison import compare_views
from vidkin.match.maps import frame_map
from vidkin.match.measure import Measured, Sequenced
from vidkin.match.pose import PLAIN, find_pose
from vidkin.match.segments import Clock, segment_of
from vidkin.match.verify import Verifier
from vidkin.similarity.contracts import WHOLE, FrameFeatures, PairScore, Segment
from vidkin.similarity.scale import SURE, UNRELATED

__all__ = ["VerifiedScorer"]


@check_constructor
@dataclass(frozen=True, slots=True)
class VerifiedScorer:
    """Scores how certain it is that two videos share footage, and finds the shared segments.

    The score is the verifier's highest score over all compared view pairs. The segments come from the matching view
    pair with the most evidence in frames, because crops of a query have features in only a few of its frames.
    The baselines in the features are the levels computed by :func:`vidkin.match.levels`.

    Attributes:
        verifier: Turns a comparison into a score.
    """

    verifier: Verifier

    name: ClassVar[str] = "copies"
    needs_background: ClassVar[bool] = True
    has_segments: ClassVar[bool] = True

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Scores, segments, and whole-frame maps [Tq, Tt]; see :class:`vidkin.similarity.Scorer`."""
        views, results = query.once(_views_of, partial(_views_of, query)), []
        for target in targets:
            check_wanted()
            results.append(self._score(views, target.once(_views_of, partial(_views_of, target))))
        return results

    def _score(self, query: Sequence[_ViewFrames], target: Sequence[_ViewFrames]) -> PairScore:
        first, second = query[0].frames, target[0].frames
        whole = np.clip(frame_map(first.vectors, second.vectors, first.levels, second.levels), 0.0, 1.0)
        compared, scores = [], []
        for comparison in compare_views([view.frames for view in query], [view.frames for view in target]):
            compared.append(comparison)
            scores.append(self.verifier.score(comparison[0]))
            # If the whole frames match, crops and boxes add nothing.
            if scores[-1] >= SURE and comparison[1] is first and comparison[2] is second:
                break
        if not compared:
            return PairScore(0.0, (), whole)
        best = int(np.argmax(scores))
        matching = [at for at, (measured, _, _) in enumerate(compared) if measured.lines and scores[at] >= UNRELATED]
        measured, one, other = compared[max(matching, key=lambda at: _evidence_in_frames(*compared[at]), default=best)]
        sides = (next(view for view in views if view.frames is side) for views, side in ((query, one), (target, other)))
        # The verifier's output never reaches 1, so identical videos are given 1 here.
        score = 1.0 if np.array_equal(first.vectors, second.vectors) else scores[best]
        return PairScore(score, _segments(measured, *sides), whole)


def _evidence_in_frames(measured: Measured, query: Sequenced, target: Sequenced) -> float:
    """Evidence of the strongest line as an equivalent number of perfectly matching frames."""
    return measured.lines[0].evidence / max(query.period, target.period)


@dataclass(frozen=True, slots=True, eq=False)
class _ViewFrames:
    """The frames of one view and their clock."""

    frames: Sequenced
    clock: Clock


def _views_of(features: FrameFeatures) -> list[_ViewFrames]:
    """Views with features in at least one frame; the whole frames come first and are always included."""
    vectors, views = features.vectors, []
    for view in range(vectors.shape[1]):
        rows = np.flatnonzero(vectors[:, view].any(axis=1)) if view else np.arange(len(features))
        if not len(rows) and view:
            continue
        times = features.timestamps[rows].astype(np.float64, copy=False)
        frames = Sequenced(
            vectors[rows, view].astype(np.float32, copy=False),
            times,
            features.baselines[rows, view].astype(np.float32, copy=False),
            features.information[rows].astype(np.float32, copy=False),
            features.box(view, rows) if view and features.boxes is not None else WHOLE,
            None if features.thumbnails is None else features.thumbnails[rows, view],
        )
        views.append(_ViewFrames(frames, Clock(times, frames.period, features.end)))
    return views


def _segments(measured: Measured, query: _ViewFrames, target: _ViewFrames) -> tuple[Segment, ...]:
    """Convert the lines of a comparison to segments, each with the pose found from its frames."""
    segments = []
    for line, similarity in zip(measured.lines, measured.similarities, strict=True):
        inside = line.columns >= 0
        pose = PLAIN
        ones, others = query.frames.thumbnails, target.frames.thumbnails
        if ones is not None and others is not None:
            pose = find_pose(ones[line.rows[inside]], others[line.columns[inside]])
        boxes = {"query_box": query.frames.box, "target_box": target.frames.box}
        segments.append(segment_of(line, similarity, query.clock, target.clock, **boxes, pose=pose))
    return tuple(segments)
