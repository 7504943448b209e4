"""Measure how much the first stage of search misses compared with exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.common import CommonFrames, weigh_features
from vidkin.index.query.query import query_from_stored
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.contract import VectorStore
from vidkin.similarity import UNRELATED, FrameFeatures, Scorer, calibrated_map, frame_similarity_many

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class RecallReport(Result):
    """First-stage recall.

    Attributes:
        queries: Number of videos of the index that were used as queries.
        limit: Size of the candidate list.
        relevant: Number of videos that exhaustive search scores ``threshold`` or more, over all queries.
        found: Number of relevant videos among the candidates of the first stage.
        threshold: Score from which on a video is relevant.
    """

    queries: int
    limit: int
    relevant: int
    found: int
    threshold: float

    @property
    def recall(self) -> float:
        """Share of the relevant videos that the first stage finds; 1.0 if none is relevant."""
        return self.found / self.relevant if self.relevant else 1.0


def measure_recall(
    store: VectorStore,
    common: CommonFrames,
    scorer: Scorer,
    *,
    queries: int = 50,
    limit: int = 100,
    threshold: float = UNRELATED,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> RecallReport:
    """Measure recall@limit of the first stage.

    Videos of the index, drawn with a seed, are the queries. Every other video is compared with each of them
    exactly (TopK-Chamfer over all regions and frames); the ``limit`` best of these are scored like search results, and
    those that reach ``threshold`` are what the first stage should find.

    Args:
        store: Store of the index.
        common, scorer: Common frames and scorer of the index.
        queries: Number of videos to draw.
        limit: Number of candidates.
        threshold: Score from which on a video is relevant.
        seed: Seed of the draw.
        on_progress: Callback that receives (queries done, total number of queries).

    Raises:
        InvalidArgumentError: A number is out of range.
    """
    if queries < 1 or limit < 1:
        raise InvalidArgumentError(f"queries and limit must be at least 1, got {queries} and {limit}")
    ids = [record.id for record in store.videos() if record.status == "ok" and record.frames > 0]
    drawn = random.Random(seed).sample(ids, min(queries, len(ids)))
    relevant = hits = 0
    for done, video_id in enumerate(drawn, start=1):
        query = query_from_stored(store.read(video_id), common)
        nearest = _exhaustive(store, query.plain, [other for other in ids if other != video_id], common, limit)
        truth = {
            other for other, pair in score_candidates(store, query, nearest, common, scorer) if pair.score >= threshold
        }
        candidates = [other for other in find_candidates(store, query, limit + 1) if other != video_id]
        relevant += len(truth)
        hits += len(truth & set(candidates[:limit]))
        if on_progress is not None:
            on_progress(done, len(drawn))
    return RecallReport(len(drawn), limit, relevant, hits, threshold)


def _exhaustive(
    store: VectorStore, query: FrameFeatures, ids: list[int], common: CommonFrames, limit: int
) -> list[int]:
    """Ids of the ``limit`` videos nearest by calibrated Chamfer similarity over all frames, best first."""
    similarity: list[tuple[float, int]] = []
    for first in range(0, len(ids), _CHUNK):
        chunk = ids[first : first + _CHUNK]
        targets = [weigh_features(features, common) for features in store.read_many(chunk)]
        maps = frame_similarity_many(query.whole, [target.whole for target in targets], symmetric=True)
        for video_id, target, raw in zip(chunk, targets, maps, strict=True):
            frame_map = calibrated_map(raw, query.baselines[:, 0], target.baselines[:, 0])
            frame_map = frame_map * np.minimum(query.information[:, None], target.information[None, :])
            best = max(float(frame_map.max(axis=1).mean()), float(frame_map.max(axis=0).mean()))
            similarity.append((-best, video_id))
    return [video_id for _, video_id in sorted(similarity)[:limit]]
