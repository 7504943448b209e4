"""How values on the command line are read."""

from __future__ import annotations

import re

import pytest
import typer

from vidkin.cli.options import mark_optional_value, parse_moment, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("90", 90.0),
        ("90.5", 90.5),
        ("1:30", 90.0),
        (" 1:30.5", 90.5),
        ("1:02:03", 3723.0),
        (12.5, 12.5),
    ],
)
def test_times_are_seconds_or_minutes_and_seconds(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_a_frame_number_is_a_time_where_the_rate_is_known() -> None:
    assert parse_time("250f", rate=25.0) == 10.0


def test_a_frame_number_stays_one_until_its_file_is_known() -> None:
    assert [parse_moment(text) for text in ("250f", "0:01.5", 12.5)] == ["250f", 1.5, 12.5]
    with pytest.raises(typer.BadParameter, match=r"invalid time 'soon'; .*, or a frame number \(250f\)"):
        parse_moment("soon")


@pytest.mark.parametrize("text", ["", "soon", "-1", "1:75", "1.5:30", "1:2:3:4", "nan", "inf", "1:nan", "1:-5"])
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"invalid time .*; use seconds \(90\.5\), M:SS"):
        parse_time(text)


@pytest.mark.parametrize(
    ("words", "marked"),
    [
        ("index --ray", "index --ray="),
        ("index --ray videos", "index --ray= videos"),
        ("index --ray here:1 videos", "index --ray here:1 videos"),
        ("index --ray --prune videos", "index --ray= --prune videos"),
        ("index --ray=here:1", "index --ray=here:1"),
        ("index -- --ray", "index -- --ray"),
    ],
)
def test_an_option_may_be_used_without_its_value(words: str, marked: str) -> None:
    assert mark_optional_value(words.split(), "--ray", re.compile(r"\w+:\d+")) == marked.split()
