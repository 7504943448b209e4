"""Cooperative cancellation: long-running work checks between frames and steps whether it should stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_unwanted: ContextVar[Callable[[], bool] | None] = ContextVar("vidkin_is_unwanted", default=None)


class StoppedError(BaseException):
    """The work was canceled by :func:`stopping_when`; completed work is saved.

    Like ``KeyboardInterrupt`` and ``asyncio.CancelledError``, this is not an :class:`Exception`, so that handlers for
    damaged files do not catch it.
    """

    def __init__(self, message: str = "canceled by stopping_when; completed work is saved") -> None:
        super().__init__(message)


@contextmanager
def stopping_when(is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Stop vidkin's work in this block with :class:`StoppedError` as soon as a function returns True.

    The function is called between frames and between steps, so work stops promptly. The block affects the current
    thread and threads that inherit its context, such as those of ``asyncio.to_thread``.

    Args:
        is_unwanted: For example, the ``is_set`` method of a :class:`threading.Event` that another thread sets, or
            ``lambda: time.monotonic() > deadline``.

    >>> from threading import Event
    >>> with stopping_when(Event().is_set):
    ...     check_wanted()
    """
    token = _is_unwanted.set(is_unwanted)
    try:
        yield
    finally:
        _is_unwanted.reset(token)


def check_wanted() -> None:
    """Raise :class:`StoppedError` if the work in this context is canceled; otherwise the check takes 0.1 µs."""
    is_unwanted = _is_unwanted.get()
    if is_unwanted is not None and is_unwanted():
        raise StoppedError


def report_to(on_progress: Callable[[int, int], object] | None) -> Callable[[int, int], None]:
    """Return a callback for (completed steps, total steps) that stops canceled work and calls ``on_progress``."""

    def report(done: int, total: int) -> None:
        check_wanted()
        if on_progress is not None:
            on_progress(done, total)

    return report
