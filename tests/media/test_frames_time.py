"""Times are parsed, formatted, converted to frames and ticks, and compared."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin.media import Time
from vidkin.media.frames import SAME_TIME, Ticks, earliest, first_at, is_before, is_same_time, latest, shown_at

RATES = st.sampled_from([Fraction(24), Fraction(25), Fraction(30000, 1001), Fraction(60), Fraction(24000, 1001)])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", Fraction(0)),
        ("90.5", Fraction(181, 2)),
        (".5", Fraction(1, 2)),
        (12.5, Fraction(25, 2)),
        (1e-05, Fraction(1, 100_000)),
        ("0:01.25", Fraction(5, 4)),
        (" 1:30.5 ", Fraction(181, 2)),
        ("00:00:01.250", Fraction(5, 4)),
        ("100:00:00", Fraction(360_000)),
    ],
)
def test_time_texts_are_parsed_without_rounding(text: str | float, seconds: Fraction) -> None:
    assert Time.parse(text).seconds == seconds


@pytest.mark.parametrize("text", ["250f", "250F", "250 frames", "250frame"])
def test_a_frame_number_is_a_time_if_the_rate_is_known(text: str) -> None:
    assert Time.parse(text, rate=25).seconds == 10


def test_a_frame_number_without_a_rate_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"invalid time '250f'; use seconds \(90\.5\), M:SS"):
        Time.parse("250f")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1",
        "1:75",
        "1.5:30",
        "1:2:3:4",
        "nan",
        "inf",
        "1:-5",
        "1/3",
        "1e999999999",
        ":",
        "f",
        "-5f",
        "9" * 40,
    ],
)
def test_other_text_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"invalid time .* frame number \(250f\)"):
        Time.parse(text, rate=25)


@given(number=st.integers(0, 10**7), rate=RATES)
def test_a_frame_number_survives_conversion_to_seconds_and_back(number: int, rate: Fraction) -> None:
    assert Time.of_frame(number, rate).frame(rate) == number
    assert Time(Fraction(float(Time.of_frame(number, rate)))).frame(rate) == number


@given(number=st.integers(0, 10**7), rate=RATES)
def test_a_rounded_rate_gives_the_same_frame(number: int, rate: Fraction) -> None:
    assert Time.of_frame(number, rate).frame(round(float(rate), 3)) == number


def test_a_nonstandard_rate_is_used_unchanged() -> None:
    assert Time.of_frame(25, 12.5).seconds == 2
    assert Time.of_frame(1, 0.25).seconds == 4


@pytest.mark.parametrize("rate", [0, -25, float("nan")])
def test_a_rate_must_be_above_zero(rate: float) -> None:
    with pytest.raises(InvalidArgumentError, match="rate must be above 0"):
        Time.of_frame(1, rate)


def test_ticks_of_a_file_are_exact() -> None:
    assert Time.of_ticks(3003, Fraction(1, 90_000)) == Time.of_frame(1, Fraction(30_000, 1001))


def test_a_time_before_the_first_frame_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="time must be at least 0"):
        Time.of_ticks(-1, Fraction(1, 25))


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (Fraction(0), "00:00:00.000"),
        (Fraction(5, 4), "00:00:01.250"),
        (Fraction("59.9996"), "00:01:00.000"),
        (Fraction(3723), "01:02:03.000"),
        (Fraction(360_000), "100:00:00.000"),
    ],
)
def test_times_are_formatted_as_hours_minutes_and_milliseconds(seconds: Fraction, written: str) -> None:
    assert str(Time(seconds)) == written


@given(milliseconds=st.integers(0, 10**10))
def test_a_formatted_time_parses_back_to_itself(milliseconds: int) -> None:
    time = Time(Fraction(milliseconds, 1000))
    assert Time.parse(str(time)) == time


def test_times_are_ordered() -> None:
    assert Time.parse("1:00") < Time.parse("61") < Time.parse("0:01:01.001")


def test_sums_of_thirds_compare_as_equal() -> None:
    third = sum([1 / 3] * 300)
    assert third != 100.0
    assert is_same_time(third, 100.0)
    assert not is_before(third, 100.0)
    assert not is_before(100.0, third)


def test_time_earlier_by_more_than_rounding_is_before() -> None:
    assert is_before(1.0, 1.0 + 2 * SAME_TIME)
    assert not is_same_time(1.0, 1.0 + 2 * SAME_TIME)


def test_arrays_of_times_are_compared() -> None:
    times = np.array([0.1 + 0.2, 0.3, 0.3 + 2 * SAME_TIME, 0.5])
    assert is_before(times, 0.3 + 2 * SAME_TIME).tolist() == [True, True, False, False]
    assert is_same_time(times, np.full(4, 0.3)).tolist() == [True, True, False, False]


def test_rounding_moves_a_frame_neither_before_a_time_nor_after_it() -> None:
    times = np.array([0.0, 0.1 + 0.2, 1.0])  # the second is 0.30000000000000004
    assert first_at(times, 0.3) == 1
    assert shown_at(times, 0.3) == 1
    assert first_at(times, np.array([0.0, 0.2, 0.31, 2.0])).tolist() == [0, 1, 2, 3]
    assert shown_at(times, np.array([-1.0, 0.2, 0.31, 2.0])).tolist() == [-1, 0, 1, 2]
    assert not is_before(earliest(1.0), 1.0)
    assert not is_before(1.0, latest(1.0))


def test_ticks_convert_to_seconds_from_the_first_frame_and_back() -> None:
    ticks = Ticks(0.001, first=1_000)
    assert [ticks.seconds(stamp) for stamp in (1_000, 1_250, 999)] == pytest.approx([0.0, 0.25, -0.001])
    assert [ticks.latest(time) for time in (0.0, 0.25, 0.2499, 0.25 - 1e-9)] == [1_000, 1_250, 1_249, 1_250]
    assert ticks.latest(2 / 3) == 1_666
    thirds = Ticks(1 / 3)
    assert [thirds.latest(number * (1 / 3)) for number in range(1_000)] == list(range(1_000))
