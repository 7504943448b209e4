"""Coverage as text, as a table and as an edit decision list."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import Coverage, SharedStretch
from vidkin.rendering import find_format, write_format
from vidkin.rendering.coverage import COVERAGE_FORMATS, coverage_cells, describe_coverage, strip_of


def make_stretch(start: float, end: float, path: str, there: float, speed: float = 1.0) -> SharedStretch:
    return SharedStretch(start, end, path, there, there + speed * (end - start), 0.9, speed)


FILM = (make_stretch(0, 40, "/v/a.mp4", 5), make_stretch(62, 100, "/v/b.mp4", 0, 1.2))


def test_coverage_sentence_names_the_fewest_files_and_the_missing_parts() -> None:
    film = Coverage("/v/film.mp4", 100.0, FILM)
    assert describe_coverage(film) == [
        "These 2 files together have 78.0 % of this video, missing 0:40.0 - 1:02.0: a.mp4, b.mp4"
    ]
    whole = Coverage("/v/film.mp4", 40.0, FILM[:1])
    assert describe_coverage(whole) == ["This file alone has 100.0 % of this video: a.mp4"]
    assert describe_coverage(Coverage("/v/film.mp4", 40.0)) == ["No part of this video was found in other files."]


def test_strip_covers_the_video_exactly_once() -> None:
    assert strip_of(Coverage("/v/film.mp4", 100.0, FILM)) == [(0.0, 0.4, True), (0.4, 0.62, False), (0.62, 1.0, True)]
    assert strip_of(Coverage("/v/empty.mp4", 0.0)) == []


def test_coverage_table_has_a_row_per_segment() -> None:
    quote = SharedStretch(10, 20, "/v/quote.mp4", 0, 10, 0.5)
    headings, *rows = coverage_cells(Coverage("/v/film.mp4", 100.0, (*FILM, quote)))
    values = [dict(zip(headings, row, strict=True)) for row in rows]
    assert [(row["path"], row["start"], row["other_end"], row["source"]) for row in values] == [
        ("/v/a.mp4", "0.000", "45.000", "yes"),
        ("/v/b.mp4", "62.000", "45.600", "yes"),
        ("/v/quote.mp4", "10.000", "10.000", "no"),
    ]


def test_file_extension_selects_the_coverage_format(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.mp4", pan("coffee", 4, width=64, height=48), rate=25)
    found = Coverage(str(film), 100.0, FILM)
    for name in ("c.csv", "c.json", "c.edl"):
        write_format(find_format(COVERAGE_FORMATS, name), found, tmp_path / name)
    assert len(list(csv.reader((tmp_path / "c.csv").read_text().splitlines()))) == 3
    assert json.loads((tmp_path / "c.json").read_text())["only_here"] == [[40, 62]]
    assert (tmp_path / "c.edl").read_text().splitlines() == [
        "TITLE: film",
        "FCM: NON-DROP FRAME",
        "",
        "001  R001     V     C        00:00:05:00 00:00:45:00 00:00:00:00 00:00:40:00",
        "* FROM CLIP NAME: a.mp4",
        "* VIDKIN: score 0.90",
        "002  R002     V     C        00:00:00:00 00:00:45:15 00:01:02:00 00:01:40:00",
        "M2   R002     030.0                00:00:00:00",
        "* FROM CLIP NAME: b.mp4",
        "* VIDKIN: score 0.90",
    ]
    with pytest.raises(InvalidArgumentError, match=r"must be one of \.csv, \.json, \.edl"):
        find_format(COVERAGE_FORMATS, tmp_path / "c.mov")
