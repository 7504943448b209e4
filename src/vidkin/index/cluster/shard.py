"""Part of the features of an index, kept in memory by the process that scores it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch

from vidkin.errors import NotIndexedError, VidkinError
from vidkin.index.records import VideoRecord
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.query import Query
from vidkin.index.search.stages import score_candidates
from vidkin.index.storage.lance import LanceStore
from vidkin.similarity import FrameFeatures, PairScore, Scorer

__all__ = ["Shard"]


class Shard:
    """Scores candidates and caches their features; what a Ray actor of search runs.

    Args:
        location: Location of the index, the same as on the machine that searches.
        most_bytes: Maximum bytes of features in memory; the least recently used are dropped first.
    """

    def __init__(self, location: str, most_bytes: int) -> None:
        torch.set_num_threads(1)
        self._store = LanceStore(location)
        self._most_bytes = most_bytes
        self._features: OrderedDict[int, FrameFeatures] = OrderedDict()
        self._bytes = 0

    def score(
        self, query: Query, video_ids: Sequence[int], common: CommonFrames, scorer: Scorer
    ) -> list[tuple[int, PairScore]] | VidkinError:
        """As :func:`~vidkin.index.search.stages.score_candidates`; errors are returned: Ray would lose their class."""
        try:
            if not all(self._has(video_id) for video_id in video_ids):
                self._store.refresh()
            return score_candidates(self, query, video_ids, common, scorer)
        except VidkinError as error:
            return error

    def held(self) -> tuple[int, int]:
        """Number of videos in memory, and their bytes."""
        return len(self._features), self._bytes

    def get(self, video_id: int) -> VideoRecord:
        """The record with this id."""
        return self._store.get(video_id)

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Features of several videos; those that are not in memory are read."""
        missing = [video_id for video_id in video_ids if video_id not in self._features]
        read = dict(zip(missing, self._store.read_many(missing), strict=True)) if missing else {}
        features_of_all = []
        for video_id in video_ids:
            features = read[video_id] if video_id in read else self._features[video_id]
            features_of_all.append(features)
            if video_id in read:
                self._bytes += _bytes_of(features)
            self._features[video_id] = features
            self._features.move_to_end(video_id)
        while self._bytes > self._most_bytes and self._features:
            self._bytes -= _bytes_of(self._features.popitem(last=False)[1])
        return features_of_all

    def _has(self, video_id: int) -> bool:
        try:
            self._store.get(video_id)
        except NotIndexedError:
            return False
        return True


def _bytes_of(features: FrameFeatures) -> int:
    return features.values.numel() * features.values.element_size()
