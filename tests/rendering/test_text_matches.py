"""Matches as table cells."""

from __future__ import annotations

from pathlib import Path

from vidkin.index import Match
from vidkin.rendering.text import MATCH_HEADINGS, match_cells
from vidkin.similarity import Segment

SEGMENTS = (Segment(0.0, 5.25, 10.0, 20.5, 0.9, 2.0), Segment(6.0, 7.0, 30.0, 31.0, 0.8, mirrored=True, backwards=True))


def test_each_segment_has_a_row() -> None:
    matches = [Match("/a.mp4", 0.91239, SEGMENTS), Match("/b.mp4", 0.5, (), missing=True)]
    first, second, third = match_cells(Path("q.mp4"), matches, first_rank=3)
    assert MATCH_HEADINGS[:5] == ("query", "rank", "score", "path", "missing")
    assert {len(MATCH_HEADINGS), len(first), len(second), len(third)} == {15}
    assert first[:5] == second[:5] == ["q.mp4", "3", "0.9124", "/a.mp4", "no"]
    assert first[5:] == ["0.000", "5.250", "10.000", "20.500", "2.000", "no", "0", "no", "", ""]
    assert second[5:] == ["6.000", "7.000", "30.000", "31.000", "1.000", "yes", "0", "yes", "", ""]
    assert third == ["q.mp4", "4", "0.5000", "/b.mp4", "yes", *[""] * 10]


def test_rows_have_frame_and_sound_scores_and_the_times_of_sound_only_matches() -> None:
    heard = Match("/a.mp4", 0.97, (), picture=0.0, sound=0.97, sound_segments=(Segment(1.0, 4.0, 2.0, 5.0, 0.97),))
    first, second = match_cells(Path("q.mp4"), [heard, Match("/b.mp4", 0.1, (), picture=0.1)])
    assert first[5:] == ["1.000", "4.000", "2.000", "5.000", "1.000", "no", "0", "no", "0.0000", "0.9700"]
    assert second[5:] == [*[""] * 8, "0.1000", ""]
