"""From two videos' descriptors to one number that means the same for every pair, and to segments.

Shapes: Tq, Tt frames of query and target; P pairs of views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.similarity.alignment import align
from vidkin.similarity.evidence import (
    ROUNDING,
    Evidence,
    PairMaps,
    ScoreSettings,
    compare_changes,
    find_news,
    match_frames,
    pair_maps,
    split_by_changes,
    stretch_score,
)
from vidkin.similarity.frame_features import WHOLE, Box, FrameFeatures, Segment
from vidkin.similarity.scorer import UNRELATED, PairScore

# Ratio of periods above which the coarser side leads the alignment.
_DENSER = 1.5

# Pairs of views aligned in addition to the pair of whole pictures.
_PARTS_ALIGNED = 3

# Least seconds of similarity above the threshold for a pair of views to be examined.
_LEAST_PROMISE = 0.05

# How many times as promising as its best place a moving window must be.
_MOVING = 1.25

# How much more a part of a picture must score than the whole.
_PART_MARGIN = 0.02

# One view of query and target (None for the whole picture), and their map [Tq, Tt].
_ViewPair = tuple[FrameFeatures | None, FrameFeatures | None, NDArray[np.float32]]


class _ComparedVideo(NamedTuple):
    """One of two videos, with what every pair of views needs.

    Attributes:
        features: Features in all views.
        whole: Features of the whole picture only.
        described: [T] bool, frames in which parts of the picture were described; elsewhere nothing is known about
            parts.
        frames_a_part: Number of frames per frame with described parts.
    """

    features: FrameFeatures
    whole: FrameFeatures
    described: NDArray[np.bool_]
    frames_a_part: float

    @classmethod
    def of(cls, features: FrameFeatures) -> _ComparedVideo:
        described = features.described_parts
        return cls(features, features.views([0]), described, len(features) / max(int(described.sum()), 1))


@dataclass(frozen=True, slots=True)
class CopyScorer:
    """Scores how certain it is that two videos contain the same material, and finds where.

    Each pair gets a symmetric TopK-Chamfer map, which is calibrated by both sides' baselines and aligned to segments.
    Along the segments, with w the frames' information: ``s`` = weighted mean of the map, less the doubt where no
    change confirms it (:meth:`Evidence.doubted`); ``g = max(coverage of the query, coverage of the target, 1 -
    exp(-news / evidence))`` where ``news`` is the weighted number of seconds that differ from the second before; ``c``
    = agreement of what changes in both (1 where too little changes to tell). Segments whose changes disagree are
    divided where their pieces come in another order. ``score = 1 - (1 - s g c)^2``.

    Attributes:
        settings: The constants of the score.
    """

    settings: ScoreSettings = field(default_factory=ScoreSettings)

    name: ClassVar[str] = "copies"
    # Yes: similarities count from those of unrelated pictures on.
    needs_background: ClassVar[bool] = True
    # Yes: the score comes from them.
    has_segments: ClassVar[bool] = True

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """Scores, segments and calibrated maps; see :class:`vidkin.similarity.Scorer`."""
        maps = pair_maps(query, targets, spatial_share=self.settings.spatial_share)
        side = _ComparedVideo.of(query)
        return [
            _ComparedPair(side, _ComparedVideo.of(target), pairs, self.settings, mirrored).best()
            for target, pairs in zip(targets, maps, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _ComparedPair:
    """Two videos and the maps of their views."""

    query: _ComparedVideo
    target: _ComparedVideo
    pairs: PairMaps
    settings: ScoreSettings
    mirrored: bool

    def best(self) -> PairScore:
        """The score of the best pair of views; parts of a picture must score higher than the whole."""
        best: PairScore | None = None
        of_parts = replace(self.settings, evidence=self.settings.evidence_of_parts)
        rows, columns = self.query.described, self.target.described
        for first, second, frame_map in self._candidates():
            if best is not None and best.score >= 1.0 - _PART_MARGIN:
                break  # nothing can be better by the margin
            of_part = first is not None or second is not None
            one = self.query.whole if first is None else first.frames(rows)
            other = self.target.whole if second is None else second.frames(columns)
            if first is not None:
                frame_map = frame_map[rows]
            if second is not None:
                frame_map = frame_map[:, columns]
            result = self._one_pair_of_views(one, other, frame_map, of_parts if of_part else self.settings)
            if best is None or result.score > best.score + _PART_MARGIN:
                shown = _of_every_frame(
                    result.map, rows if first is not None else None, columns if second is not None else None
                )
                best = replace(result, map=shown)
        assert best is not None  # the pair of whole pictures is always examined
        return best

    def _one_pair_of_views(
        self,
        query: FrameFeatures,
        target: FrameFeatures,
        frame_map: NDArray[np.float32],
        settings: ScoreSettings,
    ) -> PairScore:
        if query.period * _DENSER < target.period:
            # Nothing is known between two frames of a coarse target, so each of its frames looks for the nearest frame
            # of the query.
            result = _score(target, query, np.ascontiguousarray(frame_map.T), self.mirrored, settings)
            segments = tuple(segment.swapped() for segment in result.segments)
        else:
            result = _score(query, target, frame_map, self.mirrored, settings)
            segments = result.segments
        ends = [math.inf if side.end is None else side.end for side in (query, target)]
        placed = tuple(_placed(segment.cut(*ends), query, target) for segment in segments)
        return PairScore(result.score, placed, frame_map)

    def _candidates(self) -> list[_ViewPair]:
        """Pairs of views worth aligning, each with its map: whole pictures (None) first, then promising parts."""
        if len(self.pairs.maps) == 1:
            return [(None, None, self.pairs.maps[0])]
        promise = self._promise(self.pairs.maps, self.pairs.views)
        ranked = np.argsort(-promise[1:], kind="stable")[:_PARTS_ALIGNED] + 1
        least = max(float(promise[0]), _LEAST_PROMISE)
        candidates: list[_ViewPair] = [(None, None, self.pairs.maps[0])]
        for place in ranked.tolist():
            if float(promise[place]) > least:
                first, second = self.pairs.views[place]
                candidates.append(
                    (
                        self.query.features.views([first]) if first else None,
                        self.target.features.views([second]) if second else None,
                        self.pairs.maps[place],
                    )
                )
        return candidates + self._moving(promise, least)

    def _moving(self, promise: NDArray[np.float32], least: float) -> list[_ViewPair]:
        """Windows that move over one of the pictures and are clearly more promising than each of their places."""
        candidates: list[_ViewPair] = []
        for side, features in enumerate((self.query.features, self.target.features)):
            of_side = [at for at, pair in enumerate(self.pairs.views) if pair[side]]
            if not of_side or float(promise[of_side].max()) <= _LEAST_PROMISE:
                continue
            for views in side_by_side(features):
                places = [at for at in of_side if self.pairs.views[at][side] in views]
                maps = self.pairs.maps[places] if side == 0 else self.pairs.maps[places].transpose(0, 2, 1)
                window, frame_map = follow_window(features, [self.pairs.views[at][side] for at in places], maps)
                frame_map = frame_map if side == 0 else np.ascontiguousarray(frame_map.T)
                view = (1, 0) if side == 0 else (0, 1)
                moving = float(self._promise(frame_map[None], [view])[0])
                if moving > max(least, _MOVING * float(promise[places].max())):
                    candidates.append((window, None, frame_map) if side == 0 else (None, window, frame_map))
        return candidates

    def _promise(self, maps: NDArray[np.float32], views: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
        """Upper bound [P] on the seconds of similarity above the threshold in maps [P, Tq, Tt]."""
        excess = np.maximum(maps - self.settings.threshold, 0)
        excess *= np.minimum(self.query.whole.information[:, None], self.target.whole.information)
        promise = np.minimum(
            excess.max(2).sum(1) * self.query.whole.period, excess.max(1).sum(1) * self.target.whole.period
        )
        # If parts were described in every second frame, each of these frames counts for two.
        of_query, of_target = self.query.frames_a_part, self.target.frames_a_part
        promise *= np.array([of_query if i else of_target if j else 1.0 for i, j in views])
        return np.asarray(promise, np.float32)


def _of_every_frame(
    frame_map: NDArray[np.float32], rows: NDArray[np.bool_] | None, columns: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """The map [Tq, Tt] in which frames that were not described ([T] bool; None: all were) repeat the nearest described
    one."""
    for axis, described in enumerate((rows, columns)):
        if described is not None and not described.all():
            there = np.flatnonzero(described)
            nearest = np.abs(np.arange(len(described))[:, None] - there).argmin(1)
            frame_map = frame_map.take(nearest, axis)
    return frame_map


def _placed(segment: Segment, query: FrameFeatures, target: FrameFeatures) -> Segment:
    """The segments with the boxes of the compared views, each over the frames of its segment."""
    return replace(
        segment,
        query_box=_box_between(query, segment.query_start, segment.query_end),
        target_box=_box_between(target, segment.target_start, segment.target_end),
    )


def _box_between(features: FrameFeatures, start: float, end: float) -> Box:
    times = features.timestamps
    frames = np.flatnonzero((times >= start - ROUNDING) & (times <= end + ROUNDING))
    return features.box(0, frames) if len(frames) else WHOLE


def _score(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: NDArray[np.float32],
    mirrored: bool,
    settings: ScoreSettings,
) -> PairScore:
    segments = align(
        frame_map,
        query.timestamps,
        target.timestamps,
        query_weights=query.information,
        target_weights=target.information,
        threshold=settings.threshold,
        maximum_segments=settings.maximum_segments,
        mirrored=mirrored,
    )
    if not segments:
        return PairScore(0.0, (), frame_map)
    news = find_news(query, settings.still), find_news(target, settings.still)
    scored = []
    total = Evidence.none(query, target)
    best = 0.0
    for segment in split_by_changes(query, target, frame_map, segments, settings):
        rows, columns = match_frames(query, target, segment)
        changes = compare_changes(query, target, rows, columns, settings)
        part = Evidence.of(frame_map, query, target, rows, columns, news)
        doubted = part.doubted(changes.confirmation, settings)
        total = total.plus(doubted, changes.agreement)
        best = max(best, doubted.score(changes.agreement, settings), total.score(1.0, settings))
        left = doubted.similarity / part.similarity if part.similarity > 0 else 0.0
        scored.append(replace(segment, score=stretch_score(min(1.0, segment.score * left * changes.agreement))))
    # Long segments count more than short ones that are slightly more certain.
    ranked = sorted(
        (segment for segment in scored if segment.score > 0),
        key=lambda segment: -segment.score * (segment.query_end - segment.query_start + 1.0),
    )
    # Next to the best segment, one that says no more than unrelated videos do is noise.
    kept = [s for place, s in enumerate(ranked) if place == 0 or s.score >= UNRELATED]
    return PairScore(best if kept else 0.0, tuple(kept[: settings.maximum_segments]), frame_map)


# A window that moves over the picture: the column (or row) that each frame of the other video shows.
#
# A reframe for an upright screen follows the action: its window is in one place in one second and elsewhere in the
# next.
# No single view shows it, but views of one size that lie side by side show it in turn.


# Least number of views of one size for a window to move over.
_FEWEST_PLACES = 4

# Tolerance in shares of the picture: boxes that differ by less have the same size and position.
_SAME = 0.02

# Seconds over which a place of the window is averaged: it moves steadily.
_STEADY = 2.0


def side_by_side(features: FrameFeatures) -> list[list[int]]:
    """Views of one size that span the whole height or the whole width: each list holds the places of one window."""
    described = np.flatnonzero(features.described_parts)
    if features.boxes is None or len(described) == 0:
        return []
    boxes = features.boxes[described[0]].astype(np.float32)
    whole, corners, sizes = boxes[0], boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    groups: dict[tuple[int, int], list[int]] = {}
    for axis in (0, 1):
        across = 1 - axis
        full = np.abs(corners[:, across] - whole[across]) < _SAME
        full &= np.abs(boxes[:, across + 2] - whole[across + 2]) < _SAME
        full &= (sizes[:, axis] > 0) & (sizes[:, axis] < sizes[0, axis] - _SAME)
        for view in np.flatnonzero(full).tolist():
            groups.setdefault((axis, round(float(sizes[view, axis]) / _SAME)), []).append(view)
    return [views for views in groups.values() if len(views) >= _FEWEST_PLACES]


def follow_window(
    features: FrameFeatures, views: list[int], maps: NDArray[np.float32]
) -> tuple[FrameFeatures, NDArray[np.float32]]:
    """Features of the window in the place that each frame shows best, and their map.

    Args:
        features: T frames of the video with the whole picture.
        views: The P places of the window, from :func:`side_by_side`.
        maps: [P, T, To] similarity of each place to the To frames of the other video.

    Returns:
        Features with a single view, and its map [T, To].
    """
    strength = maps.max(2)
    reach = round(_STEADY / 2 / features.period)
    if len(features) > 2 * reach + 1 > 1:
        strength = _steadied(strength, reach)
    place = strength.argmax(0)
    rows = np.arange(len(features))
    view = np.array(views)[place]
    window = replace(
        features,
        values=features.values[rows, view][:, None],
        boxes=None if features.boxes is None else features.boxes[rows, view][:, None],
        baseline=None if features.baseline is None else features.baseline[rows, view][:, None],
    )
    return window, maps[place, rows]


def _steadied(strength: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """Means of each value [P, T] with its neighbors up to ``reach`` frames away, fewer at the ends."""
    count = strength.shape[1]
    total = strength.copy()
    for step in range(1, reach + 1):
        total[:, step:] += strength[:, :-step]
        total[:, :-step] += strength[:, step:]
    frames = np.arange(count)
    total /= (np.minimum(frames, reach) + np.minimum(count - 1 - frames, reach) + 1).astype(np.float32)
    return total
