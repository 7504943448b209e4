"""From two videos' descriptors to one number that means the same for every pair, and to segments.

Shapes: Tq, Tt frames of query and target; R regions; D dimension; N background frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from vidkin.similarity.alignment import align
from vidkin.similarity.chamfer import frame_similarity
from vidkin.similarity.frame_features import FrameFeatures
from vidkin.similarity.scorer import PairScore
from vidkin.similarity.segment import WHOLE, Segment
from vidkin.similarity.view_pairs import PairMaps, content, pair_maps

__all__ = ["CopyScorer", "ScoreSettings", "background_baseline", "calibrated_map"]

_UNRELATED = 0.2
# From this ratio of periods on the coarser side leads the alignment.
_DENSER = 1.5
# Pairs of views that are aligned beside that of the whole pictures.
_PARTS_ALIGNED = 3
# Seconds of similarity above the threshold, below which a pair of views is not looked at.
_LEAST_PROMISE = 0.05
# How much more a part of a picture must score than the whole.
_PART_MARGIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Constants of the score; how they were chosen is in docs/scoring.md.

    Attributes:
        threshold: Calibrated frame similarity from which two frames count for a match.
        evidence: Seconds of moving, informative, matching video that make a match believable by itself. A
            match that covers one of the two videos needs no such length.
        still: One minus the cosine of two frames a second apart from which the second one counts as new.
        change_energy: Mean squared change of the descriptors at which changes are trusted half.
        change_share: In [0, 1], how much of the score is lost when what changes in the one video has nothing to
            do with what changes in the other (two moments before one fixed camera).
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
        maximum_segments: Segments reported per pair.
    """

    threshold: float = 0.3
    evidence: float = 2.0
    still: float = 0.15
    change_energy: float = 0.01
    change_share: float = 0.9
    spatial_share: float | None = None
    maximum_segments: int = 8


def background_baseline(
    values: torch.Tensor, background: torch.Tensor, *, share: float = 0.9, spatial_share: float | None = None
) -> torch.Tensor:
    """How similar unrelated frames are to each frame, [T]: the ``share`` quantile over a background set.

    A quantile below one, not the maximum, so that a few related frames among the background do no harm.

    Args:
        values: [T, R, D].
        background: [N, R, D], background photographs (:func:`vidkin.features.background_frames`).
        share: Quantile in [0, 1].
        spatial_share: k_s, the same as in the comparison.
    """
    if len(values) == 0:
        return torch.zeros(0)
    similarities = frame_similarity(
        values.float(),
        background.float(),
        symmetric=True,
        spatial_share=spatial_share,
        query_mask=content(values),
        target_mask=content(background),
    )
    return _high_quantile(similarities.float(), share).clamp(-1.0, 0.95)


def _high_quantile(values: torch.Tensor, share: float) -> torch.Tensor:
    """``torch.quantile(values, share, dim=1)`` of [T, N], faster for shares near 1: only the largest are sorted."""
    place = share * (values.shape[1] - 1)
    largest = values.topk(values.shape[1] - math.floor(place), dim=1).values
    below, above = largest[:, -1], largest[:, -2 if largest.shape[1] > 1 else -1]
    return torch.lerp(below, above, place - math.floor(place))


def calibrated_map(
    similarities: torch.Tensor, query_baseline: torch.Tensor, target_baseline: torch.Tensor
) -> torch.Tensor:
    """``clamp((s - b) / (1 - b), 0, 1)`` with b the larger of both frames' baselines: [Tq, Tt] to [Tq, Tt].

    Equal frames stay at 1; frames no more similar than unrelated ones get 0.
    """
    floor = torch.maximum(query_baseline[:, None], target_baseline[None, :]).to(similarities)
    return ((similarities - floor) / (1 - floor)).clamp(0, 1)


