"""Describe files on a Ray cluster: losing a worker or a machine costs time, not files."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from vidkin._version import __version__
from vidkin.errors import ClusterError, InvalidArgumentError
from vidkin.features.sessions import check_device
from vidkin.features.views import HANG_TIMEOUT, Silence
from vidkin.index.ingest.executor import Described, Event, Idle, Unreadable
from vidkin.index.ingest.worker import Alive, Failed
from vidkin.index.storage.manifest import WorkerSpec
from vidkin_scale.connection import check_address, connect, import_ray
from vidkin_scale.describer import Describer, Opened

_logger = logging.getLogger(__name__)

_TICK = 0.25

# Limit of unread messages per worker; it blocks beyond that.
_MAX_MESSAGES = 2

# Attempts at a file before it is blamed for the death of its workers.
_MAX_TRIES = 3

# Machines may join and leave; a file whose machine was lost this many times is left for the next run.
_MAX_LOSSES = 10

# Limit of consecutive workers that die before any is ready.
_MAX_RESTARTS = 3

# Seconds between checks of the cluster size.
_LOOK = 2.0

# Parts of Ray's error reports: color codes, and the line of a traceback that names the error.
_COLOR, _RAISED = re.compile(r"\x1b\[[\d;]*m"), re.compile(r"\w+(Error|Exception): ")

# Seconds without any worker after which a log message says what the run is waiting for.
_PATIENCE = 60.0


class RayExecutor:
    """An :class:`~vidkin.index.ingest.executor.Executor` of actors on a Ray cluster.

    Only this process writes the index. Every actor reserves one CPU, opens the extractor once and describes one file
    at a time on one thread; it needs the videos and the extractor's files at the same paths as here. Since an actor
    blocks until its messages are read, it holds the features of at most one video.

    A file whose worker dies is retried by another worker; three deaths make it
    :class:`~vidkin.index.ingest.executor.Unreadable`. Deaths of whole machines do not count, up to ten of them. A
    worker without any progress for ``hang_timeout`` is killed, and its file is reported as unreadable. Workers end
    with this process, even when it is killed. The number of workers follows the processors of the cluster as machines
    join and leave.

    Args:
        spec: The extractor and the sampling rate, :attr:`Index.worker_spec` for an index.
        address: Address of the cluster, see :func:`~vidkin_scale.connection.connect`.
        workers: Maximum number of workers, at least 1; default: one per CPU of the cluster.
        hang_timeout: Seconds without any progress (a packet read, a frame decoded) after which a worker counts as
            hung; five times as long while the extractor describes frames.

    Raises:
        InvalidArgumentError: The address or the number of workers is not allowed.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        *,
        address: str | None = None,
        workers: int | None = None,
        hang_timeout: float = HANG_TIMEOUT,
    ) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
        if address:
            check_address(address)
        import_ray()
        self._spec = replace(spec, device=check_device(spec.device))
        self._address = address
        self._workers = workers
        self._hang_timeout = hang_timeout

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        remaining = iter(paths)
        first = next(remaining, None)
        if first is None:
            return
        with connect(self._address) as ray:
            pool = _Pool(ray, self._spec, self._workers, self._hang_timeout)
            try:
                yield from pool.run(chain([first], remaining))
            finally:
                pool.end()


@dataclass(eq=False)
class _RayWorker:
    """Driver-side handle of an actor."""

    actor: Any
    awaited: Any
    silence: Silence
    path: str | None = None
    ready: bool = False


