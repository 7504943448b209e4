"""Data for curating a collection: video and frame embeddings, and pairs known to match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import Result
from vidkin.index.duplicates.comparisons import Comparisons, content_of
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord, frame_vectors, unit_vectors
from vidkin.media.notebook import Card
from vidkin.similarity import Segment

# Number of videos whose features are in memory at a time.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class IndexPair(Result):
    """Two videos of an index that have been compared.

    Attributes:
        first, second: Their paths, sorted by name.
        score: Confidence in [0, 1] that they show the same footage.
        segments: Matching segments, with the first video as the query.
    """

    first: str
    second: str
    score: float
    segments: tuple[Segment, ...]

    def cards(self, path: str = "") -> list[Card]:
        """One frame of each video, from the start of the longest segment."""
        longest = max(self.segments, key=lambda each: each.query_end - each.query_start, default=None)
        times = (None, None) if longest is None else (longest.query_start, longest.target_start)
        names = (self.first, self.second)
        return [Card(name, time, name, f"{self.score:.2f}") for name, time in zip(names, times, strict=True)]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row with the paths, the score and the number of segments."""
        return [{"first": self.first, "second": self.second, "score": self.score, "segments": len(self.segments)}]


def embed_videos(
    store: VectorStore, video_ids: Sequence[int], *, mean: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return ids [N] and vectors [N, D] of videos with frames, one per video or per frame; see
    :meth:`vidkin.index.Index.embeddings`."""
    ids, parts = [], []
    for first in range(0, len(video_ids), _BATCH):
        read = video_ids[first : first + _BATCH]
        for video_id, features in zip(read, store.read_many(read), strict=True):
            vectors = frame_vectors(features.whole)
            if mean:
                weights = features.information.astype(np.float32)
                weights = weights if weights.any() else np.ones_like(weights)
                vectors = unit_vectors((weights[:, None] * vectors).sum(axis=0, keepdims=True))
            ids.append(np.full(len(vectors), video_id, np.int64))
            parts.append(vectors)
    if not parts:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
    return np.concatenate(ids), np.concatenate(parts)


def known_pairs(known: Comparisons, records: Iterable[VideoRecord], threshold: float) -> list[IndexPair]:
    """Return all compared pairs that score at least ``threshold``, best first.

    Among byte-identical files, the first by name represents all, and is paired with each of the others.
    """
    paths: dict[str, str] = {}
    found = []
    for record in records:
        if record.status != "ok":
            continue
        first = paths.setdefault(content_of(record), record.path)
        if first != record.path:
            end = record.duration
            whole = (Segment(0.0, end, 0.0, end, 1.0),) if end > 0 else ()
            found.append(IndexPair(first, record.path, 1.0, whole))
    for one, other, result in known.pairs():
        # Skip comparisons of byte-identical files, which were added above.
        if one != other and result.score >= threshold and one in paths and other in paths:
            in_order = paths[one] <= paths[other]
            first, second = (paths[one], paths[other]) if in_order else (paths[other], paths[one])
            segments = (result if in_order else result.swapped()).segments
            found.append(IndexPair(first, second, result.score, segments))
    return sorted(found, key=lambda pair: (-pair.score, pair.first, pair.second))
