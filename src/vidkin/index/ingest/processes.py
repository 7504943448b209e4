"""Extract features in worker processes, so that a decoder that crashes or hangs affects only one file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import IO, Any

from vidkin._base.arguments import check_constructor
from vidkin._base.blas import processor_count
from vidkin._base.bundle import WORKER_OPTION, is_bundled
from vidkin._base.stopping import check_wanted
from vidkin.errors import ExtractorError, InvalidArgumentError
from vidkin.features.sessions import check_device
from vidkin.features.views import HANG_TIMEOUT, Silence
from vidkin.index.ingest.executor import Described, Event, Idle, Unreadable
from vidkin.index.ingest.worker import Alive, Channel, Failed, share_socket
from vidkin.index.storage.manifest import WorkerSpec

_TICK = 0.25
# Maximum seconds for loading libraries and weights, which do not count toward a file's hang timeout.
_START_TIMEOUT = 300.0
# Seconds to wait for a process to exit after its channel was closed.
_END_TIMEOUT = 30.0
# Linear algebra libraries read these variables when loaded; each worker uses a single thread.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# Maximum number of restarts of a worker killed during startup, usually for lack of memory.
_MAX_RESTARTS = 3
_SIGNAL_NAMES = {int(number): number.name for number in signal.Signals}
# Signals that indicate a crash caused by the file, where the system has them. Other signals come from outside.
_CRASHES = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)
_KILLED = getattr(signal, "SIGKILL", None)
# On Windows, exit statuses of at least this value indicate a crash.
_FIRST_CRASH = 0xC0000000


@check_constructor
class ProcessExecutor:
    """An :class:`~vidkin.index.ingest.executor.Executor` that uses worker processes.

    Each worker opens the extractor once and processes one file at a time on one thread. Events arrive through a socket
    with a limited buffer, so workers block while events are unread, and each holds the features of at most one video (5
    kB per frame with 10 regions and 256 dimensions).

    A worker that is killed by a signal, exits, or makes no progress for ``hang_timeout`` is replaced, and its file is
    reported as :class:`~vidkin.index.ingest.executor.Unreadable`. A worker killed before it was ready is restarted,
    because its file is not to blame; if that happens repeatedly, the run fails with an
    :class:`~vidkin.errors.ExtractorError`. Workers exit with this process, even when it is killed. They are spawned,
    not forked, and do not run the caller's main module, so scripts need no ``if __name__ == "__main__"`` guard.

    Args:
        spec: The extractor and the sampling rate; for an index, :attr:`Index.worker_spec`.
        workers: Number of workers, at least 1; default: one for each processor available to this process.
        hang_timeout: A worker counts as hung after this many seconds without progress (a packet read, a frame
            decoded), or five times as long during feature extraction. Time during which the caller is busy or the
            machine is asleep does not count.

    Attributes:
        spec: The given specification, with ``auto`` replaced by the device of this process.
    """

    def __init__(self, spec: WorkerSpec, *, workers: int | None = None, hang_timeout: float = HANG_TIMEOUT) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
        self.spec = replace(spec, device=check_device(spec.device))
        self._workers = workers or processor_count()
        self._hang_timeout = hang_timeout

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        remaining = iter(paths)
        workers: list[_Worker] = []
        exhausted = False
        try:
            while True:
                check_wanted()
                workers[:] = [worker for worker in workers if worker.usable()]
                while not exhausted:
                    idle = next((worker for worker in workers if worker.path is None), None)
                    if idle is None and len(workers) >= self._workers:
                        break
                    path = next(remaining, None)
                    exhausted = path is None
                    if path is not None:
                        if idle is None:
                            idle = _Worker(self.spec, self._hang_timeout)
                            workers.append(idle)
                        idle.assign(path)
                busy = [worker for worker in workers if worker.path is not None]
                if not busy:
                    return
                ready = wait([worker.channel.fileno() for worker in busy], timeout=_TICK)
                if not ready:
                    yield Idle()
                for worker in busy:
                    if worker.channel.fileno() in ready:
                        yield from worker.receive()
                    else:
                        yield from worker.check_silence()
        finally:
            for worker in workers:
                worker.end()


def _worker_command(descriptor: int | None) -> list[str]:
    """Command line of a worker process that inherits the socket connected to this process."""
    if is_bundled():
        return [sys.executable, WORKER_OPTION, *([] if descriptor is None else [str(descriptor)])]
    # Use the search path of this process, so that functions named in the specification can be imported.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from vidkin.index.ingest.worker import run_worker; run_worker({descriptor})"
    )
    return [sys.executable, "-c", code]


@dataclass
class _Worker:
    """A worker process, as seen by its parent."""

    spec: WorkerSpec
    hang_timeout: float
    ready: bool = False
    lost: bool = False
    restarts: int = 0
    path: str | None = None

    def __post_init__(self) -> None:
        self.silence = Silence(self.hang_timeout)
        self._start()

    def _start(self) -> None:
        self.channel, theirs = Channel.pair()
        # On Windows, a process receives a copy of a socket instead of inheriting it.
        is_shared = sys.platform == "win32"
        descriptor = None if is_shared else theirs.fileno()
        # Only the parent should receive Ctrl-C; it then stops its workers.
        alone: dict[str, Any] = {"process_group": 0}
        if is_shared:
            alone = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in end()
        self.process = subprocess.Popen(
            _worker_command(descriptor),
            pass_fds=() if descriptor is None else (descriptor,),
            stdin=subprocess.PIPE if is_shared else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            env={**os.environ, **_ONE_THREAD},
            **alone,
        )
        if self.process.stdin is not None:
            with contextlib.suppress(OSError), self.process.stdin as pipe:
                pipe.write(share_socket(theirs, self.process.pid))
        theirs.close()
        self._send(self.spec)

    def assign(self, path: str) -> None:
        """Assign a file to the worker."""
        self.path = path
        self.silence.end("decoding")
        self._send(path)

    def usable(self) -> bool:
        """Whether the worker is busy or can take work; if not, end it so that another can replace it."""
        if self.lost or (self.path is None and self.process.poll() is not None):
            self.end()
            return False
        return True

    def receive(self) -> Iterator[Event]:
        """Read a message from the worker; yield the event, if it contains one."""
        path = self.path
        assert path is not None  # only busy workers are read from
        self.silence.end()
        try:
            messages: list[Event | Alive | Failed] = self.channel.receive_part()
        except (EOFError, ConnectionError):
            yield self._handle_exit(path)
            return
        for message in messages:
            if isinstance(message, Failed):
                message.error.add_note(f"in a worker process:\n{message.trace}")
                raise message.error
            self.ready = True
            if isinstance(message, Described | Unreadable):
                self.path = None
            if isinstance(message, Alive):
                self.silence.end(message.phase)
            else:
                yield message

    def check_silence(self) -> Iterator[Event]:
        """Check a worker that sent nothing: if it hangs, mark it as lost and report its file as unreadable."""
        path = self.path
        assert path is not None
        cause = self.silence.measure()
        if not self.ready:
            if self.silence.seconds > _START_TIMEOUT:
                self.lost = True
                raise RuntimeError(f"a worker process did not start within {_START_TIMEOUT:g} s: {self._read_errors()}")
        elif cause is not None:
            self.lost = True
            yield Unreadable(path, cause, temporary=True)

    def end(self) -> None:
        """Kill the process, whatever it is doing, and release its resources."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()

    def _handle_exit(self, path: str) -> Event:
        """Handle an exited process: report its file as unreadable, or restart it if it was killed before it was
        ready."""
        try:
            status = self.process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        name = _SIGNAL_NAMES.get(-status, str(-status))
        hint = ", possibly for lack of memory" if -status == _KILLED else ""
        if not self.ready and status < 0:
            if self.restarts >= _MAX_RESTARTS:
                raise ExtractorError(
                    f"worker processes were killed by signal {name} {self.restarts + 1} times before they could "
                    f"start{hint}; finished work is saved: run it again with fewer workers (workers=1, --workers 1)"
                )
            self.end()
            self.restarts += 1
            self._start()
            self.assign(path)
            return Idle()
        self.lost = True
        if not self.ready:
            raise RuntimeError(
                f"a worker process exited with status {status} before it could start: {self._read_errors()}"
            )
        if status >= _FIRST_CRASH:
            return Unreadable(path, f"decoder process crashed with status {status:#x}", temporary=False)
        if status >= 0:
            return Unreadable(path, f"decoder process exited with status {status}", temporary=True)
        cause = f"decoder process was killed by signal {name}{hint}"
        return Unreadable(path, cause, temporary=-status not in _CRASHES)

    def _send(self, message: object) -> None:
        # If the process has exited, the next receive reports its status.
        with contextlib.suppress(ConnectionError):
            self.channel.send(message)

    def _read_errors(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").strip()[-2000:] or "no error output"
