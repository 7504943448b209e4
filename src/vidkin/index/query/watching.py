"""Run work in a separate thread, so that a hung decoder can be abandoned and Ctrl-C works at any time."""

from __future__ import annotations

import atexit
import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from vidkin._base.stopping import check_wanted
from vidkin.features import Phase
from vidkin.features.views import Silence

ABANDONED = "vidkin abandoned reader"
"""Name given to a thread that is still running when its result is no longer needed."""

_Result = TypeVar("_Result")

_TICK = 0.1
# Seconds to wait for an abandoned thread to end cleanly, at its next call of `beat`.
_GRACE = 0.5

# Seconds to wait for it again at exit, because killing a thread inside a native library may abort the process.
_GRACE_AT_EXIT = 5.0


class HangError(Exception):
    """The work made no progress for too long; the message is one line."""


def run_watched(
    work: Callable[[Callable[[Phase], None]], _Result],
    *,
    hang_timeout: float,
    on_tick: Callable[[], None] = check_wanted,
) -> _Result:
    """Run ``work(beat)`` in a thread and return its result, or raise its exception.

    A call into a decoder cannot be interrupted, but a thread that waits for it can be, by Ctrl-C or for lack of
    progress. The worker thread then ends at its next call of ``beat``; a thread that never returns does not prevent the
    process from exiting.

    Args:
        work: Function that calls ``beat`` regularly with its current phase.
        hang_timeout: Timeout as in :class:`~vidkin.features.views.Silence`.
        on_tick: Called by the waiting thread ten times a second; raising an exception stops the work.

    Raises:
        HangError: ``beat`` was not called for too long.
    """
    worker = _WatchedThread(work)
    silence, before = Silence(hang_timeout), 0
    thread = threading.Thread(target=contextvars.copy_context().run, args=[worker.run], daemon=True)
    thread.start()
    try:
        while not worker.done.wait(_TICK):
            on_tick()
            if worker.beats != before:
                before = worker.beats
                silence.end(worker.phase)
            elif (cause := silence.measure()) is not None:
                raise HangError(cause)
    finally:
        worker.is_abandoned = True
        thread.join(_GRACE)
        if thread.is_alive():
            thread.name = ABANDONED
            atexit.register(thread.join, _GRACE_AT_EXIT)
    return worker.result()


class _AbandonedError(BaseException):
    """Raised in a worker thread whose result is no longer needed."""


class _WatchedThread(Generic[_Result]):
    """The work, its progress and its result, shared with the waiting thread."""

    def __init__(self, work: Callable[[Callable[[Phase], None]], _Result]) -> None:
        self.done = threading.Event()
        self.is_abandoned = False
        self.beats = 0
        self.phase: Phase = "decoding"
        self._work = work
        self._results: list[_Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the work and keep its result or exception."""
        try:
            self._results.append(self._work(self._beat))
        # `result` raises it again in the waiting thread.
        except BaseException as error:  # noqa: BLE001
            self._error = error
        self.done.set()

    def result(self) -> _Result:
        """Return the result, or raise the exception of the work."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _beat(self, phase: Phase) -> None:
        if self.is_abandoned:
            raise _AbandonedError
        self.phase = phase
        self.beats += 1
