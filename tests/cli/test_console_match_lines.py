"""Matches as lines that people and programs read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidkin.cli.console import print_plain, print_tsv, print_tsv_header
from vidkin.index import Match
from vidkin.similarity import Segment

SEGMENTS = (Segment(0.0, 5.25, 10.0, 20.5, 0.9, 2.0), Segment(6.0, 7.0, 30.0, 31.0, 0.8, mirrored=True))
MATCHES = [Match("/a.mp4", 0.91239, SEGMENTS), Match(os.fsdecode(b"/b\t\xe9.mp4"), 0.5, (), missing=True)]


def test_tsv_has_a_line_for_each_segment(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_tsv_header()
    print_tsv(Path("q.mp4"), MATCHES, first_rank=3)
    lines = capfdbinary.readouterr().out.split(b"\n")
    assert lines[0].split(b"\t")[:5] == [b"query", b"rank", b"score", b"path", b"missing"]
    assert [line.count(b"\t") for line in lines[:-1]] == [13] * 4
    assert lines[1] == b"q.mp4\t3\t0.9124\t/a.mp4\tno\t0.000\t5.250\t10.000\t20.500\t2.000\tno\t0\t\t"
    assert lines[2] == b"q.mp4\t3\t0.9124\t/a.mp4\tno\t6.000\t7.000\t30.000\t31.000\t1.000\tyes\t0\t\t"
    # A name that is not text keeps its bytes, but a tab in it does not make a column.
    assert lines[3].startswith(b"q.mp4\t4\t0.5000\t/b")
    assert b"\xe9.mp4\tyes\t\t" in lines[3]


def test_tsv_says_what_picture_and_sound_say_and_where_only_the_sound_matches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard = Match("/a.mp4", 0.97, (), picture=0.0, sound=0.97, sound_segments=(Segment(1.0, 4.0, 2.0, 5.0, 0.97),))
    print_tsv(Path("q.mp4"), [heard, Match("/b.mp4", 0.1, (), picture=0.1)], first_rank=1)
    first, second = capsys.readouterr().out.splitlines()
    assert first.split("\t")[5:] == ["1.000", "4.000", "2.000", "5.000", "1.000", "no", "0", "0.0000", "0.9700"]
    assert second.split("\t")[5:] == ["", "", "", "", "", "", "", "0.1000", ""]


def test_plain_lines_have_score_time_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_plain([MATCHES[0], Match("/c.mp4", 0.25, ())])
    first, second = capsys.readouterr().out.splitlines()
    assert first == "0.91  0:10.0 - 0:20.5      /a.mp4"
    assert second == "0.25                       /c.mp4"
