"""Search and compare on the machines of a Ray cluster, each of which keeps part of an index: nearest windows, exact
scores, and tasks that are done where their videos are."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from vidkin._base.blas import one_blas_thread
from vidkin.errors import ClusterError, InvalidArgumentError, NotIndexedError, VidkinError
from vidkin.features.sessions import set_threads
from vidkin.index.cluster.connection import check_address, connect
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Query
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.contract import FeatureReader, VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.shards import MOST_JOBS, MappedJob, ShardedStore, Task, open_store
from vidkin.similarity import FrameFeatures, PairScore, Scorer

_logger = logging.getLogger(__name__)

# Times a shard is started within one search, and a task is done again, before it gives up.
_MOST_TRIES = 3
# Tasks that a shard has at a time, so that it need not wait for the next one; and seconds after which a message says
# what a search waits for.
_TASKS_A_SHARD, _PATIENCE = 2, 60.0

# Least share of a processor that a shard reserves, if there are more shards than processors, and what one reserves that
# is started again: its machine may be gone for good. Of each processor so much is reserved at first that there is room.
_LEAST_SHARE, _RESERVED = 0.01, 0.9


class RayRanker:
    """A :class:`~vidkin.index.Ranker` of actors on a Ray cluster; a context manager.

    Video ``i`` belongs to shard ``i`` modulo the number of shards. A shard reads the features of a video when it is a
    candidate for the first time and keeps them, so that the combined memory of all machines holds what one machine
    cannot. The index must be at the same path on all of them, or on object storage. A search sends its query to the
    shards that own a candidate and gets back the same scores as without a cluster. A shard that dies is started again,
    here or on another machine, and reads its features again.

    Of an index that is stored in shards (``Index.open(..., shards=N)``) each actor has one of them, and also finds its
    nearest windows: :meth:`ask` takes the place of :attr:`~vidkin.index.storage.shards.ShardedStore.ask`.

    ::

        with RayRanker(index.place, shards=16, address="auto") as ranker:
            index.rank_with(ranker)
            index.search("clip.mp4")

    :meth:`vidkin.Index.on_cluster` does this until the index is closed. It is a
    :class:`~vidkin.index.storage.shards.Mapper` as well: searches for duplicates and for what recurs have their tasks
    done by the actors, each by the one that keeps a video of it, or by whoever has nothing to do. What an actor had to
    do when it died is done again.

    Args:
        place: Where the index is.
        shards: Number of actors, at least 1; default those of the index, or one for each processor of the cluster.
        address: Address of the cluster, see :func:`~vidkin.index.cluster.connection.connect`.
        most_bytes: Maximum bytes of features that a shard keeps.

    Raises:
        MissingPartError: Ray is not installed.
        InvalidArgumentError: A number is below 1, or another one than that of the index, or the address is malformed.
        ClusterError: No cluster answers.
    """

    def __init__(
        self,
        place: Place,
        *,
        shards: int | None = None,
        address: str | None = None,
        most_bytes: int = 2 * 2**30,
    ) -> None:
        if (shards is not None and shards < 1) or most_bytes < 1:
            raise InvalidArgumentError(f"shards and most_bytes must be at least 1, got {shards} and {most_bytes}")
        if address:
            check_address(address)
        stored = Manifest.read(place).shards
        if stored and shards not in (None, stored):
            raise InvalidArgumentError(f"shards must be {stored}, as {place.uri} has, got {shards}")
        # An actor has a different working folder.
        self._location = place.uri
        self._stored = stored
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._open = ExitStack()
        self._ray: Any = self._open.enter_context(connect(address))
        processors = max(1.0, float(self._ray.cluster_resources().get("CPU", 1)))
        count = stored or shards or int(processors)
        self._share = max(_LEAST_SHARE, _RESERVED * min(1.0, processors / count))
        self._actors = [self._start(shard) for shard in range(count)]
        # Jobs that are known to the actors, by what names them there; the last ones.
        self._jobs: OrderedDict[int, tuple[MappedJob, Any]] = OrderedDict()
        self._count_of_jobs = 0

    def attach(self, store: VectorStore) -> None:
        """Have the shards of a store read where the actors are; does nothing to a store without shards."""
        if self._stored and isinstance(store, ShardedStore):
            store.ask = self.ask

    def __call__(
        self,
        store: FeatureReader,
        query: Query,
        video_ids: Sequence[int],
        common: CommonFrames,
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """See :class:`~vidkin.index.Ranker`; ``store`` is not read."""
        owned: dict[int, list[int]] = {}
        for video_id in video_ids:
            owned.setdefault(video_id % len(self._actors), []).append(video_id)
        query, common, scorer = (self._ray.put(part) for part in (query, common, scorer))
        scored = self._call("score", {shard: (query, ids, common, scorer) for shard, ids in owned.items()})
        pairs = dict(pair for of_shard in scored.values() for pair in of_shard)
        return [(video_id, pairs[video_id]) for video_id in video_ids if video_id in pairs]

    def ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a reading method of the stores of several shards, see :data:`~vidkin.index.storage.shards.Ask`."""
        return self._call("read", {shard: (method, given) for shard, given in arguments.items()})

    @property
    def width(self) -> int:
        """Number of tasks that are done at the same time."""
        return len(self._actors)

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        """The results of tasks, see :class:`~vidkin.index.storage.shards.Mapper`."""
        if not tasks:
            return
        number, sent = self._send(job)
        queue = _Queue(tasks, len(self._actors))
        running: dict[Any, tuple[int, Any, int]] = {}
        results: dict[int, Any] = {}
        following = 0
        try:
            while following < len(tasks):
                busy = Counter(shard for shard, _, _ in running.values())
                for shard, actor in enumerate(self._actors):
                    while busy[shard] < _TASKS_A_SHARD and (place := queue.take(shard)) is not None:
                        task = tasks[place]
                        # In a list, it is read when it is needed, and not for each task.
                        answer = actor.run.remote(number, [sent], task.method, task.arguments)
                        running[answer] = shard, actor, place
                        busy[shard] += 1
                ready, _ = self._ray.wait(list(running), timeout=_PATIENCE)
                if not ready:
                    _logger.warning("waiting for the machines of the Ray cluster (`ray status` shows what they do)")
                for answer in ready:
                    shard, actor, place = running.pop(answer)
                    if self._receive(answer, shard, actor, results, place):
                        queue.put_back(place, shard)
                while following in results:
                    yield results.pop(following)
                    following += 1
        finally:
            for answer in running:  # of a search that ends early: what has not begun need not begin
                self._ray.cancel(answer)

    def _receive(self, answer: Any, shard: int, actor: Any, results: dict[int, Any], place: int) -> bool:
        """Take the result of a task; whether it is to be done again, as who did it died."""
        from ray.exceptions import RayError

        try:
            result = self._ray.get(answer)
        except RayError as error:
            _logger.debug("a shard died while it worked on a task: %s", error)
            self._replace(shard, actor)
            return True
        if isinstance(result, VidkinError):
            raise result
        results[place] = result
        return False

    def _send(self, job: MappedJob) -> tuple[int, Any]:
        """The number of a job, and what the actors get it from."""
        with self._lock:
            for number, (known, sent) in self._jobs.items():
                if known is job:
                    return number, sent
            self._count_of_jobs += 1
            sent = self._ray.put(job)
            self._jobs[self._count_of_jobs] = job, sent
            while len(self._jobs) > MOST_JOBS:
                self._jobs.popitem(last=False)
            return self._count_of_jobs, sent

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

    def _start(self, shard: int, *, again: bool = False) -> Any:
        actor = self._ray.remote(Shard).options(num_cpus=_LEAST_SHARE if again else self._share)
        return actor.remote(self._location, self._most_bytes, shard if self._stored else None)

    def _call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """What a method of these shards returns, by shard; all work at the same time. A dead one is started again."""
        from ray.exceptions import RayError

        remaining, results = dict(arguments), {}
        for attempt in range(_MOST_TRIES):
            actors = {shard: self._actors[shard] for shard in remaining}
            asked = {shard: getattr(actors[shard], method).remote(*given) for shard, given in remaining.items()}
            for shard, answer in asked.items():
                try:
                    result = self._ray.get(answer)
                except RayError as error:
                    if attempt == _MOST_TRIES - 1:
                        raise ClusterError(
                            f"shard {shard} of {self._location} died {_MOST_TRIES} times in one search: "
                            f"{' '.join(str(error).split())}; check that all machines see the index, with enough memory"
                        ) from error
                    self._replace(shard, actors[shard])
                    continue
                if isinstance(result, VidkinError):
                    raise result
                results[shard] = result
                del remaining[shard]
            if not remaining:
                break
        return results

    def _replace(self, shard: int, dead: Any) -> None:
        """Start a shard again, unless another search has done so."""
        with self._lock:
            if self._actors[shard] is dead:
                self._ray.kill(dead)
                self._actors[shard] = self._start(shard, again=True)


