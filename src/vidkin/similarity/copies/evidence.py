"""Evidence from the matching frames of two videos: similarity, coverage, and how much is new.

Shapes: Tq, Tt frames of query and target; n matched pairs of frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from vidkin.similarity.copies.settings import ScoreSettings
from vidkin.similarity.frame_features import FrameFeatures
from vidkin.similarity.segment import Segment

__all__ = ["Evidence", "count_different", "find_news", "match_frames", "stretch_score"]

# Tolerance in seconds for rounding of computed times.
ROUNDING = 1e-6
# Most periods of the target between a line and its nearest frame, as in the line search.
_NEAR = 0.501
# Less than half a second of informative frames counts as no coverage.
_SHORTEST = 0.5
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
    query_seen: torch.Tensor
    target_seen: torch.Tensor
    query: FrameFeatures
    target: FrameFeatures

    @classmethod
    def none(cls, query: FrameFeatures, target: FrameFeatures) -> Evidence:
        """Evidence of no match."""
        unseen = [torch.zeros(len(side), dtype=torch.bool) for side in (query, target)]
        return cls(0.0, 0.0, 0.0, 0.0, unseen[0], unseen[1], query, target)

    @classmethod
    def of(
        cls,
        frame_map: torch.Tensor,
        query: FrameFeatures,
        target: FrameFeatures,
        rows: torch.Tensor,
        columns: torch.Tensor,
        news: tuple[torch.Tensor, torch.Tensor],
    ) -> Evidence:
        """Evidence of one segment: frames [n] of the query and the matching frames of the target; news [Tq] and
        [Tt]."""
        weights = torch.minimum(query.information[rows], target.information[columns]).float()
        seconds = query.period * weights
        new = torch.maximum(news[0][rows], news[1][columns])
        # The first matching frame is always new, however still the video is.
        first = float(weights[0]) * (1.0 - query.period * float(new[0])) if len(rows) else 0.0
        evidence = cls.none(query, target)
        evidence.query_seen[rows] = True
        if len(columns):
            evidence.target_seen[int(columns.min()) : int(columns.max()) + 1] = True
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
        ``max(0, (s - d) / (1 - d))`` where ``d = (1 - c) (doubt + doubt_of_plain (1 - i))``.
        """
        if self.seconds <= 0:
            return self
        information = self.seconds / self.matched
        doubt = (1.0 - confirmation) * (settings.doubt + settings.doubt_of_plain * (1.0 - information))
        similarity = max(0.0, (self.similarity / self.seconds - doubt) / (1.0 - doubt))
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
        believed = max(covered, 1.0 - math.exp(-self.news / settings.evidence))
        return stretch_score(self.similarity / self.seconds * believed * agreement)


def match_frames(
    query: FrameFeatures, target: FrameFeatures, segment: Segment
) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices [n] of the query's frames in a segment, and indices of the nearest frames of the target."""
    places = segment.target_start + segment.speed * (query.timestamps - segment.query_start)
    begun = query.timestamps >= segment.query_start - ROUNDING
    # A segment is cut where the target begins, possibly after a frame of the query that shows the first frame.
    first = float(target.timestamps[0])
    if segment.target_start <= first + ROUNDING:
        begun |= places >= first - target.period * _NEAR
    rows = (begun & (query.timestamps <= segment.query_end + ROUNDING)).nonzero()[:, 0]
    wanted = places[rows]
    after = torch.searchsorted(target.timestamps, wanted).clamp(max=len(target) - 1)
    before = (after - 1).clamp(min=0)
    nearer = (target.timestamps[after] - wanted).abs() < (wanted - target.timestamps[before]).abs()
    return rows, torch.where(nearer, after, before)


def count_different(frames: torch.Tensor) -> int:
    """Number of distinct frames among [n] sorted frames."""
    return int((frames.diff() != 0).sum()) + 1 if len(frames) else 0


def find_news(frames: FrameFeatures, still: float) -> torch.Tensor:
    """How much each frame differs from the one before, [T] in [0, 1]; 1 for the first frame."""
    news = torch.ones(len(frames))
    if len(frames) > 1:
        values = frames.whole.float()
        empty = (values == 0).all(-1)
        alike = (values[1:] * values[:-1]).sum(-1) + (empty[1:] & empty[:-1])
        difference = 1.0 - alike.mean(1)
        allowed = still * frames.timestamps.diff().clamp(0.25, 1.0).float()
        news[1:] = (difference / allowed).clamp(0, 1)
    return news


def stretch_score(value: float) -> float:
    """Stretch a score monotonically from [0, 1] to [0, 1], so that copies with heavy edits reach the upper half of the
    range."""
    return 1.0 - (1.0 - min(1.0, max(0.0, value))) ** 2


def _covered(weights: torch.Tensor, seen: torch.Tensor) -> float:
    whole = float(weights.sum())
    return float(weights[seen].sum()) / whole if whole > 0 else 0.0


def _share(seen: torch.Tensor, frames: torch.Tensor) -> float:
    """Share of these frames that were matched."""
    return float((seen & frames).sum()) / max(1, int(frames.sum()))
