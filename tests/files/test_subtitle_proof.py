"""The subtitle lines of a removed file are proven to be in the kept file, or reported as missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.streams import write_streams
from vidkin.errors import InvalidArgumentError
from vidkin.files import TimeStretch
from vidkin.files.subtitle_proof import prove_subtitles

LINES = [(0.1, 0.9, "Hello there"), (1.0, 1.8, "Second line")]
WHOLE = [TimeStretch(0.0, 2.0, 0.0)]


def write(path: Path, *tracks: tuple[str, list[tuple[float, float, str]]], codec: str = "subrip") -> Path:
    return write_streams(path, subtitles=tracks, subtitle_codec=codec)


def test_same_lines_are_proven_in_any_format(tmp_path: Path) -> None:
    matroska = write(tmp_path / "a.mkv", ("ger", LINES))
    mp4 = write(tmp_path / "b.mp4", ("deu", LINES), codec="mov_text")
    italic = write(tmp_path / "c.mkv", ("", [(start, end, f"<i>{text}</i>") for start, end, text in LINES]))
    assert prove_subtitles(matroska, mp4, WHOLE) == prove_subtitles(mp4, matroska, WHOLE) == ()
    assert prove_subtitles(italic, matroska, WHOLE) == ()


def test_other_lines_in_the_same_language_are_found(tmp_path: Path) -> None:
    removed = write(tmp_path / "a.mkv", ("ger", LINES))
    kept = write(tmp_path / "b.mkv", ("ger", [LINES[0], (1.0, 1.8, "Another line")]))
    (finding,) = prove_subtitles(kept, removed, WHOLE)
    assert finding.kind == "subtitles"
    assert finding.text == "the subtitles in German have 1 of 2 lines that the kept file lacks"


def test_lines_at_other_times_are_found(tmp_path: Path) -> None:
    removed = write(tmp_path / "a.mkv", ("", LINES))
    late = write(tmp_path / "b.mkv", ("eng", [(start + 5, end + 5, text) for start, end, text in LINES]))
    (finding,) = prove_subtitles(late, removed, WHOLE)
    assert finding.text == "its subtitles have 2 of 2 lines that the kept file lacks"
    assert prove_subtitles(late, removed, [TimeStretch(0.0, 2.0, 5.0)]) == ()


def test_missing_subtitle_languages_are_left_to_the_facts(tmp_path: Path) -> None:
    removed = write(tmp_path / "a.mkv", ("ger", LINES), ("eng", LINES))
    english, bare = write(tmp_path / "b.mkv", ("en", LINES)), write(tmp_path / "c.mkv")
    assert prove_subtitles(english, removed, WHOLE) == prove_subtitles(bare, removed, WHOLE) == ()
    assert prove_subtitles(removed, bare, WHOLE) == ()


def test_time_map_must_not_be_empty(tmp_path: Path) -> None:
    removed = write(tmp_path / "a.mkv", ("ger", LINES))
    with pytest.raises(InvalidArgumentError, match="time_map must have at least one stretch, got none"):
        prove_subtitles(removed, removed, [])
