"""Ctrl-C while a step is taken: noted at first, obeyed at the second time."""

from __future__ import annotations

import signal
import threading

import pytest

from vidkin.training.runner import deferred_interrupt


def test_the_first_is_noted_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt() as interrupt:
        assert not interrupt
        signal.raise_signal(signal.SIGINT)
        assert interrupt
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_a_step_ctrl_c_interrupts_as_ever() -> None:
    with deferred_interrupt() as interrupt:
        pass
    assert not interrupt
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with deferred_interrupt() as interrupt:
            seen.append((bool(interrupt), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