@dataclass(frozen=True, slots=True)
class CopyScorer:
    """Scores how certain it is that two videos contain the same material, and finds where.

    Per pair: symmetric TopK-Chamfer map, calibrated by both sides' baselines, aligned to segments. Along the
    segments, with w the frames' information: ``s`` = weighted mean of the map; ``g = max(coverage of the query,
    coverage of the target, 1 - exp(-news / evidence))`` where ``news`` is the weighted number of
    seconds that differ from the second before; ``c`` = correlation of what changes in both (1 where too little
    changes to tell).
    ``score = 1 - (1 - s g c)^2``.

    Attributes:
        settings: Constants of the score.
    """

    settings: ScoreSettings = field(default_factory=ScoreSettings)

    @property
    def name(self) -> str:
        """``copies``."""
        return "copies"

    @property
    def needs_background(self) -> bool:
        """True."""
        return True

    @property
    def has_segments(self) -> bool:
        """True."""
        return True

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """Scores, segments and calibrated maps; see :class:`vidkin.similarity.Scorer`."""
        maps = pair_maps(query, targets, spatial_share=self.settings.spatial_share)
        return [
            self._best_views(query, target, pairs, mirrored)
            for target, pairs in zip(targets, maps, strict=True)
        ]

    def _best_views(
        self, query: FrameFeatures, target: FrameFeatures, pairs: PairMaps, mirrored: bool
    ) -> PairScore:
        """The score of the best pair of views; parts of a picture must score higher than the whole."""
        best: PairScore | None = None
        for place in _promising(pairs, query, target, self.settings):
            first, second = pairs.views[place]
            # Parts are described in some frames only; the others say nothing about them.
            rows = query.described_parts if first else torch.ones(len(query), dtype=torch.bool)
            columns = target.described_parts if second else torch.ones(len(target), dtype=torch.bool)
            result = self._one_pair_of_views(
                query.frames(rows).views([first]),
                target.frames(columns).views([second]),
                pairs.maps[place][rows][:, columns],
                mirrored,
            )
            if best is None or result.score > best.score + _PART_MARGIN:
                best = result
        assert best is not None  # the pair of whole pictures is always looked at
        return best

    def _one_pair_of_views(
        self, query: FrameFeatures, target: FrameFeatures, frame_map: torch.Tensor, mirrored: bool
    ) -> PairScore:
        if query.period * _DENSER < target.period:
            # Between two frames of a coarse target nothing is known: each of its frames looks for the nearest frame
            # of the query.
            result = _score(target, query, frame_map.T.contiguous(), mirrored, self.settings)
            segments = tuple(segment.swapped() for segment in result.segments)
        else:
            result = _score(query, target, frame_map, mirrored, self.settings)
            segments = result.segments
        placed = tuple(
            _placed(_inside(segment, query.end, target.end), query, target) for segment in segments
        )
        return PairScore(result.score, placed, frame_map)


def _promising(
    pairs: PairMaps, query: FrameFeatures, target: FrameFeatures, settings: ScoreSettings
) -> list[int]:
    """Indices of the maps [P, Tq, Tt] worth aligning: the first, and the best of those that look more promising."""
    if len(pairs.maps) == 1:
        return [0]
    excess = (pairs.maps - settings.threshold).clamp(min=0)
    excess *= torch.minimum(query.information[:, None], target.information[None, :])
    promise = torch.minimum(excess.amax(2).sum(1) * query.period, excess.amax(1).sum(1) * target.period)
    # Where parts were described in every second frame, each of these stands for two.
    of_query, of_target = query.frames_a_part, target.frames_a_part
    promise *= torch.tensor([of_query if i else of_target if j else 1.0 for i, j in pairs.views])
    ranked = promise[1:].argsort(descending=True)[:_PARTS_ALIGNED] + 1
    return [
        0,
        *(int(place) for place in ranked if float(promise[place]) > max(float(promise[0]), _LEAST_PROMISE)),
    ]


