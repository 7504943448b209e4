"""Score search candidates on the machines of a Ray cluster, each of which keeps part of the features."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from vidkin.errors import ClusterError, InvalidArgumentError, NotIndexedError, VidkinError
from vidkin.index.cluster.connection import check_address, connect
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Query
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.contract import FeatureReader
from vidkin.index.storage.lance import LanceStore
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import FrameFeatures, PairScore, Scorer

# Times a shard is started within one search before it gives up.
_MOST_TRIES = 3


class RayRanker:
    """A :class:`~vidkin.index.Ranker` of actors on a Ray cluster; a context manager.

    Video ``i`` belongs to shard ``i`` modulo the number of shards. A shard reads the features of a video when it is a
    candidate for the first time and keeps them, so that the combined memory of all machines holds what one machine
    cannot. The index must be at the same path on all of them, or on object storage. A search sends its query to the
    shards that own a candidate and gets back the same scores as without a cluster. A shard that dies is started again
    and reads its features again.

    ::

        with RayRanker("/mnt/collection.vidkin", shards=16, address="auto") as ranker:
            index.rank_with(ranker)
            index.search("clip.mp4")

    Args:
        location: Folder of the index, or its address on object storage.
        shards: Number of actors, at least 1, each with one processor.
        address: Address of the cluster, see :func:`~vidkin.index.cluster.connection.connect`.
        most_bytes: Maximum bytes of features that a shard keeps.

    Raises:
        MissingPartError: Ray is not installed.
        InvalidArgumentError: A number is below 1, or the address is malformed.
        ClusterError: No cluster answers.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        shards: int,
        address: str | None = None,
        most_bytes: int = 2 * 2**30,
    ) -> None:
        if shards < 1 or most_bytes < 1:
            raise InvalidArgumentError(f"shards and most_bytes must be at least 1, got {shards} and {most_bytes}")
        if address:
            check_address(address)
        # An actor has a different working folder.
        self._location = open_place(location).uri
        self._most_bytes = most_bytes
        self._open = ExitStack()
        self._ray: Any = self._open.enter_context(connect(address))
        self._actors = [self._start() for _ in range(shards)]

    def __call__(
        self,
        store: FeatureReader,
        query: Query,
        video_ids: Sequence[int],
        common: CommonFrames,
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """See :class:`~vidkin.index.Ranker`; ``store`` is not read."""
        from ray.exceptions import RayError

        owned: dict[int, list[int]] = {}
        for video_id in video_ids:
            owned.setdefault(video_id % len(self._actors), []).append(video_id)
        shared = [self._ray.put(part) for part in (query, common, scorer)]
        pairs: dict[int, PairScore] = {}
        for attempt in range(_MOST_TRIES):
            asked = {shard: self._ask(shard, ids, shared) for shard, ids in owned.items()}
            for shard, answer in asked.items():
                try:
                    scored = self._ray.get(answer)
                except RayError as error:
                    if attempt == _MOST_TRIES - 1:
                        raise ClusterError(
                            f"shard {shard} of {self._location} died {_MOST_TRIES} times in one search: "
                            f"{' '.join(str(error).split())}; check that all machines see the index, with enough memory"
                        ) from error
                    self._ray.kill(self._actors[shard])
                    self._actors[shard] = self._start()
                    continue
                if isinstance(scored, VidkinError):
                    raise scored
                pairs.update(scored)
                del owned[shard]
            if not owned:
                break
        return [(video_id, pairs[video_id]) for video_id in video_ids if video_id in pairs]

    def close(self) -> None:
        """Shut down the shards."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
        self._open.close()

    def __enter__(self) -> RayRanker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> Any:
        return self._ray.remote(Shard).options(num_cpus=1).remote(self._location, self._most_bytes)

    def _ask(self, shard: int, video_ids: list[int], shared: list[Any]) -> Any:
        query, common, scorer = shared
        return self._actors[shard].score.remote(query, video_ids, common, scorer)


# Part of the features of an index, kept in memory by the process that scores it.


class Shard:
    """Scores candidates and caches their features; what a Ray actor of search runs.

    Args:
        location: Location of the index, the same as on the machine that searches.
        most_bytes: Maximum bytes of features in memory; the least recently used are dropped first.
    """

    def __init__(self, location: str, most_bytes: int) -> None:
        self._store = LanceStore(location)
        self._most_bytes = most_bytes
        self._features: OrderedDict[int, FrameFeatures] = OrderedDict()
        self._bytes = 0

    def score(
        self, query: Query, video_ids: Sequence[int], common: CommonFrames, scorer: Scorer
    ) -> list[tuple[int, PairScore]] | VidkinError:
        """As :func:`~vidkin.index.query.stages.score_candidates`; errors are returned: Ray would lose their class."""
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
    return features.values.nbytes
