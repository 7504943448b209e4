"""Ctrl-C during a step: the first one is deferred, the second one interrupts."""

from __future__ import annotations

import signal
import threading

import pytest

from vidkin.training.runner import defer_interrupt


def test_first_ctrl_c_is_deferred_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with defer_interrupt() as interrupt:
        assert not interrupt
        signal.raise_signal(signal.SIGINT)
        assert interrupt
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_interrupts_immediately_after_the_block() -> None:
    with defer_interrupt() as interrupt:
        pass
    assert not interrupt
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_do_not_change_signal_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with defer_interrupt() as interrupt:
            seen.append((bool(interrupt), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
