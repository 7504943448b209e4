"""Ctrl-C between two steps instead of in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "deferred_interrupt"]


class Interrupt:
    """Was Ctrl-C pressed? Truthy once it was."""

    def __init__(self) -> None:
        self.came = False

    def __bool__(self) -> bool:
        return self.came


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Inside, a first SIGINT is only noted, so that half a step is never stored; a second one interrupts at once.

    Outside the main thread, where Python allows no handlers, nothing is noted and everything stays as it is.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.came:
            raise KeyboardInterrupt
        interrupt.came = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
