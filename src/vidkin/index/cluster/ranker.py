"""Score search candidates on the machines of a Ray cluster, each of which keeps part of the features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from vidkin.errors import ClusterError, InvalidArgumentError, VidkinError
from vidkin.index.cluster.connection import check_address, connect
from vidkin.index.cluster.shard import Shard
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.query import Query
from vidkin.index.storage.contract import FeatureReader
from vidkin.index.storage.places.opening import open_place
from vidkin.similarity import PairScore, Scorer

__all__ = ["RayRanker"]

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
            raise InvalidArgumentError(
                f"shards and most_bytes must be at least 1, got {shards} and {most_bytes}"
            )
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> Any:
        return self._ray.remote(Shard).options(num_cpus=1).remote(self._location, self._most_bytes)

    def _ask(self, shard: int, video_ids: list[int], shared: list[Any]) -> Any:
        query, common, scorer = shared
        return self._actors[shard].score.remote(query, video_ids, common, scorer)
