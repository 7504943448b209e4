"""Tables in terminals of several widths."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from vidkin.cli.layout import PathText, fit_line, lay_out, shorten

NAME = "holidays in Norway/2024/sunset over the fjord, final cut.mp4"


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("a.mp4", 5, "a.mp4"),
        ("holidays/beach.mp4", 12, "…/beach.mp4"),
        ("holidays/at the beach.mp4", 12, "at …each.mp4"),
        ("日本語の名前.mp4", 11, "日…名前.mp4"),  # each sign has two columns
        ("beach.mp4", 1, "…"),
        ("beach.mp4", 0, ""),
    ],
)
def test_a_name_loses_its_middle(name: str, width: int, shown: str) -> None:
    assert shorten(name, width) == shown
    assert cell_len(shown) <= width


def draw(width: int, *, name: str = NAME) -> list[str]:
    columns = [("#", "right"), ("score", "right"), ("query", "right"), ("file", "left")]
    rows = [
        ["1", "0.99", "0:11.1-0:16.3", PathText(name)],
        ["2", "0.12", "0:01.0-0:02.0", PathText("b.mp4")],
    ]
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=False)
    console.print(lay_out(None, columns, rows, console))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_without_a_terminal_names_are_whole() -> None:
    assert any(NAME in line for line in draw(1000))


def test_a_wide_terminal_has_lines_and_the_whole_name() -> None:
    lines = draw(140)
    assert lines[0].startswith("┏")
    assert NAME in lines[3]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_keeps_the_numbers_and_both_ends_of_the_name(width: int) -> None:
    heading, first, second = draw(width)
    assert heading.split() == ["#", "score", "query", "file"]
    assert max(map(cell_len, (heading, first, second))) <= width
    assert first.split()[:3] == ["1", "0.99", "0:11.1-0:16.3"]
    # What is left of the line belongs to the name, but for a folder that would not be whole.
    assert cell_len(first) > width - 15
    assert "…" in first
    assert first.endswith("final cut.mp4")
    assert second.endswith(" b.mp4")


def test_a_very_narrow_column_shows_a_whole_name_on_two_lines() -> None:
    file = io.StringIO()
    console = Console(file=file, width=60)
    columns = [("times", "right"), ("file", "left")]
    console.print(
        lay_out(None, columns, [["0:11.1-0:16.3".rjust(46), PathText("holidays/beach at noon.mp4")]], console)
    )
    _, first, second = (line[46:].strip() for line in file.getvalue().splitlines())
    assert f"{first} {second}" == "beach at noon.mp4"


def test_a_name_that_fits_keeps_the_lines() -> None:
    assert draw(60, name="a.mp4")[0].startswith("┏")


def test_text_beside_a_name_is_folded_and_not_cut() -> None:
    cause = "no video stream is in this file at all, only sound"
    file = io.StringIO()
    console = Console(file=file, width=60)
    console.print(lay_out(None, [("file", "left"), ("cause", "left")], [[PathText(NAME), cause]], console))
    _, *lines = file.getvalue().splitlines()
    assert " ".join(line[-28:].strip() for line in lines if line.strip()).endswith("only sound")
    assert len(lines) > 1


def test_a_short_text_leaves_its_room_to_the_name() -> None:
    def length_of_name(text: str) -> int:
        file = io.StringIO()
        console = Console(file=file, width=60)
        console.print(lay_out(None, [("", "left"), ("file", "left")], [[text, PathText(NAME * 2)]], console))
        line = next(line for line in file.getvalue().splitlines() if "final cut.mp4" in line)
        return cell_len(line[line.index("…") if "…" in line else 0 :].rstrip())

    assert length_of_name("copy") > length_of_name("copy, doubtful: other takes of one scene?")


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("short", ["short"]),
        ("8 of them can be removed, 12.7 MB", ["8 of them can be", "removed, 12.7 MB"]),
        (
            "Then `vidkin apply plan.json --undo`, all of it.",
            ["Then", "`vidkin apply plan.json --undo`,", "all of it."],
        ),
        ("one ` alone is no command at all", ["one ` alone is no", "command at all"]),
        ("/a/name/without/any/space.mp4: gone", ["/a/name/without/any/space.mp4:", "gone"]),
    ],
)
def test_lines_break_between_words_and_not_in_commands(message: str, lines: list[str]) -> None:
    assert fit_line([message], 20).plain.split("\n") == lines


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.mp4", "a.mp4: 3 shots"),
        ("my names/eleven.mp4", "my names/eleven.mp4:\n3 shots"),
        ("all my videos/twenty five.mp4", "all my videos/twenty five.mp4:\n3 shots"),
    ],
)
def test_a_line_is_not_broken_inside_a_name(name: str, shown: str) -> None:
    assert fit_line([PathText(name, style="bold"), ": 3 shots"], 20).plain == shown
