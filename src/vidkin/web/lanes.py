"""Run blocking work off the event loop in lanes, so that a stuck call blocks its own lane only briefly and never
others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vidkin._base.stopping import stopping_when

_Value = TypeVar("_Value")
# With more abandoned calls than this still running, the lane counts as broken.
_MAX_ABANDONED = 16


class BusyError(Exception):
    """Too many requests are waiting for the same kind of work."""


class StuckError(Exception):
    """The work exceeded its time limit."""


@dataclass(eq=False, slots=True)
class _Call:
    work: Callable[[], Any]
    client: str
    ticket: str
    future: Future[Any] = field(default_factory=Future)
    unwanted: threading.Event = field(default_factory=threading.Event)


class Lane:
    """Threads for one kind of work, with a bounded, fair queue.

    Clients take turns, so a client with a hundred requests does not delay one with a single request. A call that takes
    too long is abandoned: its caller gets an error, and a new thread replaces the stuck one, which ends with its work.
    The threads never keep the process alive.

    Args:
        name: Name for threads and error messages.
        workers: Maximum number of simultaneous calls.
        waiting: Maximum number of waiting calls.
        seconds: Time limit of a call, including waiting.
        of_client: Maximum number of waiting calls of one client; default: ``waiting``.

    Attributes:
        calls: Number of completed calls.
    """

    def __init__(self, name: str, *, workers: int, waiting: int, seconds: float, of_client: int | None = None) -> None:
        self._name = name
        self._workers = workers
        self._most = workers + waiting
        self._of_client = waiting if of_client is None else of_client
        self._seconds = seconds
        self._lock = threading.Lock()
        self._something_waits = threading.Condition(self._lock)
        # Waiting calls by client; the client whose turn it is comes first.
        self._lines: OrderedDict[str, deque[_Call]] = OrderedDict()
        self._open: dict[Future[Any], _Call] = {}
        self._abandoned: set[Future[Any]] = set()
        self._threads = 0
        self.calls = 0

    async def run(self, work: Callable[[], _Value], *, client: str = "", ticket: str = "") -> _Value:
        """Return the result of ``work()``, or raise its exception.

        Args:
            work: Function to call in a thread.
            client: Name of the client; clients take turns.
            ticket: For :meth:`position`.

        Raises:
            BusyError: Too many calls are waiting, or this one did not start in time.
            StuckError: It took too long.
        """
        call = _Call(work, client, ticket)
        with self._lock:
            of_client = sum(other.client == client for other in self._open.values())
            is_full = len(self._open) >= self._most or of_client >= self._workers + self._of_client
            if is_full or len(self._abandoned) >= _MAX_ABANDONED:
                raise BusyError(f"too many requests for {self._name} at once; try again in a moment")
            self._open[call.future] = call
            self._lines.setdefault(client, deque()).append(call)
            self._add_thread()
            self._something_waits.notify()
        is_stuck = False
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(call.future)
        except TimeoutError as error:
            if call.future.done() and not call.future.cancelled():
                raise  # raised by the work itself
            is_stuck = True
            if call.future.cancelled():
                message = f"too many requests for {self._name}: not begun in {self._seconds:g} s; try again in a moment"
                raise BusyError(message) from error
            raise StuckError(f"{self._name} took longer than {self._seconds:g} s and was given up") from error
        finally:
            call.unwanted.set()
            if call.future.running() and not is_stuck:
                # The client has left, but the work occupies its thread until it stops, before its next frame at the
                # latest. Otherwise leaving clients could start more simultaneous work than there are threads.
                call.future.add_done_callback(lambda _: self._leave(call))
            else:
                self._leave(call)

    def position(self, ticket: str) -> int | None:
        """The position of a call in the queue: 1 is the next, 0 has started; None if there is no such call."""
        with self._lock:
            turns = list(self._lines.values())
            for turn, line in enumerate(turns):
                for place, call in enumerate(line):
                    if call.ticket == ticket:
                        before = sum(
                            min(len(other), place + (at < turn)) for at, other in enumerate(turns) if at != turn
                        )
                        return before + place + 1
            return 0 if any(call.ticket == ticket for call in self._open.values()) else None

    def _leave(self, call: _Call) -> None:
        with self._lock:
            self._open.pop(call.future, None)
            line = self._lines.get(call.client)
            if line is not None and call in line:  # abandoned before its turn
                line.remove(call)
                if not line:
                    del self._lines[call.client]
            if call.future.running():
                self._abandoned.add(call.future)
                self._threads -= 1
                self._add_thread()

    def _add_thread(self) -> None:
        """Start another thread if there is work for it; the caller holds the lock."""
        if self._threads < min(self._workers, len(self._open)):
            self._threads += 1
            threading.Thread(target=self._work, name=f"vidkin {self._name}", daemon=True).start()

    def _next(self) -> _Call:
        """Wait for the next call, and move its client to the end of the queue."""
        with self._something_waits:
            self._something_waits.wait_for(lambda: self._lines)
            client, line = self._lines.popitem(last=False)
            call = line.popleft()
            if line:
                self._lines[client] = line
            return call

    def _work(self) -> None:
        while True:
            call = self._next()
            if not call.future.set_running_or_notify_cancel():
                continue
            # The event loop of an abandoned request may be closed.
            with contextlib.suppress(RuntimeError):
                try:
                    with stopping_when(call.unwanted.is_set):
                        result = call.work()
                # Raised again in the caller.
                except BaseException as error:  # noqa: BLE001
                    call.future.set_exception(error)
                else:
                    call.future.set_result(result)
            with self._lock:
                self.calls += 1
                if call.future in self._abandoned:
                    self._abandoned.discard(call.future)
                    return
