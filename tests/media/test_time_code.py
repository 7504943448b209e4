"""Time code matches values counted by hand according to the SMPTE rules."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.media.time_code import SourceClock, count_frames, frame_at, smpte_rate, timecode, timeline_rate

NTSC = Fraction(30000, 1001)
DOUBLE_NTSC = Fraction(60000, 1001)


@pytest.mark.parametrize(
    ("frame", "rate", "expected"),
    [
        (0, Fraction(24), "00:00:00:00"),
        (23, Fraction(24), "00:00:00:23"),
        (24, Fraction(24), "00:00:01:00"),
        (336, Fraction(24), "00:00:14:00"),
        (25 * 3661 + 7, Fraction(25), "01:01:01:07"),
        (1800, NTSC, "00:01:00:00"),
        (24 * 60 * 60 * 24, Fraction(24), "00:00:00:00"),
        (119, Fraction(120), "00:00:00:119"),
    ],
)
def test_plain_time_code_counts_frames(frame: int, rate: Fraction, expected: str) -> None:
    assert timecode(frame, rate) == expected


@pytest.mark.parametrize(
    ("frame", "rate", "expected"),
    [
        (0, NTSC, "00:00:00;00"),
        (1799, NTSC, "00:00:59;29"),
        (1800, NTSC, "00:01:00;02"),
        (3597, NTSC, "00:01:59;29"),
        (3598, NTSC, "00:02:00;02"),
        (17981, NTSC, "00:09:59;29"),
        (17982, NTSC, "00:10:00;00"),
        (17983, NTSC, "00:10:00;01"),
        (17982 + 1800, NTSC, "00:11:00;02"),
        (107892, NTSC, "01:00:00;00"),
        (3599, DOUBLE_NTSC, "00:00:59;59"),
        (3600, DOUBLE_NTSC, "00:01:00;04"),
        (35964, DOUBLE_NTSC, "00:10:00;00"),
    ],
)
def test_drop_frame_time_code_follows_the_clock(frame: int, rate: Fraction, expected: str) -> None:
    assert timecode(frame, rate, drop_frame=True) == expected


@pytest.mark.parametrize(("rate", "exact"), [(25, 25), (25.0, 25), (23.976, Fraction(24000, 1001)), (12.5, 12.5)])
def test_rounded_rate_is_replaced_by_its_standard_rate(rate: float, exact: Fraction | float) -> None:
    assert timecode(100_000, rate) == timecode(100_000, Fraction(exact))


def test_29_97_has_drop_frame_time_code() -> None:
    assert timecode(1800, 29.97, drop_frame=True) == "00:01:00;02"


@pytest.mark.parametrize(
    ("frame", "rate", "message"),
    [
        (1.5, 25, "frame must be a whole number, got 1.5"),
        (-1, 25, "frame must be at least 0, got -1"),
        (1, "25", "rate must be a number, got '25'"),
        (1, 0, "rate must be above 0, got 0"),
    ],
)
def test_invalid_frames_and_rates_are_refused(frame: int, rate: float, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{message}"):
        timecode(frame, rate)


def test_drop_frame_time_code_never_repeats_a_number() -> None:
    codes = [timecode(frame, NTSC, drop_frame=True) for frame in range(20_000)]
    assert codes == sorted(set(codes))


def test_drop_frame_exists_for_two_rates() -> None:
    with pytest.raises(InvalidArgumentError, match=r"29\.97 or 59\.94 .* got 24; omit drop-frame"):
        timecode(0, Fraction(24), drop_frame=True)
    with pytest.raises(InvalidArgumentError, match="frame must be at least 0, got -1"):
        timecode(-1, Fraction(24))


@pytest.mark.parametrize("rate", [24, 25, 30, 50, 60, 12, Fraction(24000, 1001), NTSC, DOUBLE_NTSC])
@pytest.mark.parametrize("count", [2, 40, 5000])
def test_the_rate_is_found_from_exact_times(rate: Fraction, count: int) -> None:
    found = timeline_rate(np.arange(count) / float(rate))
    # Only longer videos can distinguish 23.976 from 24.
    assert found == rate if count > 2 else abs(float(found / rate) - 1) < 0.002


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(24000, 1001), NTSC, Fraction(25)])
def test_the_rate_is_found_from_milliseconds(rate: Fraction) -> None:
    """Matroska rounds times to milliseconds."""
    assert timeline_rate(np.round(np.arange(3000) / float(rate), 3)) == rate


def test_missing_frames_do_not_change_the_rate() -> None:
    times = np.arange(300) / float(NTSC)
    assert timeline_rate(np.delete(times, [50, 51, 120, 200])) == NTSC


def test_other_rates_are_rounded() -> None:
    assert timeline_rate(np.arange(50) / 10.0) == 10
    assert timeline_rate(np.array([0.0, 0.1, 0.5, 0.6, 1.4, 1.5, 1.6, 2.9, 3.0, 3.7])) == 2
    assert timeline_rate(np.array([0.0, 100.0])) == 1
    assert timeline_rate(np.array([0.0])) == 24


def test_a_time_is_rounded_to_the_nearest_frame() -> None:
    assert [frame_at(time, Fraction(24)) for time in (0.0, 0.02, 0.03, 14.0)] == [0, 0, 1, 336]


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(25), NTSC, DOUBLE_NTSC, Fraction(120)])
@pytest.mark.parametrize("drop_frame", [False, True])
def test_formatted_time_code_parses_back_to_the_same_frame(rate: Fraction, drop_frame: bool) -> None:
    if drop_frame and rate.denominator == 1:
        return
    for frame in (0, 1, 1798, 1799, 1800, 17_981, 17_982, 17_983, 107_892, 1_000_000):
        assert count_frames(timecode(frame, rate, drop_frame=drop_frame), rate) == frame


@pytest.mark.parametrize("text", ["", "10:00:00", "10:00:00:25", "24:00:00:00", "10:60:00:00", "ten", "1:2:3:4"])
def test_other_text_is_not_a_time_code(text: str) -> None:
    assert count_frames(text, Fraction(25)) is None


def test_time_code_uses_a_multiple_of_nonstandard_rates() -> None:
    rates = {10: 30, 12: 24, 15: 30, 24: 24, 50: 50, 100: 60, 120: 60, 7: 24, 240: 60}
    assert {rate: smpte_rate(Fraction(rate)) for rate in rates} == rates
    assert smpte_rate(Fraction(15_000, 1001)) == NTSC


def test_clock_starts_at_the_time_code_or_at_zero() -> None:
    coded = SourceClock.of(Fraction(25), time_code="10:00:00:05", offset=3.0)
    assert (coded.code(coded.frame(1.0)), coded.begin) == ("10:00:01:05", coded.first)
    late = SourceClock.of(Fraction(25), offset=3.0)
    assert (late.code(late.frame(1.0)), late.begin) == ("00:00:04:00", 0)
    slow = SourceClock.of(Fraction(15), time_code="00:00:00:14").at(Fraction(30))
    assert slow.code(slow.frame(0.0)) == "00:00:00:28"
