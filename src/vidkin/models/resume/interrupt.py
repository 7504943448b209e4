"""Ctrl-C between two steps instead of in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "deferred_interrupt"]


class Interrupt:
    """Truthy once Ctrl-C has been pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def __bool__(self) -> bool:
        return self.pressed


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Inside the block, a first SIGINT is only recorded, so that no half step is stored; a second one interrupts at
    once.

    Outside the main thread, where Python allows no handlers, nothing changes.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.pressed:
            raise KeyboardInterrupt
        interrupt.pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