def _placed(segment: Segment, query: FrameFeatures, target: FrameFeatures) -> Segment:
    """The segments with the boxes of the views that were compared, each over the frames of its segment."""
    rows = (query.timestamps >= segment.query_start - 1e-6) & (query.timestamps <= segment.query_end + 1e-6)
    columns = (target.timestamps >= segment.target_start - 1e-6) & (
        target.timestamps <= segment.target_end + 1e-6
    )
    return replace(
        segment,
        query_box=query.box(0, rows.nonzero()[:, 0]) if bool(rows.any()) else WHOLE,
        target_box=target.box(0, columns.nonzero()[:, 0]) if bool(columns.any()) else WHOLE,
    )


def _inside(segment: Segment, query_end: float | None, target_end: float | None) -> Segment:
    """The segments cut where the videos end: the last frame stands for a whole sampling period, which may end later."""
    query_end = math.inf if query_end is None else query_end
    target_end = math.inf if target_end is None else target_end
    return replace(
        segment,
        query_start=min(segment.query_start, query_end),
        query_end=min(segment.query_end, query_end),
        target_start=min(segment.target_start, target_end),
        target_end=min(segment.target_end, target_end),
    )


def _score(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: torch.Tensor,
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
    query_news, target_news = _news(query, settings.still), _news(target, settings.still)
    scored = []
    total = _Evidence.empty(query, target)
    best = 0.0
    for segment in segments:
        # Indices of the query's frames in a segment and of the target's frames beside them.
        inside = (query.timestamps >= segment.query_start - 1e-6) & (
            query.timestamps <= segment.query_end + 1e-6
        )
        rows = inside.nonzero()[:, 0]
        wanted = segment.target_start + segment.speed * (query.timestamps[rows] - segment.query_start)
        after = torch.searchsorted(target.timestamps, wanted).clamp(max=len(target) - 1)
        before = (after - 1).clamp(min=0)
        nearer = (target.timestamps[after] - wanted).abs() < (wanted - target.timestamps[before]).abs()
        columns = torch.where(nearer, after, before)
        agreement = _change_agreement(query.whole[rows], target.whole[columns], settings)
        part = _Evidence.of(frame_map, query, target, rows, columns, query_news, target_news)
        alone = part.score(agreement, settings)
        total = total.plus(part, agreement)
        best = max(best, alone, total.score(1.0, settings))
        scored.append(replace(segment, score=_spread(min(1.0, segment.score * agreement))))
    # Long segments count more than short ones that are a little surer.
    ranked = sorted(
        (segment for segment in scored if segment.score > 0),
        key=lambda segment: -segment.score * (segment.query_end - segment.query_start + 1.0),
    )
    # Beside the best one a segment that says no more than unrelated videos do is noise.
    kept = tuple(s for place, s in enumerate(ranked) if place == 0 or s.score >= _UNRELATED)
    return PairScore(best if kept else 0.0, kept, frame_map)


def _spread(value: float) -> float:
    """Monotone, 0 to 0 and 1 to 1: puts good copies of heavy edits into the upper half of the range."""
    return 1.0 - (1.0 - min(1.0, max(0.0, value))) ** 2


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Sums over matched frames of one or more segments."""

    similarity: float  # sum of weight * seconds * map
    seconds: float  # sum of weight * seconds, on the query's clock
    news: float
    query_seen: torch.Tensor  # [Tq] bool
    target_seen: torch.Tensor  # [Tt] bool
    query: FrameFeatures
    target: FrameFeatures

    @classmethod
    def empty(cls, query: FrameFeatures, target: FrameFeatures) -> _Evidence:
        return cls(
            0.0,
            0.0,
            0.0,
            torch.zeros(len(query), dtype=torch.bool),
            torch.zeros(len(target), dtype=torch.bool),
            query,
            target,
        )

    @classmethod
    def of(
        cls,
        frame_map: torch.Tensor,
        query: FrameFeatures,
        target: FrameFeatures,
        rows: torch.Tensor,
        columns: torch.Tensor,
        query_news: torch.Tensor,
        target_news: torch.Tensor,
    ) -> _Evidence:
        weights = torch.minimum(query.information[rows], target.information[columns]).float()
        seconds = query.period * weights
        # The first matching frame is news however still the video is.
        news = torch.maximum(query_news[rows], target_news[columns])
        first = float(weights[0]) * (1.0 - query.period * float(news[0])) if len(rows) else 0.0
        query_seen = torch.zeros(len(query), dtype=torch.bool)
        target_seen = torch.zeros(len(target), dtype=torch.bool)
        query_seen[rows] = True
        if len(columns):
            target_seen[int(columns.min()) : int(columns.max()) + 1] = True
        return cls(
            float((seconds * frame_map[rows, columns]).sum()),
            float(seconds.sum()),
            float((seconds * news).sum()) + max(0.0, first),
            query_seen,
            target_seen,
            query,
            target,
        )

    def plus(self, other: _Evidence, agreement: float) -> _Evidence:
        return replace(
            self,
            similarity=self.similarity + other.similarity * agreement,
            seconds=self.seconds + other.seconds,
            news=self.news + other.news,
            query_seen=self.query_seen | other.query_seen,
            target_seen=self.target_seen | other.target_seen,
        )

    def score(self, agreement: float, settings: ScoreSettings) -> float:
        if self.seconds <= 0:
            return 0.0
        covered = max(
            _covered(self.query.information, self.query_seen),
            _covered(self.target.information, self.target_seen),
        )
        # What lasts less than half a second of informative frames covers nothing worth the word.
        covered *= min(1.0, self.seconds / min(0.5, self.query.period * len(self.query)))
        believed = max(covered, 1.0 - math.exp(-self.news / settings.evidence))
        return _spread(self.similarity / self.seconds * believed * agreement)


def _covered(weights: torch.Tensor, seen: torch.Tensor) -> float:
    whole = float(weights.sum())
    return float(weights[seen].sum()) / whole if whole > 0 else 0.0


def _news(frames: FrameFeatures, still: float) -> torch.Tensor:
    """How much each frame differs from the one before, [T] in [0, 1]; 1 for the first."""
    news = torch.ones(len(frames))
    if len(frames) > 1:
        values = frames.whole.float()
        empty = (values == 0).all(-1)
        alike = (values[1:] * values[:-1]).sum(-1) + (empty[1:] & empty[:-1])
        difference = 1.0 - alike.mean(1)
        allowed = still * frames.timestamps.diff().clamp(0.25, 1.0).float()
        news[1:] = (difference / allowed).clamp(0, 1)
    return news


def _change_agreement(query: torch.Tensor, target: torch.Tensor, settings: ScoreSettings) -> float:
    """In [0, 1]: do the two stretches [n, R, D] change together?

    With r the descriptors less their mean over the stretch, ``rho = <r_q, r_t> / (|r_q| |r_t|)`` over all regions
    and frames. Two moments before a fixed camera look alike, but their changes are not correlated. The less
    changes (energy e of the calmer side), the less this says: ``1 - change_share * e / (e + change_energy) *
    (1 - max(0, rho))``.
    """
    if len(query) < 2:
        return 1.0
    query_change = query.float() - query.float().mean(0, keepdim=True)
    target_change = target.float() - target.float().mean(0, keepdim=True)
    query_energy = float(query_change.square().sum())
    target_energy = float(target_change.square().sum())
    energy = min(query_energy, target_energy) / (query.shape[0] * query.shape[1])
    if energy <= 0:
        return 1.0
    correlation = float((query_change * target_change).sum()) / math.sqrt(query_energy * target_energy)
    trust = energy / (energy + settings.change_energy)
    return 1.0 - settings.change_share * trust * (1.0 - min(1.0, max(0.0, correlation)))
