"""Measure the recall of the first search stage against exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.stages import score_candidates
from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.contract import VectorStore
from vidkin.match import frame_map
from vidkin.similarity import UNRELATED, FrameFeatures, Scorer

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class RecallReport(Result):
    """First-stage recall.

    Attributes:
        queries: Number of indexed videos that were used as queries.
        limit: Maximum number of candidates per query.
        relevant: Number of videos that exhaustive search scores at least ``threshold``, summed over all queries.
        found: Number of relevant videos among the candidates.
        threshold: Minimum score of a relevant video.
    """

    queries: int
    limit: int
    relevant: int
    found: int
    threshold: float

    @property
    def recall(self) -> float:
        """Fraction of relevant videos that the first stage finds; 1.0 if there are none."""
        return self.found / self.relevant if self.relevant else 1.0


def measure_recall(
    store: VectorStore,
    scorer: Scorer,
    *,
    queries: int = 50,
    limit: int = 100,
    threshold: float = UNRELATED,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> RecallReport:
    """Measure recall@limit of the first stage.

    Queries are sampled from the index. Each is compared with all other videos frame by frame. The ``limit`` best are
    scored like search results, and those that reach ``threshold`` count as relevant.

    Args:
        store: Store of the index.
        scorer: Scorer of the index.
        queries: Number of videos to sample as queries.
        limit: Maximum number of candidates per query.
        threshold: Minimum score of a relevant video.
        seed: Random seed for sampling the queries.
        on_progress: Callback that receives (queries done, total number of queries).

    Raises:
        InvalidArgumentError: A number is out of range.
    """
    if queries < 1 or limit < 1:
        raise InvalidArgumentError(f"queries and limit must be at least 1, got {queries} and {limit}")
    ids = [record.id for record in store.videos() if record.status == "ok" and record.frames > 0]
    sampled = random.Random(seed).sample(ids, min(queries, len(ids)))
    relevant = hits = 0
    for done, video_id in enumerate(sampled, start=1):
        query = prepare_features(store.read(video_id))
        nearest = rank_exhaustively(store, query, [other for other in ids if other != video_id], limit)
        truth = {other for other, pair in score_candidates(store, query, nearest, scorer) if pair.score >= threshold}
        candidates = [other for other in find_candidates(store, query, limit + 1) if other != video_id]
        relevant += len(truth)
        hits += len(truth & set(candidates[:limit]))
        if on_progress is not None:
            on_progress(done, len(sampled))
    return RecallReport(len(sampled), limit, relevant, hits, threshold)


def rank_exhaustively(store: VectorStore, query: FrameFeatures, ids: list[int], limit: int) -> list[int]:
    """Return the ids of the ``limit`` videos with the highest mean calibrated frame similarity, best first."""
    ranked: list[tuple[float, int]] = []
    for first in range(0, len(ids), _CHUNK):
        chunk = ids[first : first + _CHUNK]
        targets = [prepare_features(features) for features in store.read_many(chunk)]
        for video_id, target in zip(chunk, targets, strict=True):
            sides = query, target
            similarity = frame_map(*(side.vectors[:, 0] for side in sides), *(side.baselines[:, 0] for side in sides))
            similarity = similarity * np.minimum(query.information[:, None], target.information[None, :])
            best = max(float(similarity.max(axis=1).mean()), float(similarity.max(axis=0).mean()))
            ranked.append((-best, video_id))
    return [video_id for _, video_id in sorted(ranked)[:limit]]
