"""Read a query in a thread of its own, so that a decoder that hangs can be left, and Ctrl-C works at any moment."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from vidkin.features import Phase
from vidkin.index.ingest.workers.silence import Silence

__all__ = ["HangError", "run_watched"]

_Result = TypeVar("_Result")

_TICK = 0.1
# What an abandoned thread gets to end in order, at its next sign of life, in seconds.
_LAST_CHANCE = 0.5


class HangError(Exception):
    """The work gave no sign of life; the text is one line."""


def run_watched(work: Callable[[Callable[[Phase], None]], _Result], *, hang_timeout: float) -> _Result:
    """What ``work(beat)`` returns or raises.

    A call into a decoder cannot be interrupted; but the thread that waits for it can, by Ctrl-C or by the lack of
    progress. The thread that works ends at its next sign of life then; one that never comes back does not keep the
    process from ending.

    Args:
        work: Calls ``beat`` with what it does, over and over.
        hang_timeout: As of :class:`~vidkin.index.ingest.workers.silence.Silence`.

    Raises:
        HangError: No ``beat`` came for too long.
    """
    worker = _Worker(work)
    silence, before = Silence(hang_timeout), 0
    thread = threading.Thread(target=contextvars.copy_context().run, args=[worker.run], daemon=True)
    thread.start()
    try:
        while not worker.done.wait(_TICK):
            if worker.beats != before:
                before = worker.beats
                silence.end(worker.phase)
            elif (cause := silence.measure()) is not None:
                raise HangError(cause)
    finally:
        worker.is_abandoned = True
        thread.join(_LAST_CHANCE)
    return worker.result()


class _AbandonedError(BaseException):
    """Nobody waits for the result any more."""


class _Worker(Generic[_Result]):
    """The work, and how far it is, as the other thread sees it."""

    def __init__(self, work: Callable[[Callable[[Phase], None]], _Result]) -> None:
        self.done = threading.Event()
        self.is_abandoned = False
        self.beats = 0
        self.phase: Phase = "decoding"
        self._work = work
        self._results: list[_Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, whatever comes of it."""
        try:
            self._results.append(self._work(self._beat))
        # Raised again by the thread that waits.
        except BaseException as error:  # noqa: BLE001
            self._error = error
        self.done.set()

    def result(self) -> _Result:
        """What was returned; raises what was raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _beat(self, phase: Phase) -> None:
        if self.is_abandoned:
            raise _AbandonedError
        self.phase = phase
        self.beats += 1
