"""Search and compare on a Ray cluster, with a part of the index in the memory of each machine."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from vidkin.errors import ClusterError, InvalidArgumentError, VidkinError
from vidkin.index.storage.contract import FeatureReader, VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.tasks import MOST_JOBS, MappedJob, Task
from vidkin.similarity import FrameFeatures, PairScore, Scorer
from vidkin_scale.actor import Shard
from vidkin_scale.connection import check_address, connect
from vidkin_scale.shards import ShardedStore, count_shards

_logger = logging.getLogger(__name__)

# Maximum number of starts of a shard within a search, and of attempts at a task.
_MAX_TRIES = 3
# Number of tasks queued per shard, so that it never idles, and seconds after which a message says what a search is
# waiting for.
_TASKS_PER_SHARD, _PATIENCE = 2, 60.0

# Minimum fraction of a CPU that a shard reserves, if there are more shards than CPUs or a shard is restarted after
# its machine was lost; and the fraction of each CPU reserved at first, which leaves room for restarts.
_MIN_SHARE, _RESERVED = 0.01, 0.9


class RayRanker:
    """A :class:`~vidkin.index.Ranker` of actors on a Ray cluster; a context manager.

    Video ``i`` belongs to shard ``i`` modulo the number of shards. A shard reads the features of a video when it is a
    candidate for the first time and keeps them, so that the combined memory of all machines holds what one machine
    cannot. The index must be at the same path on all of them, or on object storage. A search sends its query to the
    shards that own a candidate and gets back the same scores as without a cluster. A shard that dies is restarted,
    here or on another machine, and reads its features again.

    If an index is stored in shards (``Index.open(..., store="shards:N")``), each actor has one of them, and also finds
    its nearest windows: :meth:`ask` replaces :attr:`~vidkin_scale.shards.ShardedStore.ask`.

    ::

        with RayRanker(index.place, shards=16, address="auto") as ranker:
            index.on_cluster(ranker).search("clip.mp4")

    :meth:`vidkin.Index.on_cluster` with a cluster name does the same, until the index is closed. It is a
    :class:`~vidkin.index.storage.tasks.Mapper` as well: tasks of searches for duplicates and recurring segments are
    done by the actors, each by the actor that keeps one of its videos, or by an idle one. Tasks of an actor that died
    are repeated.

    Args:
        place: Location of the index.
        shards: Number of actors, at least 1; default: those of the index, or one per CPU of the cluster.
        address: Address of the cluster, see :func:`~vidkin_scale.connection.connect`.
        most_bytes: Maximum bytes of features that a shard keeps.

    Raises:
        InvalidArgumentError: A number is below 1 or differs from the index, or the address is malformed.
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
        stored = count_shards(Manifest.read(place))
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
        self._share = max(_MIN_SHARE, _RESERVED * min(1.0, processors / count))
        self._actors = [self._start(shard) for shard in range(count)]
        # The latest jobs known to the actors, by their number there.
        self._jobs: OrderedDict[int, tuple[MappedJob, Any]] = OrderedDict()
        self._count_of_jobs = 0

    def attach(self, store: VectorStore) -> None:
        """Make the shards of a store read through the actors; does nothing for a store without shards."""
        if self._stored and isinstance(store, ShardedStore):
            store.ask = self.ask

    def __call__(
        self,
        store: FeatureReader,
        query: FrameFeatures,
        video_ids: Sequence[int],
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """See :class:`~vidkin.index.Ranker`; ``store`` is not read."""
        owned: dict[int, list[int]] = {}
        for video_id in video_ids:
            owned.setdefault(video_id % len(self._actors), []).append(video_id)
        query, scorer = (self._ray.put(part) for part in (query, scorer))
        scored = self._call("score", {shard: (query, ids, scorer) for shard, ids in owned.items()})
        pairs = dict(pair for of_shard in scored.values() for pair in of_shard)
        return [(video_id, pairs[video_id]) for video_id in video_ids if video_id in pairs]

    def ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a reading method of the stores of several shards, see :data:`~vidkin_scale.shards.Ask`."""
        return self._call("read", {shard: (method, given) for shard, given in arguments.items()})

    @property
    def width(self) -> int:
        """Number of parallel tasks."""
        return len(self._actors)

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        """Run tasks and yield their results, see :class:`~vidkin.index.storage.tasks.Mapper`."""
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
                    while busy[shard] < _TASKS_PER_SHARD and (place := queue.take(shard)) is not None:
                        task = tasks[place]
                        # Inside a list, Ray passes a reference, so the job is read only when needed, not for each task.
                        answer = actor.run.remote(number, [sent], task.method, task.arguments)
                        running[answer] = shard, actor, place
                        busy[shard] += 1
                ready, _ = self._ray.wait(list(running), timeout=_PATIENCE)
                if not ready:
                    _logger.warning(
                        "waiting for the machines of the Ray cluster (`ray status` shows what they are doing)"
                    )
                for answer in ready:
                    shard, actor, place = running.pop(answer)
                    if self._receive(answer, shard, actor, results, place):
                        queue.put_back(place, shard)
                while following in results:
                    yield results.pop(following)
                    following += 1
        finally:
            for answer in running:  # cancel tasks of a search that ends early
                self._ray.cancel(answer)

    def _receive(self, answer: Any, shard: int, actor: Any, results: dict[int, Any], place: int) -> bool:
        """Store the result of a task; return whether it must be repeated because its worker died."""
        from ray.exceptions import RayError

        try:
            result = self._ray.get(answer)
        except RayError as error:
            _logger.debug("a shard died during a task: %s", error)
            self._replace(shard, actor)
            return True
        if isinstance(result, VidkinError):
            raise result
        results[place] = result
        return False

    def _send(self, job: MappedJob) -> tuple[int, Any]:
        """Return the number of a job, and the reference through which actors fetch it."""
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
        actor = self._ray.remote(Shard).options(num_cpus=_MIN_SHARE if again else self._share)
        return actor.remote(self._location, self._most_bytes, shard if self._stored else None)

    def _call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of several shards in parallel and return results by shard; dead shards are restarted."""
        from ray.exceptions import RayError

        remaining, results = dict(arguments), {}
        for attempt in range(_MAX_TRIES):
            actors = {shard: self._actors[shard] for shard in remaining}
            asked = {shard: getattr(actors[shard], method).remote(*given) for shard, given in remaining.items()}
            for shard, answer in asked.items():
                try:
                    result = self._ray.get(answer)
                except RayError as error:
                    if attempt == _MAX_TRIES - 1:
                        raise ClusterError(
                            f"shard {shard} of {self._location} died {_MAX_TRIES} times in one search: "
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
        """Restart a shard, unless another search has already done so."""
        with self._lock:
            if self._actors[shard] is dead:
                self._ray.kill(dead)
                self._actors[shard] = self._start(shard, again=True)


@dataclass
class _Queue:
    """Waiting tasks, preferably for the shard of their video; tasks without one, or of a busy shard, go to any
    shard."""

    tasks: Sequence[Task]
    shards: int
    waiting: list[deque[int]] = field(init=False)
    tries: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.waiting = [deque() for _ in range(self.shards + 1)]
        for place, task in enumerate(self.tasks):
            self.waiting[-1 if task.home is None else task.home % self.shards].append(place)

    def take(self, shard: int) -> int | None:
        """Return the next task for a shard: one of its own, one without a shard, or the last of the busiest shard."""
        for own in (self.waiting[shard], self.waiting[-1]):
            if own:
                return own.popleft()
        longest = max(self.waiting, key=len)
        return longest.pop() if longest else None

    def put_back(self, place: int, shard: int) -> None:
        """Requeue a task whose shard died, at the front."""
        self.tries[place] += 1
        if self.tries[place] >= _MAX_TRIES:
            raise ClusterError(
                f"{self.tasks[place].about or 'a task'}: {_MAX_TRIES} workers of the cluster died over it; check that "
                "all machines see the index and the videos, with enough memory; finished work is saved"
            )
        self.waiting[-1].appendleft(place)
