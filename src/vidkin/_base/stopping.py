"""Work that nobody wants any more ends by itself: it asks between two frames, and two steps, whether it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_unwanted: ContextVar[Callable[[], bool] | None] = ContextVar("vidkin_is_unwanted", default=None)


class StoppedError(BaseException):
    """The work was canceled, see :func:`stopping_when`; what was complete is stored.

    Not an :class:`Exception`, like ``KeyboardInterrupt`` and ``asyncio.CancelledError``: it must not pass for a broken
    file.
    """

    def __init__(self, message: str = "canceled by stopping_when; what was complete is stored") -> None:
        super().__init__(message)


@contextmanager
def stopping_when(is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let what vidkin does in this block end with :class:`StoppedError` once a function returns True.

    It is asked between two frames and between two steps, so a call ends within a moment. The block counts for its own
    thread, and for others that get its context, as those of ``asyncio.to_thread`` do.

    Args:
        is_unwanted: Such as the ``is_set`` of a :class:`threading.Event` that another thread sets, or for a deadline
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
    """Raise :class:`StoppedError` if the work of this context is not wanted any more; takes a tenth of a microsecond
    where nobody stops it."""
    is_unwanted = _is_unwanted.get()
    if is_unwanted is not None and is_unwanted():
        raise StoppedError


def report_to(on_progress: Callable[[int, int], object] | None) -> Callable[[int, int], None]:
    """A callback of (steps done, total number of steps) that tells another one, if there is one, and at which work
    ends that nobody wants any more."""

    def report(done: int, total: int) -> None:
        check_wanted()
        if on_progress is not None:
            on_progress(done, total)

    return report
