"""Blocking work off the event loop, in lanes: a stuck call never blocks another lane, and its own only briefly."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

_Value = TypeVar("_Value")
# Calls of a lane that were given up and still run; more of them mean that something below is broken for good.
_MOST_ABANDONED = 16


class BusyError(Exception):
    """More requests wait for the same kind of work than the lane takes."""


class StuckError(Exception):
    """The work took longer than it may."""


class Lane:
    """Threads for one kind of work, with a bounded line in front of them.

    A call that takes too long is abandoned: its caller gets an error, and another thread replaces the stuck one,
    which ends when its work does. The threads never keep the process from ending.

    Args:
        name: For the names of the threads and in errors.
        workers: Calls that run at a time.
        waiting: Calls that may wait for a thread.
        seconds: After which a call is given up.
    """

    def __init__(self, name: str, *, workers: int, waiting: int, seconds: float) -> None:
        self._name = name
        self._workers = workers
        self._most = workers + waiting
        self._seconds = seconds
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open: set[Future[Any]] = set()
        self._abandoned: set[Future[Any]] = set()
        self._threads = 0

    async def run(self, work: Callable[[], _Value]) -> _Value:
        """What ``work()`` returns or raises.

        Raises:
            BusyError: Too many calls wait already.
            StuckError: It took too long.
        """
        future: Future[_Value] = Future()
        with self._lock:
            if len(self._open) >= self._most or len(self._abandoned) >= _MOST_ABANDONED:
                raise BusyError(f"too many requests for {self._name} at a time; try again in a moment")
            self._open.add(future)
            if self._threads < min(self._workers, len(self._open)):
                self._threads += 1
                threading.Thread(target=self._work, name=f"vidkin {self._name}", daemon=True).start()
        self._calls.put((work, future))
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                raise  # of the work itself
            raise StuckError(f"{self._name} took longer than {self._seconds:g} s and was given up") from error
        finally:
            self._leave(future)

    def _leave(self, future: Future[Any]) -> None:
        with self._lock:
            self._open.discard(future)
            if future.running():
                self._abandoned.add(future)
                self._threads -= 1
                if self._threads < min(self._workers, len(self._open)):
                    self._threads += 1
                    threading.Thread(target=self._work, name=f"vidkin {self._name}", daemon=True).start()

    def _work(self) -> None:
        while True:
            work, future = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            # The loop of a request that was given up may be closed.
            with contextlib.suppress(RuntimeError):
                try:
                    result = work()
                # Raised again by whoever waits.
                except BaseException as error:  # noqa: BLE001
                    future.set_exception(error)
                else:
                    future.set_result(result)
            with self._lock:
                if future in self._abandoned:
                    self._abandoned.discard(future)
                    return