@dataclass
class _Pool:
    """The workers of a run, and the files waiting for one."""

    ray: Any
    spec: WorkerSpec
    most: int | None
    hang_timeout: float
    workers: list[_RayWorker] = field(default_factory=list)
    waiting: deque[str] = field(default_factory=deque)
    deaths: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    first: Opened | None = None

    def __post_init__(self) -> None:
        self._actor_class = self.ray.remote(Describer)
        self._looked = -_LOOK
        self._without_worker = time.monotonic()
        self._processors = 1

    def run(self, paths: Iterator[str]) -> Iterator[Event]:
        while True:
            self._take(paths)
            for worker in self.workers:
                if worker.ready and worker.path is None and self.waiting:
                    self._assign(worker, self.waiting.popleft())
            busy = [worker for worker in self.workers if worker.awaited is not None]
            if not self.waiting and not any(worker.path for worker in busy):
                return
            ready = self._wait(busy)
            if not ready:
                yield Idle()
            for worker in busy:
                if worker in ready:
                    yield from self._receive(worker)
                elif worker.path is not None and (cause := worker.silence.measure()) is not None:
                    path = worker.path
                    self._discard(worker)
                    yield Unreadable(path, cause, temporary=True)

    def end(self) -> None:
        """Kill all workers."""
        for worker in list(self.workers):
            self._discard(worker)

    def _take(self, paths: Iterator[str]) -> None:
        """Take a file for every worker that could start one, and start missing workers."""
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            self._looked = now
            self._processors = max(int(self.ray.cluster_resources().get("CPU", 0)), 1)
        target = self._processors if self.most is None else self.most
        busy = sum(worker.path is not None for worker in self.workers)
        while busy + len(self.waiting) < target and (path := next(paths, None)) is not None:
            self.waiting.append(path)
        while len(self.workers) < min(target, busy + len(self.waiting)):
            actor = self._actor_class.options(num_cpus=1).remote()
            self.workers.append(_RayWorker(actor, actor.open.remote(self.spec), Silence(self.hang_timeout)))
        if any(worker.ready for worker in self.workers):
            self._without_worker = now
        elif now - self._without_worker >= _PATIENCE:
            self._without_worker = now
            _logger.warning("waiting for a free CPU in the Ray cluster (`ray status` shows what is using them)")

    def _assign(self, worker: _RayWorker, path: str) -> None:
        try:
            size = os.stat(path).st_size
        except OSError:
            size = -1
        worker.path = path
        worker.silence.end("decoding")
        describe = worker.actor.describe.options(
            num_returns="streaming", _generator_backpressure_num_objects=_MAX_MESSAGES
        )
        worker.awaited = describe.remote(path, size)

    def _wait(self, workers: list[_RayWorker]) -> list[_RayWorker]:
        """Return workers with unread messages, waiting only briefly."""
        awaited = [worker.awaited for worker in workers]
        ready, _ = self.ray.wait(awaited, timeout=_TICK)
        if ready:
            ready, _ = self.ray.wait(awaited, num_returns=len(awaited), timeout=0)
        return [worker for worker in workers if any(worker.awaited is one for one in ready)]

    def _receive(self, worker: _RayWorker) -> Iterator[Event]:
        from ray.exceptions import RayError

        worker.silence.end()
        try:
            content = self.ray.get(worker.awaited if not worker.ready else next(worker.awaited))
        except (RayError, StopIteration) as error:
            yield self._handle_death(worker, error)
            return
        if isinstance(content, Opened | Failed):
            self._greet(worker, content)
            return
        messages: list[Event | Alive] = content
        for message in messages:
            if isinstance(message, Alive):
                worker.silence.end(message.phase)
                continue
            if isinstance(message, Described | Unreadable):
                worker.path = worker.awaited = None
            yield message

    def _greet(self, worker: _RayWorker, content: Opened | Failed) -> None:
        """Check that a ready worker computes the same features as the others."""
        if isinstance(content, Failed):
            content.error.add_note(f"in a Ray worker:\n{content.trace}")
            raise content.error
        if content.version != __version__:
            raise ClusterError(
                f"machine {content.host} of the cluster has vidkin {content.version}, this one {__version__}; install "
                "the same version on every machine"
            )
        self.first = self.first or content
        if content.fingerprint != self.first.fingerprint:
            raise ClusterError(
                f"machines {self.first.host} and {content.host} of the cluster have different extractors "
                f"({self.first.fingerprint} and {content.fingerprint}); give every machine the same weights"
            )
        worker.ready = True
        worker.awaited = None
        self.restarts = 0

    def _handle_death(self, worker: _RayWorker, error: Exception) -> Event:
        """Handle the death of a worker: retry its file, or give up after too many attempts."""
        from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError

        path, was_ready = worker.path, worker.ready
        self._discard(worker)
        cause = _cause_of(error)
        # For a lost machine often the only information is that it cannot be reached.
        is_death = isinstance(error, ActorDiedError | OutOfMemoryError | RayTaskError | StopIteration)
        lost = not is_death or "node" in cause
        _logger.debug("a worker died while reading %s: %s", path, cause)
        if path is None:
            self.restarts += not lost
            if not was_ready and self.restarts > _MAX_RESTARTS:
                raise ClusterError(
                    f"workers of the Ray cluster died {self.restarts} times before they could start: {cause}; finished "
                    "work is saved; check that every machine has vidkin and enough memory"
                ) from error
            return Idle()
        out_of_memory = isinstance(error, OutOfMemoryError) or "memory pressure" in cause
        counted = self.losses if lost and not out_of_memory else self.deaths
        counted[path] += 1
        if self.deaths[path] >= _MAX_TRIES:
            text = f"its worker died {_MAX_TRIES} times: {cause}"
            return Unreadable(path, text, temporary=out_of_memory)
        if self.losses[path] >= _MAX_LOSSES:
            return Unreadable(path, f"{_MAX_LOSSES} machines were lost while they read it", temporary=True)
        self.waiting.appendleft(path)
        return Idle()

    def _discard(self, worker: _RayWorker) -> None:
        self.workers.remove(worker)
        worker.awaited = None
        self.ray.kill(worker.actor)


def _cause_of(error: Exception) -> str:
    """Extract the sentence of Ray's report that says what happened, without the list of possible causes."""
    inner = getattr(error, "cause", None)
    report = _COLOR.sub("", str(error) if inner is None else f"{type(inner).__name__}: {inner}")
    # A worker that raised an error has a traceback, whose last line names it.
    raised = [line for line in report.splitlines() if _RAISED.match(line)]
    text = " ".join((raised[-1] if raised else report).split())
    for start in ("Worker exit detail: ", "The actor is dead because "):
        text = text.partition(start)[2] or text
    return text.partition(". ")[0] or type(error).__name__
