"""How values on the command line are read."""

from __future__ import annotations

import pytest
import typer

from vidkin.cli.options import parse_time


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


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "1:75", "1.5:30", "1:2:3:4", "nan", "inf", "1:nan", "1:-5"]
)
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"invalid time .*; use seconds \(90\.5\), M:SS"):
        parse_time(text)
