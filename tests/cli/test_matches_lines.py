"""Matches as plain lines."""

from __future__ import annotations

import pytest

from vidkin.cli.matches import print_plain
from vidkin.index import Match
from vidkin.similarity import Segment


def test_plain_lines_have_score_time_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    segments = (Segment(0.0, 5.25, 10.0, 20.5, 0.9, 2.0), Segment(6.0, 7.0, 30.0, 31.0, 0.8, mirrored=True))
    print_plain([Match("/a.mp4", 0.91239, segments), Match("/c.mp4", 0.25, ())])
    first, second = capsys.readouterr().out.splitlines()
    assert first == "0.91  0:10.0 - 0:20.5      /a.mp4"
    assert second == "0.25                       /c.mp4"
