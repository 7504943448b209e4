"""Decoding in processes of its own: a decoder that crashes or hangs costs one file."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import IO, TYPE_CHECKING, Any

from vidkin.errors import ExtractorError
from vidkin.index.ingest.executor import Advanced, Described, Event, Idle, Unreadable, advanced, joined
from vidkin.index.ingest.worker import FeatureChunk, WorkerSpec

if TYPE_CHECKING:
    from vidkin.media import VideoInfo

__all__ = ["ProcessExecutor", "usable_processors"]

_TICK = 0.25
# Loading the libraries and a network's weights; not the time of any file.
_START_TIMEOUT = 300.0
# A worker killed before it could do anything, mostly for lack of memory, is started again so many times.
_MOST_RESTARTS = 3
_SIGNAL_NAMES = {int(number): number.name for number in signal.Signals}


class ProcessExecutor:
    """An :class:`~vidkin.index.ingest.executor.Executor` of worker processes.

    Each worker opens the extractor once and describes one file at a time on one thread. Features come
    through a pipe of the size that the system gives it, so a worker waits when nobody reads: at most the
    features of one video a worker (5 kB a frame with 10 regions of 256) are held.

    A worker that dies by a signal or exits, or gives no sign of life for ``hang_timeout``, is replaced, and
    its file is :class:`~vidkin.index.ingest.executor.Unreadable` with that cause. One that is killed before it was
    ready says nothing about its file and is started again; if that happens time and again, the run ends with an
    :class:`~vidkin.errors.ExtractorError`. Workers end with this process, even when it is killed. They are
    started afresh, not forked, and do not run the caller's main module: a script needs no
    ``if __name__ == "__main__"``.

    Args:
        spec: What the workers do.
        workers: How many, 1 or more.
        hang_timeout: Seconds without any progress (a few frames decoded) after which a worker is taken to
            hang. Raise it for very large pictures on a very slow machine.
    """

    def __init__(self, spec: WorkerSpec, *, workers: int, hang_timeout: float = 120.0) -> None:
        self._spec = spec
        self._workers = max(1, workers)
        self._hang_timeout = hang_timeout

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        waiting = iter(paths)
        workers: list[_Worker] = []
        exhausted = False
        try:
            while True:
                workers[:] = [worker for worker in workers if worker.usable()]
                while not exhausted:
                    idle = next((worker for worker in workers if worker.path is None), None)
                    if idle is None and len(workers) >= self._workers:
                        break
                    path = next(waiting, None)
                    exhausted = path is None
                    if path is not None:
                        if idle is None:
                            idle = _Worker(self._spec)
                            workers.append(idle)
                        idle.take(path)
                if not any(worker.path is not None for worker in workers):
                    return
                yield from self._listen(workers)
        finally:
            for worker in workers:
                worker.end()

    def _listen(self, workers: list[_Worker]) -> Iterator[Event]:
        """One message from each worker that has one; then see to those that are silent."""
        busy = [worker for worker in workers if worker.path is not None]
        ready = wait([worker.connection for worker in busy], timeout=_TICK)
        if not ready:
            yield Idle()
        for worker in busy:
            if worker.connection in ready:
                yield from worker.receive()
            elif worker.silent_for() > (self._hang_timeout if worker.ready else _START_TIMEOUT):
                yield worker.given_up(self._hang_timeout)


def usable_processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class _Worker:
    """The parent's view of one process."""

    spec: WorkerSpec
    ready: bool = False
    lost: bool = False
    restarts: int = 0
    path: str | None = None
    info: VideoInfo | None = None
    chunks: list[FeatureChunk] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        descriptor = theirs.fileno()
        # Same search path as here, so that the specification's own functions are found.
        command = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from vidkin.index.ingest.worker import main; main({descriptor})"
        )
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in end()
        self.process = subprocess.Popen(
            [sys.executable, "-c", command],
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            process_group=0,  # Ctrl-C in a terminal is for the parent, which ends its workers in order.
        )
        theirs.close()
        self.last_sign = time.monotonic()
        self._send(self.spec)

    def take(self, path: str) -> None:
        """Give it a file."""
        self.path, self.info, self.chunks = path, None, []
        self.last_sign = time.monotonic()
        self._send(path)

    def usable(self) -> bool:
        """It can be given work, or has some. One that is not is ended, so that another takes its place."""
        if self.lost or (self.path is None and self.process.poll() is not None):
            self.end()
            return False
        return True

    def silent_for(self) -> float:
        """Seconds since it was last heard of."""
        return time.monotonic() - self.last_sign

    def receive(self) -> Iterator[Event]:
        """Read one message and say what it means."""
        path = self.path
        assert path is not None  # only busy workers are listened to
        try:
            message: tuple[Any, ...] = self.connection.recv()
        except (EOFError, ConnectionResetError):
            yield self._died(path)
            return
        self.last_sign = time.monotonic()
        kind = message[0]
        if kind == "ready":
            self.ready = True
        elif kind == "info":
            self.info = message[1]
        elif kind == "chunk":
            event: Advanced = advanced(path, self.chunks, message[1])
            self.chunks.append(message[1])
            yield event
        elif kind == "broken":
            self.path = None
            yield Unreadable(path, message[1])
        elif kind == "done":
            assert self.info is not None  # sent before the first chunk
            done = Described(path, self.info, joined(self.chunks))
            self.path, self.info, self.chunks = None, None, []
            yield done
        elif kind == "bug":
            error: Exception = message[1]
            error.add_note(f"in the worker process that read {path}:\n{message[2]}")
            raise error

    def given_up(self, timeout: float) -> Event:
        """It hangs: end it."""
        path = self.path
        assert path is not None
        self.lost = True
        if not self.ready:
            raise RuntimeError(
                f"a worker process did not start within {_START_TIMEOUT:g} s: {self._last_words()}"
            )
        return Unreadable(path, f"decoder process hung: no progress for {timeout:g} s")

    def end(self) -> None:
        """End the process, whatever it is doing, and leave nothing open."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()

    def _died(self, path: str) -> Event:
        status = self.process.wait()
        name = _SIGNAL_NAMES.get(-status, str(-status))
        hint = ", perhaps for lack of memory" if -status == signal.SIGKILL else ""
        if not self.ready and status < 0:
            if self.restarts >= _MOST_RESTARTS:
                raise ExtractorError(
                    f"worker processes were killed by signal {name} {self.restarts + 1} times before they could "
                    f"start{hint}; what was finished is kept: try again with fewer workers (workers=1, --workers 1)"
                )
            self.end()
            self.restarts += 1
            self._start()
            self.take(path)
            return Idle()
        self.lost = True
        if not self.ready:
            raise RuntimeError(
                f"a worker process ended with status {status} before it could start: {self._last_words()}"
            )
        if status >= 0:
            return Unreadable(path, f"decoder process ended with exit status {status}")
        return Unreadable(path, f"decoder process died with signal {name}{hint}")

    def _send(self, message: object) -> None:
        # If it died, the next attempt to receive says so, with its status.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def _last_words(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").strip()[-2000:] or "it said nothing"
