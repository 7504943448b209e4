"""Evidence from the matching frames of two videos: similarity, coverage, and how much is new.

Shapes: Tq, Tt frames of query and target; n matched pairs of frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import unchecked
from vidkin.similarity.alignment import align
from vidkin.similarity.contracts import FrameFeatures, Segment
from vidkin.similarity.frame_maps import content, frame_similarity

# Called for every pair of videos.
_align = unchecked(align)
_frame_similarity = unchecked(frame_similarity)

# Tolerance in seconds for rounding of computed times.
ROUNDING = 1e-6

# Most periods of the target between a line and its nearest frame, as in the line search.
_NEAR = 0.501

# Less than half a second of informative frames counts as no coverage.
_SHORTEST = 0.5

# Seconds from which a match is not doubted for its length, and the largest doubt.
_LONG, _MOST_DOUBT = 4.0, 0.95

# A segment repeats another one that contains more than this share of its frames, on either side.
_REPEATED = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sums over the matched frames of one or more segments.

    Attributes:
        similarity: Sum of weight * seconds * map.
        seconds: Sum of weight * seconds, on the query's clock.
        matched: Sum of seconds, whatever their weight.
        news: Sum of weight * seconds that differ from the second before.
        query_seen: [Tq] bool, matched frames of the query.
        target_seen: [Tt] bool, matched frames of the target.
        query, target: Features of the two videos.
    """

    similarity: float
    seconds: float
    matched: float
    news: float
    query_seen: NDArray[np.bool_]
    target_seen: NDArray[np.bool_]
    query: FrameFeatures
    target: FrameFeatures

    @classmethod
    def none(cls, query: FrameFeatures, target: FrameFeatures) -> Evidence:
        """Evidence of no match."""
        unseen = [np.zeros(len(side), np.bool_) for side in (query, target)]
        return cls(0.0, 0.0, 0.0, 0.0, unseen[0], unseen[1], query, target)

    @classmethod
    def of(
        cls,
        frame_map: NDArray[np.float32],
        query: FrameFeatures,
        target: FrameFeatures,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        news: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> Evidence:
        """Evidence of one segment: frames [n] of the query and the matching frames of the target; news [Tq] and
        [Tt]."""
        weights = np.minimum(query.information[rows], target.information[columns]).astype(np.float32)
        seconds = query.period * weights
        new = np.maximum(news[0][rows], news[1][columns])
        # The first matching frame is always new, however still the video is.
        first = float(weights[0]) * (1.0 - query.period * float(new[0])) if len(rows) else 0.0
        evidence = cls.none(query, target)
        evidence.query_seen[rows] = True
        if len(columns):
            evidence.target_seen[columns.min() : columns.max() + 1] = True
        return replace(
            evidence,
            similarity=float((seconds * frame_map[rows, columns]).sum()),
            seconds=float(seconds.sum()),
            matched=query.period * len(rows),
            # Many frames that match a single frame are one coincidence.
            news=min(float((seconds * new).sum()) + max(0.0, first), float(count_different(columns))),
        )

    def doubted(self, confirmation: float, settings: ScoreSettings) -> Evidence:
        """Reduce the similarity where no change confirms it.

        Two pictures that are half alike can be unrelated, however long both stand still, and pictures with little
        detail are half alike by chance: with i the mean information and c the confirmation, similarity s becomes
        ``max(0, (s - d) / (1 - d))`` where ``d = (1 - c) (doubt + doubt_of_plain (1 - i) + doubt_of_short (1 - l))``
        and ``l = min(1, seconds / 4)``; d is at most .95.
        """
        if self.seconds <= 0:
            return self
        information = self.seconds / self.matched
        doubt = settings.doubt + settings.doubt_of_plain * (1.0 - information)
        doubt += settings.doubt_of_short * (1.0 - min(1.0, self.matched / _LONG))
        doubt = min((1.0 - confirmation) * doubt, _MOST_DOUBT)
        similarity = max(0.0, (self.similarity / self.seconds - doubt) / (1.0 - doubt))
        similarity *= confirmation + (1.0 - confirmation) * settings.unconfirmed
        return replace(self, similarity=similarity * self.seconds)

    def plus(self, other: Evidence, agreement: float) -> Evidence:
        """Add another segment, unless it only repeats this evidence: no second is counted twice.

        An empty street matches an empty street any number of times.
        """
        repeated = max(_share(self.query_seen, other.query_seen), _share(self.target_seen, other.target_seen))
        if repeated > _REPEATED:
            return self
        return replace(
            self,
            similarity=self.similarity + other.similarity * agreement,
            seconds=self.seconds + other.seconds,
            matched=self.matched + other.matched,
            news=self.news + other.news,
            query_seen=self.query_seen | other.query_seen,
            target_seen=self.target_seen | other.target_seen,
        )

    def score(self, agreement: float, settings: ScoreSettings) -> float:
        """Score in [0, 1]; see :class:`vidkin.similarity.CopyScorer`."""
        if self.seconds <= 0:
            return 0.0
        covered = max(
            _covered(self.query.information, self.query_seen),
            _covered(self.target.information, self.target_seen),
        )
        covered *= min(1.0, self.seconds / min(_SHORTEST, self.query.period * len(self.query)))
        if settings.covering > 0:
            covered *= min(1.0, self.matched / settings.covering) ** 3
        believed = max(covered, 1.0 - math.exp(-self.news / settings.evidence))
        return stretch_score(self.similarity / self.seconds * believed * agreement)


def match_frames(
    query: FrameFeatures, target: FrameFeatures, segment: Segment
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices [n] of the query's frames in a segment, and indices of the nearest frames of the target."""
    places = segment.target_start + segment.speed * (query.timestamps - segment.query_start)
    begun = query.timestamps >= segment.query_start - ROUNDING
    # A segment is cut where the target begins, possibly after a frame of the query that shows the first frame.
    first = float(target.timestamps[0])
    if segment.target_start <= first + ROUNDING:
        begun |= places >= first - target.period * _NEAR
    rows = np.flatnonzero(begun & (query.timestamps <= segment.query_end + ROUNDING))
    wanted = places[rows]
    after = np.minimum(np.searchsorted(target.timestamps, wanted), len(target) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(target.timestamps[after] - wanted) < np.abs(wanted - target.timestamps[before])
    return rows, np.where(nearer, after, before)


def count_different(frames: NDArray[np.int64]) -> int:
    """Number of distinct frames among [n] sorted frames."""
    return int(np.count_nonzero(frames[1:] != frames[:-1])) + 1 if len(frames) else 0


def find_news(frames: FrameFeatures, still: float) -> NDArray[np.float32]:
    """How much each frame differs from the one before, [T] in [0, 1]; 1 for the first frame."""
    return frames.once(("news", still), lambda: _find_news(frames, still))


def _find_news(frames: FrameFeatures, still: float) -> NDArray[np.float32]:
    news = np.ones(len(frames), np.float32)
    if len(frames) > 1:
        values = frames.whole.astype(np.float32)
        empty = ~np.logical_or.reduce(values, -1)
        alike = np.einsum("trd,trd->tr", values[1:], values[:-1]) + (empty[1:] & empty[:-1])
        allowed = still * np.clip(np.diff(frames.timestamps), 0.25, 1.0)
        news[1:] = np.clip((1.0 - alike.mean(1)) / allowed, 0.0, 1.0)
    return news


def stretch_score(value: float) -> float:
    """Stretch a score monotonically from [0, 1] to [0, 1], so that copies with heavy edits reach the upper half of the
    range."""
    return 1.0 - (1.0 - min(1.0, max(0.0, value))) ** 2


def _covered(weights: NDArray[np.floating], seen: NDArray[np.bool_]) -> float:
    whole = float(weights.sum())
    return float(weights[seen].sum()) / whole if whole > 0 else 0.0


def _share(seen: NDArray[np.bool_], frames: NDArray[np.bool_]) -> float:
    """Share of these frames that were matched."""
    return float((seen & frames).sum()) / max(1, int(frames.sum()))


# Whether two stretches change together, which distinguishes copies from other moments before the same fixed camera.
#
# Shapes: Tq, Tt frames; n matched pairs of frames; R regions; D dimension.


# A segment with less agreement can consist of pieces in another order.
_DISAGREEMENT = 0.5

# How much more the pieces must explain than the segment.
_GAIN = 1.2

# Least correlation and energy of changes of a piece: two still stretches say nothing about their order.
_PIECE_CORRELATION, _PIECE_ENERGY, _PIECE_THRESHOLD = 0.7, 4.0, 0.5

LEAST_STEP = 0.1
"""Distance of two descriptors that is more than noise."""

# Least number of frames of a segment that is divided, and cells above which a segment is not examined.
_FEWEST_FRAMES, _MOST_CELLS = 5, 1 << 23


@dataclass(frozen=True, slots=True)
class Changes:
    """Evidence from the changes of two stretches.

    Attributes:
        agreement: Share of their similarity that remains, in [0, 1]: 1 if they change together or too little to tell.
        confirmation: How far changes prove them to be the same, in [0, 1]: 0 if too little changes to tell.
    """

    agreement: float
    confirmation: float


def compare_changes(
    query: FrameFeatures,
    target: FrameFeatures,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    settings: ScoreSettings,
) -> Changes:
    """Compare how two stretches change.

    With r the descriptors minus their mean over the stretch, ``rho = <r_q, r_t> / (|r_q| |r_t|)`` over all regions and
    frames, minus the value that so few frames reach by chance, and scaled to [0, 1] between ``change_least`` and
    ``change_full``. Two moments before a fixed camera look alike, but their changes are not correlated. The less a
    stretch changes (energy e of the calmer side), the less this says: with the trust ``t = e^2 / (e^2 +
    change_energy^2)`` the agreement is ``1 - change_share t (1 - rho)`` and the confirmation ``t rho``.

    Args:
        query, target: Features of the two videos.
        rows: [n] frames of the query.
        columns: [n] the matching frames of the target, in order.
        settings: Constants of the score.
    """
    energy, correlation = _change(query.whole[rows], target.whole[columns])
    if energy <= 0:
        return Changes(1.0, 0.0)
    correlation -= settings.change_chance / math.sqrt(max(count_different(columns) - 1, 1))
    related = (correlation - settings.change_least) / (settings.change_full - settings.change_least)
    related = min(1.0, max(0.0, related))
    trust = energy**2 / (energy**2 + settings.change_energy**2)
    confirmation = trust * related
    if settings.fewest_moving > 0:
        moving = min(count_moving(query.whole[rows]), count_moving(target.whole[columns]))
        confirmation *= min(1.0, (moving - 1) / settings.fewest_moving)
    return Changes(1.0 - settings.change_share * trust * (1.0 - related), confirmation)


def count_moving(values: NDArray[np.floating]) -> int:
    """Number of frames [n, R, D] that differ from the one before by more than noise, and the first: slides that change
    three times are three frames, however long each stays."""
    steps = np.square(np.diff(values.astype(np.float32, copy=False), axis=0)).sum(2).mean(1)
    return 1 + int(np.count_nonzero(steps > LEAST_STEP**2))


@dataclass(frozen=True, slots=True)
class MatchedSegment:
    """A segment, its frames and what their changes say.

    Attributes:
        segment: The segment.
        rows, columns: [n] frames of the query and the matching ones of the target, from :func:`match_frames`.
        changes: From :func:`compare_changes`.
    """

    segment: Segment
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    changes: Changes

    @classmethod
    def of(
        cls, query: FrameFeatures, target: FrameFeatures, segment: Segment, settings: ScoreSettings
    ) -> MatchedSegment:
        """Match the frames of a segment and compare their changes."""
        rows, columns = match_frames(query, target, segment)
        return cls(segment, rows, columns, compare_changes(query, target, rows, columns, settings))

    def explains(self, query: FrameFeatures, frame_map: NDArray[np.float32]) -> float:
        """Informative similarity along the segment, scaled by the agreement of its changes."""
        similar = float((query.information[self.rows] * frame_map[self.rows, self.columns]).sum())
        return self.changes.agreement * similar


def split_by_changes(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: NDArray[np.float32],
    segments: Sequence[Segment],
    settings: ScoreSettings,
) -> list[MatchedSegment]:
    """Divide segments whose pieces come in another order; return all segments with their frames.

    Before a fixed camera all frames look alike, so one line through all of them explains more than the pieces. Only
    the changes show where each piece is: the segment's part of the map is replaced by the correlation of changes and
    aligned again.
    """
    result: list[MatchedSegment] = []
    for segment in segments:
        matched = MatchedSegment.of(query, target, segment, settings)
        result += _find_pieces(query, target, frame_map, matched, settings) or [matched]
    return result


def _find_pieces(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: NDArray[np.float32],
    whole: MatchedSegment,
    settings: ScoreSettings,
) -> list[MatchedSegment]:
    rows, columns = whole.rows, whole.columns
    if count_different(columns) < _FEWEST_FRAMES or whole.changes.agreement >= _DISAGREEMENT:
        return []
    stretch = slice(int(columns.min()), int(columns.max()) + 1)
    if len(rows) * (stretch.stop - stretch.start) > _MOST_CELLS:
        return []
    changes = [_directions_of_change(values) for values in (query.whole[rows], target.whole[stretch])]
    similar = frame_map[rows, stretch] > settings.threshold
    segments = _align(
        np.clip(changes[0] @ changes[1].T, 0.0, 1.0) * similar,
        query.timestamps[rows],
        target.timestamps[stretch],
        query_weights=query.information[rows],
        target_weights=target.information[stretch],
        threshold=_PIECE_THRESHOLD,
        maximum_segments=settings.maximum_segments,
        mirrored=whole.segment.mirrored,
    )
    pieces = []
    for piece in segments:
        rows, columns = match_frames(query, target, piece)
        energy, correlation = _change(query.whole[rows], target.whole[columns])
        if correlation >= _PIECE_CORRELATION and energy >= _PIECE_ENERGY * settings.change_energy:
            weights = np.minimum(query.information[rows], target.information[columns])
            mean = float((weights * frame_map[rows, columns]).sum() / weights.sum())
            pieces.append(MatchedSegment.of(query, target, replace(piece, score=min(1.0, mean)), settings))
    gained = sum(piece.explains(query, frame_map) for piece in pieces)
    return pieces if gained > _GAIN * whole.explains(query, frame_map) else []


def _directions_of_change(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Unit vectors [n, R x D] of descriptors [n, R, D] minus their mean; zeros stay zeros."""
    flat = values.astype(np.float32).reshape(len(values), -1)
    flat -= flat.mean(0)
    flat /= np.maximum(np.sqrt(np.einsum("nd,nd->n", flat, flat)), 1e-12)[:, None]
    return flat


def _change(query: NDArray[np.floating], target: NDArray[np.floating]) -> tuple[float, float]:
    """Energy of change of the calmer of two stretches [n, R, D], and the correlation of their changes."""
    if len(query) < 2:
        return 0.0, 0.0
    changes = []
    for values in (query, target):
        flat = values.astype(np.float32)
        flat -= flat.mean(0)
        changes.append(flat.reshape(-1))
    query_energy, target_energy = (float(change @ change) for change in changes)
    energy = min(query_energy, target_energy)
    if energy <= 0:
        return 0.0, 0.0
    correlation = float(changes[0] @ changes[1]) / math.sqrt(query_energy * target_energy)
    return energy / (query.shape[0] * query.shape[1]), correlation


# Which view of one video shows the other: maps of all view pairs in which one side is the whole picture.
#
# Shapes: Tq, Tt frames; Vq, Vt views; R regions; D dimension; P pairs of views.


# Cells of maps computed at once where only the nearest frames are asked for: they stay in the processor's cache.
_MOST_CELLS_AT_ONCE = 1 << 18
MOST_KEPT = 4 << 20
"""Bytes of features up to which what is computed of their views is kept with them: of a long video that would be as
much memory again."""

# By how much products of many frames at once may differ from those of few.
_ROUNDING_OF_PRODUCTS = 1e-5

# Similarity that two parts reach by chance, as the best of dozens of pairs of views counts, or of hundreds of parts.
_PART_FLOOR, _PAIR_FLOOR = 0.15, 0.15


class ComparedVideo:
    """One of two videos, with what every comparison of its views needs.

    Attributes:
        features: Features in all views.
        whole: Features of the whole picture only.
        seen: The same of the frames in which parts were described; of all if there are none.
        described: [n] frames in which parts of the picture were described; elsewhere nothing is known about parts.
        part_weight: Number of frames per frame with described parts.
        whole_values, part_values: [T, R, D] and [V - 1, n, R, D] float32; no parts if none were described.
        whole_stretch, part_stretch: [T] and [V - 1, n], ``1 / (1 - b)`` with the baselines b.
    """

    def __init__(self, features: FrameFeatures) -> None:
        self.features = features
        is_kept = features.values.nbytes <= MOST_KEPT
        arrays = features.once(_ViewArrays, lambda: _ViewArrays.of(features)) if is_kept else _ViewArrays.of(features)
        self.whole, self.seen, self.described = arrays.whole, arrays.seen, arrays.described
        self.part_weight = len(features) / max(len(self.described), 1)
        self.whole_values, self.part_values = arrays.whole_values, arrays.part_values
        self.whole_stretch, self.part_stretch = arrays.whole_stretch, arrays.part_stretch

    @property
    def part_period(self) -> float:
        """Seconds from one frame with described parts to the next."""
        return self.whole.period * self.part_weight

    def part_stride(self, rate: float) -> int:
        """Take every so many of the described frames for about ``rate`` frames per second."""
        return max(1, round(1.0 / (rate * self.part_period)))


@dataclass(frozen=True, slots=True)
class _ViewArrays:
    """What a :class:`ComparedVideo` has computed of its features; nothing in it refers to them."""

    whole: FrameFeatures
    seen: FrameFeatures
    described: NDArray[np.int64]
    whole_values: NDArray[np.float32]
    part_values: NDArray[np.float32]
    whole_stretch: NDArray[np.float32]
    part_stretch: NDArray[np.float32]

    @classmethod
    def of(cls, features: FrameFeatures) -> _ViewArrays:
        values = np.asarray(features.values, np.float32)
        if values.shape[1] > 1:
            described = np.flatnonzero(np.logical_or.reduce(values[:, 1:], (1, 2, 3)))
        else:
            described = np.zeros(0, np.int64)
        parts = slice(1, None if len(described) else 1)
        stretch = (1.0 / (1.0 - features.baselines)).astype(np.float32)
        whole = features.views([0])
        return cls(
            whole,
            whole if len(described) in (0, len(whole)) else whole.frames(described),
            described,
            np.ascontiguousarray(values[:, 0]),
            np.ascontiguousarray(values[described, parts].swapaxes(0, 1)),
            stretch[:, 0],
            stretch[described, parts].T,
        )


@dataclass(frozen=True, slots=True)
class PairMaps:
    """Calibrated maps of one pair of videos: of the whole pictures, and of each part with the other's whole picture.

    Parts have distances ``(1 - s) / (1 - b)`` instead of similarities, as most of them are only looked through.

    Attributes:
        whole: [Tq, Tt] float32 in [0, 1].
        query_parts: [Vq - 1, nq, Tt] float32, distances of views 1, 2... of the query's described frames.
        target_parts: [Vt - 1, nt, Tq] float32, the same for the target.
    """

    whole: NDArray[np.float32]
    query_parts: NDArray[np.float32]
    target_parts: NDArray[np.float32]


def compare_views(query: ComparedVideo, target: ComparedVideo, *, spatial_share: float | None = None) -> PairMaps:
    """Compare every view of the query with the whole target, and the whole query with every view of the target.

    Every map is calibrated by both sides' baselines in the compared views: ``clamp((s - b) / (1 - b), 0, 1)``
    with b the larger baseline. The best of many parts is similar by chance, so for parts b is raised by .15 (1 - b).

    Args:
        query, target: The two videos.
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
    """
    floor = 1.0 / (1.0 - _PART_FLOOR)
    return PairMaps(
        compare_whole(query, target, spatial_share=spatial_share),
        *(
            _stretched(
                _compare(one.part_values, other.whole_values, spatial_share),
                one.part_stretch * np.float32(floor),
                other.whole_stretch * np.float32(floor),
            )
            for one, other in ((query, target), (target, query))
        ),
    )


def compare_whole(
    query: ComparedVideo, target: ComparedVideo, *, spatial_share: float | None = None
) -> NDArray[np.float32]:
    """The map of whole pictures alone, as :func:`compare_views` computes it."""
    whole = _compare(query.whole_values, target.whole_values, spatial_share)
    return similarities_from(_stretched(whole, query.whole_stretch, target.whole_stretch))


def most_similar(query: ComparedVideo, targets: Sequence[ComparedVideo]) -> NDArray[np.float32]:
    """Upper bounds [targets] of every cell in the maps of :func:`compare_views`, for one region a frame.

    Short videos are compared together, which takes a fraction of the time that their maps take one after the other. Of
    longer ones, which have some similar frames anyway, nothing is said: 1.
    """
    highest = np.ones(len(targets), np.float32)
    count = len(query.whole_values)
    rows = max(count, query.part_values.shape[0] * query.part_values.shape[1])
    cells = [
        max(rows * len(target.whole_values), count * target.part_values.shape[0] * target.part_values.shape[1])
        for target in targets
    ]
    short = [place for place, size in enumerate(cells) if size <= _MOST_CELLS_AT_ONCE]
    while short:
        total = np.cumsum([cells[place] for place in short])
        taken = int(np.searchsorted(total, _MOST_CELLS_AT_ONCE, side="right"))
        chosen, short = short[:taken], short[taken:]
        highest[chosen] = _most_similar(query, [targets[place] for place in chosen])
    return np.asarray(np.minimum(highest + np.float32(_ROUNDING_OF_PRODUCTS), np.float32(1)))


def _most_similar(query: ComparedVideo, targets: Sequence[ComparedVideo]) -> NDArray[np.float32]:
    """The largest similarity of each target; see :func:`most_similar`."""
    raised = np.float32(1.0 / (1.0 - _PART_FLOOR))
    frames = np.concatenate([target.whole_values[:, 0] for target in targets])
    stretch = np.concatenate([target.whole_stretch for target in targets])
    starts = np.cumsum([0, *(len(target.whole_values) for target in targets[:-1])])
    whole = query.whole_values[:, 0]
    # The nearest frame of the query to each frame of the targets, in any view of the query.
    nearest = _stretched(whole @ frames.T, query.whole_stretch, stretch).min(axis=0)
    parts = query.part_values.reshape(-1, query.part_values.shape[-1])
    if len(parts):
        of_parts = _stretched(parts @ frames.T, query.part_stretch.reshape(-1) * raised, stretch * raised)
        np.minimum(nearest, of_parts.min(axis=0), out=nearest)
    distances = np.minimum.reduceat(nearest, starts)
    described = [place for place, target in enumerate(targets) if target.part_values.size]
    if described:
        flat = [targets[place].part_values.reshape(-1, whole.shape[-1]) for place in described]
        stretches = np.concatenate([targets[place].part_stretch.reshape(-1) for place in described])
        back = _stretched(np.concatenate(flat) @ whole.T, stretches * raised, query.whole_stretch * raised)
        starts = np.cumsum([0, *map(len, flat[:-1])])
        distances[described] = np.minimum(distances[described], np.minimum.reduceat(back.min(axis=1), starts))
    return np.asarray(np.clip(1 - distances, 0, 1))


def compare_parts(
    query: NDArray[np.float32],
    query_stretch: NDArray[np.float32],
    target: NDArray[np.float32],
    target_stretch: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Distances ``(1 - s) / (1 - b)`` [P, n, m, Pt] of every part of one video and every part of another.

    As the best of hundreds of pairs counts, b is the larger baseline raised by .15 (1 - b).

    Args:
        query, target: [P, n, R, D] and [Pt, m, R, D], descriptors of the parts.
        query_stretch, target_stretch: [P, n] and [Pt, m], ``1 / (1 - b)`` with the baselines b.
    """
    # Frames before parts: what is nearest over frames is found many times as fast if they are not the last axis.
    target, target_stretch = target.swapaxes(0, 1), target_stretch.T
    shape = (*query.shape[:2], *target.shape[:2])
    rows, columns = (side.reshape(-1, *side.shape[2:]) for side in (query, target))
    raised = np.float32(1.0 / (1.0 - _PAIR_FLOOR))
    flat = _stretched(_compare(rows, columns, None), query_stretch.reshape(-1) * raised,
                      target_stretch.reshape(-1) * raised)  # fmt: skip
    return flat.reshape(shape)


def similarities_from(distances: NDArray[np.float32]) -> NDArray[np.float32]:
    """Calibrated similarities in [0, 1] from distances."""
    result = 1 - distances
    np.clip(result, 0, 1, out=result)
    return result


def _stretched(
    similarities: NDArray[np.float32], first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Distances ``(1 - s) / (1 - b)``, in the memory of similarities [..., n, T], where first [..., n] and second [T]
    are ``1 / (1 - b)`` with the baselines b of both sides."""
    np.subtract(1, similarities, out=similarities)
    similarities *= np.maximum(first[..., None], second)
    return similarities


def _compare(
    views: NDArray[np.float32], frames: NDArray[np.float32], spatial_share: float | None
) -> NDArray[np.float32]:
    """Similarities [..., n, T] of views [..., n, R, D] with whole pictures [T, R, D]."""
    rows = views.reshape(-1, *views.shape[-2:])
    if not len(rows):
        return np.zeros((*views.shape[:-2], len(frames)), np.float32)
    similarities: NDArray[np.float32]
    if rows.shape[1] == frames.shape[1] == 1:
        # What that is with a single region; empty ones need no mask, as their product is 0.
        similarities = rows[:, 0] @ frames[:, 0].T
    else:
        masks = content(rows), content(frames)
        similarities = _frame_similarity(
            rows, frames, symmetric=True, spatial_share=spatial_share, query_mask=masks[0], target_mask=masks[1]
        )
    return similarities.reshape(*views.shape[:-2], len(frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Constants of the score; docs/scoring.md explains how they were chosen.

    Attributes:
        threshold: Least calibrated similarity at which two frames count toward a match.
        evidence: Seconds of moving, informative, matching video that make a match credible by itself. A match that
            covers one of the two videos does not need this length.
        evidence_of_parts: The same for a part of one picture, which is the best of dozens of parts.
        evidence_of_part_pairs: The same for a part of one picture in a part of the other.
        covering: Seconds that a match must last to be credible because it covers one of the videos; a shorter one
            counts by the cube of its share, and 0 lets every length count.
        covering_of_part_pairs: The same for pairs of parts: among hundreds of them, some are alike for three seconds.
        threshold_of_part_pairs, doubt_of_part_pairs, doubt_of_plain_part_pairs: ``threshold``, ``doubt`` and
            ``doubt_of_plain`` for these: their baselines are raised instead (`compare_parts`).
        still: Least value of one minus the cosine of two frames a second apart at which the second counts as new.
        change_energy: Mean squared change of the descriptors at which changes are half trusted: several times the
            change that noise and compression cause in a still picture, so it depends on the extractor.
        change_share: Share of the score, in [0, 1], that is lost when the changes in the two videos are unrelated (two
            moments before one fixed camera).
        change_least: Correlation up to which changes count as unrelated.
        change_full: Correlation from which changes count as the same.
        change_chance: Divided by the square root of the number of frames minus one, this is the correlation that
            unrelated changes reach by chance; it is subtracted.
        doubt: Similarity of two stretches, in [0, 1), that means nothing if no change confirms it.
        doubt_of_plain: Similarity, in [0, 1), that in addition means nothing in pictures without detail.
        unconfirmed: Share of the similarity that is left where no change confirms it.
        unconfirmed_of_part_pairs: The same for pairs of parts: the same plain strip is in many web pages.
        fewest_moving, fewest_moving_of_part_pairs: Frames that must differ from the one before for changes to confirm
            fully; 0 asks for none.
        doubt_of_short: Similarity, in [0, 1), that in addition means nothing in a match of a moment, and less in one
            of up to 4 s.
        doubt_of_short_parts: The same for a part of one picture.
        region_threshold: Least agreement of changes in all regions of two frames that counts.
        region_chance: Divided by the square root of the number of frames minus one, the correlation that the changes of
            the best regions of unrelated videos reach by chance.
        region_full: Correlation above that from which the regions are certain to show the same.
        region_energy: ``change_energy`` of a single region.
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
        maximum_segments: Maximum number of segments reported per pair.
    """

    threshold: float = 0.3
    evidence: float = 2.0
    evidence_of_parts: float = 4.0
    evidence_of_part_pairs: float = 6.0
    covering: float = 0.0
    covering_of_part_pairs: float = 8.0
    threshold_of_part_pairs: float = 0.25
    doubt_of_part_pairs: float = 0.3
    doubt_of_plain_part_pairs: float = 0.3
    still: float = 0.15
    change_energy: float = 0.005
    change_share: float = 0.9
    change_least: float = 0.25
    change_full: float = 0.6
    change_chance: float = 0.2
    doubt: float = 0.4
    doubt_of_plain: float = 0.4
    unconfirmed: float = 1.0
    unconfirmed_of_part_pairs: float = 0.1
    fewest_moving: float = 0.0
    fewest_moving_of_part_pairs: float = 4.0
    doubt_of_short: float = 0.0
    doubt_of_short_parts: float = 0.4
    region_threshold: float = 0.2
    region_chance: float = 0.8
    region_full: float = 0.2
    region_energy: float = 0.01
    spatial_share: float | None = None
    maximum_segments: int = 8
