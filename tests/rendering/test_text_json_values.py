"""Results as JSON."""

from __future__ import annotations

import json
import os

from vidkin.index import Match
from vidkin.rendering.text import matches_as_json, print_json
from vidkin.similarity import Segment


def test_matches_have_ranks() -> None:
    first = Match("a.mp4", 0.9, (Segment(0, 1, 2, 3, 0.5, mirrored=True),))
    one, two = matches_as_json([first, Match("b.mp4", 0.1, ())])
    assert (one["rank"], one["path"], one["score"], one["mirrored"]) == (1, "a.mp4", 0.9, True)
    assert [segment["target_end"] for segment in one["segments"]] == [3]
    assert one["missing"] is False
    assert matches_as_json([first], first_rank=11)[0]["rank"] == 11
    assert (two["rank"], two["mirrored"], two["segments"]) == (2, False, [])


def test_file_names_survive_a_pipe(capsys) -> None:
    undecodable = os.fsdecode(b"caf\xe9.mp4")
    print_json({"path": undecodable, "other": "山.mp4", "infinite": float("inf")})
    written = capsys.readouterr().out
    assert written.isascii()
    assert json.loads(written) == {"path": undecodable, "other": "山.mp4", "infinite": None}
