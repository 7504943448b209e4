"""Results as tables: which words and signs stand for which values."""

from __future__ import annotations

import pytest

from vidkin.cli import matches
from vidkin.index import Match
from vidkin.similarity import Segment


@pytest.fixture(params=[200, 75, 50])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(matches, "terminal_width", lambda: request.param)
    return int(request.param)


def test_times_have_tenths_in_narrow_tables_unless_there_are_hours(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = Segment(0.4, 5.2, 60.6, 65.4, 0.9, 1.5, mirrored=True)
    matches.print_segments([segment])
    captured = capsys.readouterr()
    out, notes = captured.out, " ".join(captured.err.split())
    times = {200: "0:00.4 - 0:05.2", 75: "0:00.4-0:05.2", 50: "0:00.4-0:05.2"}[width]
    assert times in out
    hours = {200: "1:00:00.4 - 1:00:03.6", 75: "1:00:00.4-1:00:03.6", 50: "1:00:00-1:00:04"}[width]
    matches.print_segments([Segment(3600.4, 3603.6, 0.0, 3.2, 0.9)])
    assert hours in capsys.readouterr().out
    assert ("↔: mirrored" in notes) == (width != 200)  # the sign is explained
    assert ("↔" in out) == (width != 200)
    assert "Speed 1.50x: the query runs 1.50 times as fast" in notes


def test_matches_are_ranked_and_gone_files_marked(capsys: pytest.CaptureFixture[str]) -> None:
    usual = Segment(0.0, 5.0, 1.0, 6.0, 0.9, 1.02)
    matches.print_matches([Match("/a.mp4", 0.954, (usual,)), Match("/b.mp4", 0.1, (), missing=True)], first_rank=7)
    lines = capsys.readouterr().out.splitlines()
    (first,) = [line for line in lines if "/a.mp4" in line]
    (second,) = [line for line in lines if "/b.mp4" in line]
    assert "7" in first
    assert "0.95" in first
    assert "0.10" in second
    assert "(missing)" in second
    assert not any("x" in line.replace("mp4", "") for line in (first,))  # a usual speed is not shown


def test_the_part_of_the_picture_that_matches_is_named(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    inset = Segment(0.0, 5.0, 0.0, 5.0, 0.9, mirrored=True, target_box=(0.4, 0.4, 0.97, 0.97))
    matches.print_segments([inset])
    assert ("mirrored, lower right 57 % of file" in capsys.readouterr().out) == (width == 200)
    matches.print_segments([Segment(0.0, 5.0, 0.0, 5.0, 0.9, turned=90)])
    captured = capsys.readouterr()
    assert ("turned 90 degrees" in captured.out) == (width == 200)
    assert ("↻90" in captured.out) == ("↻90: turned 90 degrees clockwise" in captured.err) == (width != 200)
    matches.print_segments([Segment(0.0, 5.0, 0.0, 5.0, 0.9, backwards=True)])
    captured = capsys.readouterr()
    assert ("backwards" in captured.out) == (width == 200)
    assert ("◀" in captured.out) == ("◀: backwards" in captured.err) == (width != 200)


def test_signs_of_edits_are_not_under_the_heading_speed(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    matches.print_matches([Match("/a.mp4", 0.9, (Segment(0.0, 5.0, 0.0, 5.0, 0.9, turned=180),))])
    heading = next(line for line in capsys.readouterr().out.splitlines() if "in file" in line)
    assert "edits" in heading
    assert "speed" not in heading
    matches.print_segments([Segment(0.0, 5.0, 0.0, 10.0, 0.9, 0.5)])
    heading = next(line for line in capsys.readouterr().out.splitlines() if "in file" in line)
    assert "speed" in heading
    assert "edits" not in heading
