"""From two videos' descriptors to one number that means the same for every pair, and to segments.

Shapes: Tq, Tt frames of query and target; n frames whose parts were described; P parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import unchecked
from vidkin._base.stopping import check_wanted
from vidkin.similarity.alignment import align
from vidkin.similarity.contracts import WHOLE, BestScores, Box, FrameFeatures, PairScore, Segment
from vidkin.similarity.evidence import (
    LEAST_STEP,
    MOST_KEPT,
    ROUNDING,
    ComparedVideo,
    Evidence,
    PairMaps,
    ScoreSettings,
    compare_parts,
    compare_views,
    compare_whole,
    find_news,
    most_similar,
    similarities_from,
    split_by_changes,
    stretch_score,
)
from vidkin.similarity.regions import least_seconds, of_every_frame, score_changes
from vidkin.similarity.scale import UNRELATED

# Called for every pair of videos.
_align = unchecked(align)

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

# Parts of one picture with parts of the other: frames of the query a second, pairs of parts aligned, and the largest
# number of cells compared.
_PARTS_A_SECOND, _PART_PAIRS_ALIGNED = 1.0, 3
# Seconds that a pair of parts must promise, or this share of what the video that shows less has to show.
_LEAST_PROMISE_OF_PAIRS, _LEAST_SHARE_OF_PAIRS = 0.3, 0.07
_MOST_CELLS_OF_PARTS = 1 << 22

# Pairs of moments of both that are compared to see whether changes could confirm a match at all.
_MOST_PAIRS_OF_MOMENTS = 1 << 14

# By how much a mean of numbers in single precision may be above the largest of them.
_ROUNDING_OF_MEANS = 1e-4


class _ViewPair(NamedTuple):
    """One view of query and target, and their map over the frames in which these views are described.

    Attributes:
        query, target: Features of the frames in the view; None for whole pictures, which have all frames.
        frame_map: [nq, nt] float32, calibrated similarities.
    """

    query: FrameFeatures | None
    target: FrameFeatures | None
    frame_map: NDArray[np.float32]


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
        side, results = ComparedVideo(query), []
        for target, highest in zip(targets, self._most_similar(side, targets), strict=True):
            check_wanted()
            other = ComparedVideo(target)
            if highest > self.settings.threshold:
                results.append(self._compare(side, other, mirrored).best())
            else:
                whole = compare_whole(side, other, spatial_share=self.settings.spatial_share)
                results.append(PairScore(0.0, (), whole))
        return results

    def promise(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> NDArray[np.float32]:
        """Seconds [targets] of similarity above the threshold that a match can have at most, over all views.

        Each second of either video counts once, with the best moment of the other, in whatever order; a fifth of the
        time of :meth:`score`. Copies as a whole promise a share of their length, other videos hardly any.
        """
        side = ComparedVideo(query)
        pairs = (self._compare(side, ComparedVideo(target), False) for target in targets)
        return np.array([pair.promise() for pair in pairs], np.float32)

    def score_best(
        self, query: FrameFeatures, targets: Mapping[int, FrameFeatures], best: BestScores, *, mirrored: bool = False
    ) -> dict[int, PairScore]:
        """Scores of the targets that can be among the best; see :class:`vidkin.similarity.contracts.ScorerOfBest`."""
        side, scores = ComparedVideo(query), {}
        highest = self._most_similar(side, list(targets.values()))
        for (video, target), most in zip(targets.items(), highest, strict=True):
            check_wanted()
            # A score is at most that of the mean along a segment, and nothing below the threshold belongs to one.
            if most > self.settings.threshold and stretch_score(most + _ROUNDING_OF_MEANS) >= best.least:
                pair = self._compare(side, ComparedVideo(target), mirrored)
                if pair.most() >= best.least:
                    scores[video] = pair.best()
                    best.add(video, scores[video].score)
        return scores

    def score_parts(
        self,
        query: FrameFeatures,
        targets: Sequence[FrameFeatures],
        *,
        mirrored: bool = False,
        least: Sequence[float] | None = None,
    ) -> list[PairScore | None]:
        """Scores where neither picture shows the other as a whole; see
        :class:`vidkin.similarity.contracts.ScorerOfParts`.

        Every part of the query is compared with every part of the target, which are some seven hundred pairs: the few
        most promising ones are aligned, and count only if they are long and change together.
        """
        side, settings = ComparedVideo(query), self._settings_of_parts()
        return [
            _score_parts(side, ComparedVideo(target), settings, mirrored, lowest)
            for target, lowest in zip(targets, least or [0.0] * len(targets), strict=True)
        ]

    def score_changes(
        self,
        query: FrameFeatures,
        targets: Sequence[FrameFeatures],
        *,
        mirrored: bool = False,
        least: Sequence[float] | None = None,
    ) -> list[PairScore | None]:
        """Scores by what changes at once in the same regions of both pictures, however much of them is covered or
        blended over; see
        :class:`vidkin.similarity.contracts.ScorerOfParts`.

        With rho the mean correlation of changes in the eight regions that agree best, from n frames:
        ``score = 1 - (1 - x g)^2`` where ``x = (rho - region_chance / sqrt(n - 1)) / region_full`` in [0, 1] and g the
        evidence of a match of parts.
        """
        scores: list[PairScore | None] = [None] * len(targets)
        # No score is above 1.
        possible = [place for place in range(len(targets)) if least is None or least[place] <= 1.0]
        sides = ComparedVideo(query), [ComparedVideo(targets[place]) for place in possible]
        for place, found in zip(possible, score_changes(*sides, self._settings_of_parts(), mirrored), strict=True):
            scores[place] = found
        return scores

    def _settings_of_parts(self) -> ScoreSettings:
        return replace(
            self.settings,
            threshold=self.settings.threshold_of_part_pairs,
            evidence=self.settings.evidence_of_part_pairs,
            covering=self.settings.covering_of_part_pairs,
            doubt=self.settings.doubt_of_part_pairs,
            doubt_of_plain=self.settings.doubt_of_plain_part_pairs,
            unconfirmed=self.settings.unconfirmed_of_part_pairs,
            fewest_moving=self.settings.fewest_moving_of_part_pairs,
        )

    def _most_similar(self, query: ComparedVideo, targets: Sequence[FrameFeatures]) -> list[float]:
        """The similarity that the frames of each target reach at most with those of the query, in any view."""
        highest = [1.0] * len(targets)
        # Of a long video it would take as long as the maps, which always have some similar frames.
        short = [place for place, target in enumerate(targets) if target.values.nbytes <= MOST_KEPT]
        if short and all(features.values.shape[2] == 1 for features in (query.features, *targets)):
            found = most_similar(query, [ComparedVideo(targets[place]) for place in short])
            for place, most in zip(short, found.tolist(), strict=True):
                highest[place] = most
        return highest

    def _compare(self, query: ComparedVideo, target: ComparedVideo, mirrored: bool) -> _ComparedPair:
        pairs = compare_views(query, target, spatial_share=self.settings.spatial_share)
        return _ComparedPair(query, target, pairs, self.settings, mirrored)


@dataclass(frozen=True, slots=True)
class _ComparedPair:
    """Two videos and the maps of their views."""

    query: ComparedVideo
    target: ComparedVideo
    pairs: PairMaps
    settings: ScoreSettings
    mirrored: bool

    def promise(self) -> float:
        """See :meth:`CopyScorer.promise`."""
        parts = (
            self._promise_of_parts(self.pairs.query_parts, self.query, self.target),
            self._promise_of_parts(self.pairs.target_parts, self.target, self.query),
        )
        return max(self._promise_of_whole(), *(float(promise.max(initial=0.0)) for promise in parts))

    def most(self) -> float:
        """An upper bound of the score, before anything is aligned: that of the most similar frames in any view, as a
        score is at most that of the mean along a segment."""
        nearest = [float(parts.min()) for parts in (self.pairs.query_parts, self.pairs.target_parts) if parts.size]
        return stretch_score(max(float(self.pairs.whole.max()), 1.0 - min(nearest, default=1.0)) + _ROUNDING_OF_MEANS)

    def best(self) -> PairScore:
        """The score of the best pair of views; parts of a picture must score higher than the whole."""
        best: PairScore | None = None
        of_parts = replace(
            self.settings,
            evidence=self.settings.evidence_of_parts,
            doubt_of_short=self.settings.doubt_of_short_parts,
        )
        for first, second, frame_map in self._candidates():
            if best is not None and stretch_score(float(frame_map.max()) + _ROUNDING_OF_MEANS) <= (
                best.score + _PART_MARGIN
            ):
                continue  # a score is at most that of the most similar frames
            result = _one_pair_of_views(
                first or self.query.whole,
                second or self.target.whole,
                frame_map,
                self.settings if first is None and second is None else of_parts,
                self.mirrored,
            )
            if best is None or result.score > best.score + _PART_MARGIN:
                shown = result.map
                for axis, (view, side) in enumerate(((first, self.query), (second, self.target))):
                    if view is not None:
                        shown = of_every_frame(shown, axis, side.described, len(side.whole))
                best = replace(result, map=shown)
            if best.score >= 1.0 - _PART_MARGIN:
                break  # nothing can be better by the margin, and no parts are looked through for it
        assert best is not None  # the pair of whole pictures is always examined
        return best

    def _candidates(self) -> Iterator[_ViewPair]:
        """Pairs of views worth aligning, each with its map: whole pictures first, then promising parts."""
        yield _ViewPair(None, None, self.pairs.whole)
        of_query = self._promise_of_parts(self.pairs.query_parts, self.query, self.target)
        of_target = self._promise_of_parts(self.pairs.target_parts, self.target, self.query)
        promise = np.concatenate([of_query, of_target])
        if not (promise > _LEAST_PROMISE).any():
            return
        least = max(self._promise_of_whole(), _LEAST_PROMISE)
        for place in np.argsort(-promise, kind="stable")[:_PARTS_ALIGNED].tolist():
            if promise[place] > least:
                side, view = (0, place) if place < len(of_query) else (1, place - len(of_query))
                compared, distances = self._side(side)
                shown = compared.features.views([view + 1]).frames(compared.described)
                yield _view_pair(side, shown, similarities_from(distances[view]))
        for side, promises in enumerate((of_query, of_target)):
            if len(promises) and promises.max() > _LEAST_PROMISE:
                yield from self._moving(side, promises, least)

    def _moving(self, side: int, promise: NDArray[np.float32], least: float) -> list[_ViewPair]:
        """Windows that move over one of the pictures and are clearly more promising than each of their places."""
        candidates: list[_ViewPair] = []
        compared, distances = self._side(side)
        other = self._side(1 - side)[0]
        features = compared.features
        for views in features.once(side_by_side, lambda: side_by_side(features)):
            places = np.array(views) - 1
            maps = np.zeros((len(views), len(compared.whole), len(other.whole)), np.float32)
            maps[:, compared.described] = similarities_from(distances[places])
            window, frame_map = follow_window(features, views, maps)
            frame_map = frame_map[compared.described]
            moving = self._promise(frame_map - self.settings.threshold, compared, other)
            if moving > max(least, _MOVING * float(promise[places].max())):
                candidates.append(_view_pair(side, window.frames(compared.described), frame_map))
        return candidates

    def _side(self, side: int) -> tuple[ComparedVideo, NDArray[np.float32]]:
        """The query (0) or the target (1), and the distances of its parts."""
        return (self.target, self.pairs.target_parts) if side else (self.query, self.pairs.query_parts)

    def _promise_of_whole(self) -> float:
        """Upper bound on the seconds of similarity above the threshold in the map of whole pictures."""
        excess = self.pairs.whole - self.settings.threshold
        excess *= np.minimum(self.query.whole.information[:, None], self.target.whole.information)
        return float(least_seconds(excess, self.query.whole.period, self.target.whole.period))

    def _promise_of_parts(
        self, distances: NDArray[np.float32], one: ComparedVideo, other: ComparedVideo
    ) -> NDArray[np.float32]:
        """The same for each of the P parts of a video, from their distances [P, n, T] to the other video."""
        promise = np.zeros(len(distances), np.float32)
        if len(distances):
            # Most parts have no cell above the threshold.
            farthest = 1 - self.settings.threshold
            alive = np.flatnonzero(distances.min((1, 2)) < farthest)
            if len(alive):
                promise[alive] = self._promise(farthest - distances[alive], one, other)
        return promise

    def _promise(self, excess: NDArray[np.float32], one: ComparedVideo, other: ComparedVideo) -> NDArray[np.float32]:
        """Upper bounds [...] on the seconds of similarity above the threshold, from what is above it in the described
        frames of one video and all of the other [..., n, T]. If parts were described in every second frame, each of
        these frames counts for two."""
        excess *= np.minimum(one.whole.information[one.described, None], other.whole.information)
        seconds = least_seconds(excess, one.whole.period, other.whole.period)
        return np.asarray(seconds * np.float32(one.part_weight))


def _one_pair_of_views(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: NDArray[np.float32],
    settings: ScoreSettings,
    mirrored: bool,
) -> PairScore:
    """Score and segments of two views, with their boxes."""
    if float(frame_map.max()) <= settings.threshold:
        return PairScore(0.0, (), frame_map)
    if query.period * _DENSER < target.period:
        # Nothing is known between two frames of a coarse target, so each of its frames looks for the nearest frame
        # of the query.
        result = _score(target, query, np.ascontiguousarray(frame_map.T), mirrored, settings)
        segments = tuple(segment.swapped() for segment in result.segments)
    else:
        result = _score(query, target, frame_map, mirrored, settings)
        segments = result.segments
    ends = [math.inf if side.end is None else side.end for side in (query, target)]
    placed = tuple(_placed(segment.cut(*ends), query, target) for segment in segments)
    return PairScore(result.score, placed, frame_map)


def _score_parts(
    query: ComparedVideo, target: ComparedVideo, settings: ScoreSettings, mirrored: bool, least: float
) -> PairScore | None:
    """See :meth:`CopyScorer.score_parts`, for one target."""
    best: PairScore | None = None
    for first, second, frame_map in part_pairs(query, target, settings.threshold):
        assert first is not None
        assert second is not None
        needed = max(least, 0.0 if best is None else math.nextafter(best.score, 2.0))
        if _most_of_views(first, second, frame_map, settings) < needed:
            continue
        if _most_of_views(first, second, frame_map, settings, _most_confirmed(first, second, settings)) < needed:
            continue
        result = _one_pair_of_views(first, second, frame_map, settings, mirrored)
        if best is None or result.score > best.score:
            best = result
    if best is None:
        return None
    shown = of_every_frame(best.map, 0, query.described[:: query.part_stride(_PARTS_A_SECOND)], len(query.whole))
    return replace(best, map=of_every_frame(shown, 1, target.described, len(target.whole)))


def _most_of_views(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: NDArray[np.float32],
    settings: ScoreSettings,
    most_confirmed: float = 1.0,
) -> float:
    """An upper bound of what :func:`_one_pair_of_views` gives two views, of which changes confirm so much at most.

    What stands still on either side cannot confirm a match (:meth:`Evidence.doubted`). And the more frames match, the
    less similar are the least similar of them: of frames that segments have in common half are counted once at least
    (:meth:`Evidence.plus`), and each is as similar as its most similar one in the other video.
    """
    confirmed = most_confirmed
    if settings.fewest_moving > 0:
        confirmed *= min(1.0, min(_most_moving(query), _most_moving(target)) / settings.fewest_moving)
    if query.period * _DENSER < target.period:
        query, target, frame_map = target, query, frame_map.T
    highest = np.sort(frame_map.max(axis=1))[::-1].astype(np.float64)
    counts = np.arange(1, 2 * len(highest) + 1)
    similarity, believed = highest[:1], np.ones(1)
    # Frames that count less than others could be counted more often.
    if settings.covering > 0 and min(float(query.information.min()), float(target.information.min())) >= 1.0:
        once = (counts + 1) // 2
        similarity = (np.cumsum(highest)[once - 1] + (counts - once) * highest[0]) / counts
        news = np.minimum(counts, 2 * len(target))
        believed = np.maximum(
            np.minimum(1.0, counts * query.period / settings.covering) ** 3, 1.0 - np.exp(-news / settings.evidence)
        )
    doubt = (1.0 - confirmed) * settings.doubt
    certain = np.maximum(0.0, (np.minimum(similarity, 1.0) - doubt) / (1.0 - doubt))
    certain *= confirmed + (1.0 - confirmed) * settings.unconfirmed
    return stretch_score(float((certain * believed).max()) + _ROUNDING_OF_MEANS)


def _most_moving(features: FrameFeatures) -> int:
    """How often frames of any stretch, in order, differ from the one before by more than noise at most: not oftener
    than their descriptors go that far, as a frame that is left out makes no way shorter."""
    values = features.whole
    if len(values) < 2:
        return 0
    steps = np.sqrt(np.square(np.diff(values, axis=0)).sum(axis=2).mean(axis=1))
    return int(float(steps.sum()) / LEAST_STEP * (1.0 + _ROUNDING_OF_MEANS))


def _most_confirmed(query: FrameFeatures, target: FrameFeatures, settings: ScoreSettings) -> float:
    """An upper bound of the confirmation of any stretches of two views (:func:`vidkin.similarity.evidence
    .compare_changes`): whichever frames match, the correlation of changes is a mean of those of two moments, weighted
    by how much these differ, and so at most the largest of these."""
    ones, others = (side.whole.reshape(len(side), -1).astype(np.float64) for side in (query, target))
    rows, columns = (np.triu_indices(len(side), 1) for side in (ones, others))
    if not len(rows[0]) or not len(columns[0]) or len(rows[0]) * len(columns[0]) > _MOST_PAIRS_OF_MOMENTS:
        return 1.0
    changes = [side[late] - side[early] for side, (early, late) in ((ones, rows), (others, columns))]
    for change in changes:
        change /= np.sqrt(np.vecdot(change, change))[:, None] + 1e-12
    correlation = float((changes[0] @ changes[1].T).max()) + _ROUNDING_OF_MEANS
    correlation -= settings.change_chance / math.sqrt(max(min(len(ones), len(others)) - 1, 1))
    return min(1.0, max(0.0, (correlation - settings.change_least) / (settings.change_full - settings.change_least)))


def part_pairs(query: ComparedVideo, target: ComparedVideo, threshold: float) -> list[_ViewPair]:
    """The most promising pairs of a part of one picture and a part of the other, with their maps.

    Args:
        query, target: The two videos.
        threshold: Least similarity that counts.
    """
    stride = query.part_stride(_PARTS_A_SECOND)
    rows, columns = query.described[::stride], target.described
    first, second = query.part_values[:, ::stride], target.part_values
    if not 0 < first.shape[0] * first.shape[1] * second.shape[0] * second.shape[1] <= _MOST_CELLS_OF_PARTS:
        return []
    distances = compare_parts(first, query.part_stretch[:, ::stride], second, target.part_stretch)
    seconds = [
        np.maximum(1 - threshold - distances.min(axis), 0.0)  # [P, n, Pt] and [P, m, Pt]
        for axis in (2, 1)
    ]
    weights = query.whole.information[rows], target.whole.information[columns]
    of_rows = np.einsum("pnq,n->pq", seconds[0], weights[0]) * (query.part_period * stride)
    of_columns = np.einsum("pmq,m->pq", seconds[1], weights[1]) * target.part_period
    promise = np.minimum(of_rows, of_columns)
    shown = min(
        float(weights[0].sum()) * query.part_period * stride,
        float(weights[1].sum()) * target.part_period,
    )
    least = min(_LEAST_PROMISE_OF_PAIRS, _LEAST_SHARE_OF_PAIRS * shown)
    pairs = []
    for place in np.argsort(-promise, axis=None, kind="stable")[:_PART_PAIRS_ALIGNED].tolist():
        one, other = divmod(place, promise.shape[1])
        if promise[one, other] > least:
            pairs.append(
                _ViewPair(
                    query.features.views([one + 1]).frames(rows),
                    target.features.views([other + 1]).frames(columns),
                    similarities_from(np.ascontiguousarray(distances[one, :, :, other])),
                )
            )
    return pairs


def _view_pair(side: int, shown: FrameFeatures, frame_map: NDArray[np.float32]) -> _ViewPair:
    """A view of the query (side 0) or the target (1), and its map [n, T] to the whole picture of the other."""
    return _ViewPair(shown, None, frame_map) if side == 0 else _ViewPair(None, shown, np.ascontiguousarray(frame_map.T))


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
    segments = _align(
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
    for matched in split_by_changes(query, target, frame_map, segments, settings):
        segment, changes = matched.segment, matched.changes
        part = Evidence.of(frame_map, query, target, matched.rows, matched.columns, news)
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