@dataclass
class _Queue:
    """Tasks that wait, each for the shard of its video; those of none, or of a shard that has more, for any."""

    tasks: Sequence[Task]
    shards: int
    waiting: list[deque[int]] = field(init=False)
    tries: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.waiting = [deque() for _ in range(self.shards + 1)]
        for place, task in enumerate(self.tasks):
            self.waiting[-1 if task.home is None else task.home % self.shards].append(place)

    def take(self, shard: int) -> int | None:
        """The place of a task for a shard: one of its own, one of nobody, or the last one of who has most to do."""
        for own in (self.waiting[shard], self.waiting[-1]):
            if own:
                return own.popleft()
        longest = max(self.waiting, key=len)
        return longest.pop() if longest else None

    def put_back(self, place: int, shard: int) -> None:
        """Have a task done again whose shard died, first of all."""
        self.tries[place] += 1
        if self.tries[place] >= _MOST_TRIES:
            raise ClusterError(
                f"{self.tasks[place].about or 'a task'}: {_MOST_TRIES} workers of the cluster died over it; check that "
                "all machines see the index and the videos, with enough memory; finished work is saved"
            )
        self.waiting[-1].appendleft(place)


# Part of an index, kept by the process that searches it.


class Shard:
    """Scores candidates and caches their features; what a Ray actor of search runs.

    Args:
        location: Location of the index, the same as on the machine that searches.
        most_bytes: Maximum bytes of features in memory; the least recently used are dropped first.
        number: Of an index that is stored in shards, the number of the one that this is; None for all of an index.
    """

    def __init__(self, location: str, most_bytes: int, number: int | None = None) -> None:
        place = open_place(location)
        self._manifest = Manifest.read(place)
        self._shards, self._number = (1, 0) if number is None else (self._manifest.shards, number)
        self._store = open_store(place, self._manifest, self._number)
        self._most_bytes = most_bytes
        self._features: OrderedDict[int, FrameFeatures] = OrderedDict()
        self._bytes = 0
        self._place = place
        self._whole: VectorStore | None = self._store if number is None else None
        self._workers: OrderedDict[int, Any] = OrderedDict()

    @one_blas_thread()
    def run(self, number: int, job: Sequence[Any], method: str, arguments: tuple[Any, ...]) -> Any:
        """The result of a task of a job, whose object this gets when it sees the number for the first time; errors are
        returned."""
        try:
            if number not in self._workers:
                import ray

                set_threads(1)
                # A pair may have its other video in another shard.
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
        self, query: Query, video_ids: Sequence[int], common: CommonFrames, scorer: Scorer
    ) -> list[tuple[int, PairScore]] | VidkinError:
        """As :func:`~vidkin.index.query.stages.score_candidates`; errors are returned: Ray would lose their class."""
        try:
            if not all(self._has(video_id) for video_id in video_ids):
                self._store.refresh()
            return score_candidates(self, query, video_ids, common, scorer)
        except VidkinError as error:
            return error

    def read(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """A reading method of the shard's own store, with its own ids, in its newest state; errors are returned."""
        try:
            self._store.refresh()
            return getattr(self._store, method)(*arguments)
        except VidkinError as error:
            return error

    def held(self) -> tuple[int, int]:
        """Number of videos in memory, and their bytes."""
        return len(self._features), self._bytes

    def get(self, video_id: int) -> VideoRecord:
        """The record with this id."""
        return self._store.get(self._own(video_id))

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Features of several videos; those that are not in memory are read."""
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
        """The id of a video in the store of this shard."""
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
