"""Two stages: candidates from the window vectors, then exact scores and segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.index.match import Match
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.query import Query, frame_set
from vidkin.index.storage.contract import VectorStore, VideoRecord
from vidkin.index.windows import frame_vectors
from vidkin.similarity import CopyScorer, FrameFeatures, PairScore, Scorer, Segment

__all__ = ["find_candidates", "score_candidates", "search", "with_identical"]

_MOST_QUERY_VECTORS = 64
_WINDOWS_PER_CANDIDATE = 4


def search(
    store: VectorStore,
    query: Query,
    common: CommonFrames,
    *,
    limit: int = 10,
    threshold: float = 0.0,
    candidates: int = 100,
    scorer: Scorer | None = None,
    exclude: frozenset[int] = frozenset(),
) -> list[Match]:
    """The best matches of a query, best first; ties in the order of their paths.

    Args:
        limit: At most so many.
        threshold: Scores below it are left out; 0 keeps all that has any common moment.
        candidates: How many videos the first stage hands to the second.
        exclude: Ids that are not wanted, such as the query's own.
    """
    if limit < 1 or candidates < 1:
        raise InvalidArgumentError(
            f"limit is {limit} and candidates is {candidates}, allowed is 1 or more for both"
        )
    if not 0.0 <= threshold <= 1.0:
        raise InvalidArgumentError(f"threshold is {threshold}, allowed is [0, 1]")
    ids = [
        candidate
        for candidate in find_candidates(store, query, candidates + len(exclude))
        if candidate not in exclude
    ]
    scores = score_candidates(store, query, ids[:candidates], common, scorer=scorer)
    matches = [
        Match(store.get(video_id).path, scored.score, scored.segments, video_id)
        for video_id, scored in scores
        if scored.score > 0 and scored.score >= threshold
    ]
    return sorted(matches, key=lambda match: (-match.score, match.path))[:limit]


def find_candidates(store: VectorStore, query: Query, count: int) -> list[int]:
    """First stage: ids of at most ``count`` videos, most promising first.

    Each view of the query (plain, mirrored) gives a vector per informative frame; a video's promise is its best
    cosine with any of them plus a tenth of the mean over the query's vectors of its best cosines.
    """
    promise: dict[int, float] = {}
    for view in (query.plain, query.mirrored):
        if view is None:
            continue
        vectors = _query_vectors(view)
        if len(vectors) == 0:
            continue
        nearest = store.nearest(vectors, _WINDOWS_PER_CANDIDATE * count)
        for video_id, value in _promises(nearest.video_ids, nearest.scores).items():
            promise[video_id] = max(value, promise.get(video_id, -1.0))
    ranked = sorted(promise.items(), key=lambda item: (-item[1], item[0]))
    return [video_id for video_id, _ in ranked[:count]]


def score_candidates(
    store: VectorStore,
    query: Query,
    video_ids: Sequence[int],
    common: CommonFrames,
    *,
    scorer: Scorer | None = None,
) -> list[tuple[int, PairScore]]:
    """Second stage: exact scores of these videos, the better of the plain and the mirrored view each."""
    readable = [video_id for video_id in video_ids if store.get(video_id).frames > 0]
    if not readable:
        return []
    targets: list[FrameFeatures] = [
        frame_set(features, common, store.get(video_id).duration)
        for video_id, features in zip(readable, store.read_many(readable), strict=True)
    ]
    scorer = scorer or CopyScorer()
    best = scorer.score(query.plain, targets)
    if query.mirrored is not None:
        flipped = scorer.score(query.mirrored, targets, mirrored=True)
        best = [
            other if other.score > plain.score else plain for plain, other in zip(best, flipped, strict=True)
        ]
    return list(zip(readable, best, strict=True))


def with_identical(
    matches: Sequence[Match], records: Iterable[VideoRecord], content_hash: str, limit: int
) -> list[Match]:
    """Files with the query's own bytes put first with a score of 1, whatever their frames say.

    A video of black frames or plain sky has nothing to be found by, but a copy of the file is a copy.
    """
    same = {}
    for record in records:
        if record.status == "ok" and record.content_hash == content_hash:
            whole = Segment(0.0, record.duration, 0.0, record.duration, 1.0)
            same[record.id] = Match(record.path, 1.0, (whole,), record.id)
    for match in matches:
        # Where the container does not say how long the video is, the frames do.
        if match.video_id in same and match.segments and same[match.video_id].segments[0].query_end <= 0:
            same[match.video_id] = Match(match.path, 1.0, match.segments, match.video_id)
    others = [match for match in matches if match.video_id not in same]
    return [*sorted(same.values(), key=lambda match: match.path), *others][:limit]


def _query_vectors(view: FrameFeatures) -> torch.Tensor:
    """Window-like vectors of the query's informative frames, at most 64, evenly spread."""
    informative = (view.information >= 0.05).nonzero()[:, 0]
    if len(informative) > _MOST_QUERY_VECTORS:
        steps = torch.linspace(0, len(informative) - 1, _MOST_QUERY_VECTORS).round().long()
        informative = informative[steps]
    return frame_vectors(view.whole[informative].float())


def _promises(video_ids: torch.Tensor, scores: torch.Tensor) -> dict[int, float]:
    """[Q, K] nearest windows to one number a video."""
    best: dict[int, dict[int, float]] = {}
    for row, (ids, values) in enumerate(zip(video_ids.tolist(), scores.tolist(), strict=True)):
        for video_id, value in zip(ids, values, strict=True):
            if video_id >= 0:
                rows = best.setdefault(video_id, {})
                rows[row] = max(value, rows.get(row, -1.0))
    count = len(video_ids)
    return {
        video_id: max(rows.values()) + 0.1 * sum(rows.values()) / count for video_id, rows in best.items()
    }
