"""Times, sizes and counts as text."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.rendering import clock, file_size, number, printable
from vidkin.rendering.text import clock_range, command_line, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0:00.0"),
        (-3.0, "0:00.0"),
        (0.04, "0:00.0"),
        (0.05, "0:00.1"),
        (75.25, "1:15.3"),
        (59.949, "0:59.9"),
        (59.95, "1:00.0"),
        (3599.95, "1:00:00.0"),
        (36_000.0, "10:00:00.0"),
    ],
)
def test_clock_rounds_halves_up_and_carries(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@given(st.integers(min_value=0, max_value=10_000_000))
def test_clock_parses_back_to_the_same_tenths(tenths: int) -> None:
    *hours, minutes, rest = clock(tenths / 10).split(":")
    whole, tenth = rest.split(".")
    assert int(minutes) < 60 or not hours
    assert ((int(hours[0]) if hours else 0) * 60 + int(minutes)) * 600 + int(whole) * 10 + int(tenth) == tenths


def test_empty_range_is_an_empty_string() -> None:
    assert clock_range(1.0, 61.5) == "0:01.0 - 1:01.5"
    assert clock_range(2.0, 2.0) == ""
    assert clock_range(3.0, 2.0) == ""


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_449_999, "1.4 MB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (999_999_999, "1.0 GB"),
        (2_500_000_000_000, "2.5 TB"),
        (1_234_567_000_000_000, "1234.6 TB"),
    ],
)
def test_file_sizes_have_decimal_units(size: int, text: str) -> None:
    assert file_size(size) == text


@given(st.integers(min_value=0, max_value=2**53 - 1))
def test_file_size_is_rounded_to_one_decimal(size: int) -> None:
    amount, unit = file_size(size).split()
    scale = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}[unit]
    assert float(amount) < 1000 or unit == "TB"
    assert abs(float(amount) * scale - size) <= 0.0501 * scale


def test_numbers_have_singular_plural_and_thousands() -> None:
    assert [number(count, "video") for count in (0, 1, 2, 12_345)] == [
        "0 videos",
        "1 video",
        "2 videos",
        "12,345 videos",
    ]
    assert [number(count, "copy", "copies") for count in (1, 3)] == ["1 copy", "3 copies"]


def test_percentages_have_one_decimal_and_a_deviation() -> None:
    assert percent(1.0) == "100.0"
    assert percent(0.0004) == "0.0"
    assert percent(0.5, 0.0) == "50.0 ± 0.0"


def test_percentages_have_one_decimal_and_a_standard_deviation() -> None:
    assert printable("a\x1b[31mb\nc\u202ed") == "a�[31mb�c�d"
    assert printable(os.fsdecode(b"caf\xe9 \xe5\xb1\xb1.mp4")) == "caf� 山.mp4"
    assert printable("plain ü 山.mp4") == "plain ü 山.mp4"


@pytest.mark.parametrize(
    ("platform", "line"),
    [("linux", "vidkin apply 'my plan.json' --undo"), ("win32", 'vidkin apply "my plan.json" --undo')],
)
def test_command_line_is_quoted_for_the_system_shell(monkeypatch: pytest.MonkeyPatch, platform: str, line: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert command_line(["vidkin", "apply", "my plan.json", "--undo"]) == line
