"""Keep a part of an index in memory for searches; :class:`~vidkin_scale.ranker.RayRanker` runs it as an actor."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from vidkin._base.blas import one_blas_thread
from vidkin.errors import NotIndexedError, VidkinError
from vidkin.features.sessions import set_threads
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.stores import open_store
from vidkin.index.storage.tasks import MOST_JOBS
from vidkin.similarity import FrameFeatures, PairScore, Scorer
from vidkin_scale.shards import count_shards, open_shard


class Shard:
    """Scores candidates and caches their features; runs as a Ray actor.

    Args:
        location: Location of the index, the same as on the machine that searches.
        most_bytes: Maximum bytes of features in memory; the least recently used are dropped first.
        number: Number of the shard if the index is stored in shards; None for a whole index.
    """

    def __init__(self, location: str, most_bytes: int, number: int | None = None) -> None:
        place = open_place(location)
        self._manifest = Manifest.read(place)
        self._store: VectorStore
        if number is None:
            self._shards, self._number, self._store = 1, 0, open_store(place, self._manifest)
        else:
            self._shards, self._number = count_shards(self._manifest), number
            self._store = open_shard(place, self._manifest, number)
        self._most_bytes = most_bytes
        self._features: OrderedDict[int, FrameFeatures] = OrderedDict()
        self._bytes = 0
        self._place = place
        self._whole: VectorStore | None = self._store if number is None else None
        self._workers: OrderedDict[int, Any] = OrderedDict()

    @one_blas_thread()
    def run(self, number: int, job: Sequence[Any], method: str, arguments: tuple[Any, ...]) -> Any:
        """Run a task of a job, fetching the job's object when its number is new; errors are returned."""
        try:
            if number not in self._workers:
                import ray

                set_threads(1)
                # The other video of a pair can be in another shard.
                if self._whole is None:
                    self._whole = open_store(self._place, self._manifest)
                self._whole.refresh()
                self._workers[number] = ray.get(job[0]).start(self._place, self._whole)
                while len(self._workers) > MOST_JOBS:
                    self._workers.popitem(last=False)
            return getattr(self._workers[number], method)(*arguments)
        except VidkinError as error:
            return error

    def score(
        self, query: FrameFeatures, video_ids: Sequence[int], scorer: Scorer
    ) -> list[tuple[int, PairScore]] | VidkinError:
        """Score candidates as :func:`~vidkin.index.query.stages.score_candidates`; return errors, because Ray loses
        their class."""
        try:
            if not all(self._has(video_id) for video_id in video_ids):
                self._store.refresh()
            return score_candidates(self, query, video_ids, scorer)
        except VidkinError as error:
            return error

    def read(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a reading method of the shard's store in its newest state, with local ids; errors are returned."""
        try:
            self._store.refresh()
            return getattr(self._store, method)(*arguments)
        except VidkinError as error:
            return error

    def cached(self) -> tuple[int, int]:
        """Number of videos in memory, and their size in bytes."""
        return len(self._features), self._bytes

    def get(self, video_id: int) -> VideoRecord:
        """Return the record with this id."""
        return self._store.get(self._own(video_id))

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Return the features of several videos; read only those not in memory."""
        missing = [video_id for video_id in video_ids if video_id not in self._features]
        own = [self._own(video_id) for video_id in missing]
        read = dict(zip(missing, self._store.read_many(own), strict=True)) if missing else {}
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

    def _own(self, video_id: int) -> int:
        """Return the id of a video in the store of this shard."""
        own, shard = divmod(video_id, self._shards)
        if shard != self._number:
            raise NotIndexedError(f"video {video_id} is not in shard {self._number}")
        return own

    def _has(self, video_id: int) -> bool:
        try:
            self.get(video_id)
        except NotIndexedError:
            return False
        return True


def _bytes_of(features: FrameFeatures) -> int:
    return features.values.nbytes
