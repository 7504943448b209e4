"""Times, names, tables and messages as people see them."""

from __future__ import annotations

import os
import re

import pytest
from rich.text import Text

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.rendering import clock, file_size, number, printable


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0:00.0"),
        (7.04, "0:07.0"),
        (7.05, "0:07.1"),
        (59.94, "0:59.9"),
        (59.96, "1:00.0"),
        (75.25, "1:15.3"),
        (3599.97, "1:00:00.0"),
        (3723.4, "1:02:03.4"),
        (-0.01, "0:00.0"),
    ],
)
def test_times_are_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_440_000, "1.4 MB"), (3 * 10**15, "3000.0 TB")],
)
def test_sizes_are_short(size: int, shown: str) -> None:
    assert file_size(size) == shown


def test_numbers_bend_their_words() -> None:
    assert number(1, "video") == "1 video"
    assert number(1200, "video") == "1,200 videos"
    assert number(2, "copy", "copies") == "2 copies"


def test_a_name_cannot_command_the_terminal() -> None:
    assert printable("a\x1b[31mb\nc.mp4") == "a�[31mb�c.mp4"
    undecodable = os.fsdecode(b"caf\xe9.mp4")
    assert printable(undecodable) == "caf�.mp4"
    assert printable("día 山.mp4") == "día 山.mp4"


def test_paths_below_the_current_folder_are_relative(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert path_text(tmp_path / "in" / "a.mp4").plain == os.path.join("in", "a.mp4")
    assert path_text(tmp_path.parent / "b.mp4").plain == str(tmp_path.parent / "b.mp4")
    assert path_text("c.mp4").plain == "c.mp4"


def test_brackets_in_names_are_printed_literally_and_long_names_stay_whole(capsys) -> None:
    long_name = "[bold]" + "x" * 300 + ".mp4"
    table("t", [("file", "left"), ("n", "right")], [[path_text(long_name), "1"], [Text("y"), "[red]2"]])
    say("[green]plain")
    shown = capsys.readouterr().out
    assert long_name in shown
    assert "[red]2" in shown
    assert "[green]plain\n" in shown
    assert "\x1b" not in shown  # captured output is no terminal


def test_empty_columns_are_left_out(capsys) -> None:
    table(None, [("file", "left"), ("speed", "right"), ("", "left")], [["a.mp4", "", ""], ["b.mp4", "", ""]])
    assert "speed" not in capsys.readouterr().out
    table(None, [("file", "left"), ("speed", "right")], [["a.mp4", ""], ["b.mp4", "1.25x"]])
    assert "speed" in capsys.readouterr().out


def test_an_error_is_one_line_on_standard_error(capsys) -> None:
    error_line("first\n  second")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Error: first second\n"


def test_progress_is_silent_without_a_terminal(capsys) -> None:
    with meter("indexing") as bar:
        bar.update(1, 3, detail="a.mp4")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_progress_shows_steps_and_rate_on_a_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with meter("indexing") as bar:
        bar.update(1, 3, detail="52x realtime [a].mp4")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1/3" in captured.err
    assert "52x realtime [a].mp4" in captured.err


def test_what_is_printed_meanwhile_takes_the_line_of_progress_away(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with meter("indexing") as bar:
        bar.update(1, 3)
        say("a shot")
        note("Warning: damaged", style="yellow")
    say("afterwards")
    captured = capsys.readouterr()
    erased = r"\r\x1b\[2K(\x1b\[[0-9;]*m)*"
    assert re.search(erased + "a shot", captured.err)
    assert re.search(erased + "Warning: damaged", captured.err)
    assert captured.out == "afterwards\n"


def test_results_for_a_file_stay_on_standard_output_under_a_line_of_progress(capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with meter("indexing") as bar:
        bar.update(1, 3)
        say("a shot")
    captured = capsys.readouterr()
    assert captured.out == "a shot\n"
    assert "1/3" in captured.err
