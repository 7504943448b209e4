"""The watchdog measures seconds without progress, with a simulated clock."""

from __future__ import annotations

import pytest

from vidkin.features import Silence, views


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(views, "time", clock)
    return clock


def test_silent_decoder_counts_as_hung_after_its_time_limit(clock: Clock) -> None:
    measured = Silence(hang_timeout=2.0)
    verdicts = []
    for _ in range(5):
        clock.now += 0.5
        verdicts.append(measured.measure())
    assert verdicts == [None, None, None, None, "the decoder hung: no progress for 2 s"]
    measured.end()
    clock.now += 0.5
    assert measured.measure() is None


def test_extractor_may_be_silent_five_times_as_long(clock: Clock) -> None:
    measured = Silence(hang_timeout=1.0)
    measured.end("describing")
    for _ in range(10):
        clock.now += 0.5
        assert measured.measure() is None
    measured.end()  # a heartbeat does not change the phase
    for _ in range(10):
        clock.now += 0.5
        assert measured.measure() is None
    clock.now += 0.5
    assert measured.measure() == "the extractor hung: no progress for 5 s"


def test_system_sleep_does_not_count_as_silence(clock: Clock) -> None:
    measured = Silence(hang_timeout=2.0)
    clock.now += 3600.0
    assert measured.measure() is None
    assert measured.seconds == 1.0
