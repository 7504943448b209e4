"""Score videos whose views have one vector per frame: the verifier judges the lines in their map."""

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
    """Scores how certain it is that two videos contain the same footage, and finds the segments.

    The views of both videos are compared, and the highest score of the verifier counts. The segments come from the
    matching pair of views with the most matching frames, because crops of a query are described in few of its frames.
    The baseline of the features is the level of unrelated frames, see :func:`vidkin.match.levels`.

    Attributes:
        verifier: Judges a comparison.
    """

    verifier: Verifier

    name: ClassVar[str] = "copies"
    needs_background: ClassVar[bool] = True
    has_segments: ClassVar[bool] = True

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Scores, segments, and maps of the whole frames; see :class:`vidkin.similarity.Scorer`."""
        views, results = query.once(_views_of, partial(_views_of, query)), []
        for target in targets:
            check_wanted()
            results.append(self._score(views, target.once(_views_of, partial(_views_of, target))))
        return results

    def _score(self, query: Sequence[_Shown], target: Sequence[_Shown]) -> PairScore:
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
        # Identical frames get a score of 1, which a verifier never reaches.
        score = 1.0 if np.array_equal(first.vectors, second.vectors) else scores[best]
        return PairScore(score, _segments(measured, *sides), whole)


def _evidence_in_frames(measured: Measured, query: Sequenced, target: Sequenced) -> float:
    """Evidence of the strongest line, in frames that match perfectly."""
    return measured.lines[0].evidence / max(query.period, target.period)


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """The frames of one view, and their times."""

    frames: Sequenced
    clock: Clock


def _views_of(features: FrameFeatures) -> list[_Shown]:
    """The frames of each view that is described in at least one frame, the whole frames first."""
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
        views.append(_Shown(frames, Clock(times, frames.period, features.end)))
    return views


def _segments(measured: Measured, query: _Shown, target: _Shown) -> tuple[Segment, ...]:
    """The lines as segments of both videos, each in the pose found from its frames."""
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
