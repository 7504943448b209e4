"""Split of the collection into halves, families and scenes by file name."""

from __future__ import annotations

from pathlib import Path

import pytest
from research.tests.copies.conftest import write_pan

from vidkin.errors import InvalidArgumentError
from vidkin_research.copies.halves import HALVES, find_divided_recordings


def test_halves_are_disjoint(tmp_path: Path) -> None:
    names = [
        "tmk/chair-1.mp4",
        "tmk/pattern-1.mp4",
        "intel/again.mkv",
        "intel/yes.mkv",
        "mdn/frog.mp4",
        "mdn/pig.mp4",
    ]
    for name in [*names, "other/new.mp4"]:
        write_pan(tmp_path / name, "coffee", 4)
    parts = {half: [found.path.name for found in find_divided_recordings(tmp_path, half)] for half in HALVES}
    assert parts == {
        "development": ["again.mkv", "frog.mp4", "chair-1.mp4"],
        "held-back": ["yes.mkv", "pig.mp4", "pattern-1.mp4"],
    }
    assert len(find_divided_recordings(tmp_path)) == 7
    assert not set(HALVES["development"]) & set(HALVES["held-back"])
    assert sum(pattern.endswith(".mkv") for pattern in HALVES["development"]) == 9
    assert sum(pattern.endswith(".mkv") for pattern in HALVES["held-back"]) == 11


def test_families_and_scenes_follow_from_names(tmp_path: Path) -> None:
    for name in ("tmk/chair-19-sd-bar.mp4", "mdn/rabbit320.mp4", "intel/car.mp4"):
        write_pan(tmp_path / name, "coffee", 4)
    named = find_divided_recordings(tmp_path)
    assert [(found.family, found.scene) for found in named] == [
        ("car", "car"),
        ("rabbit", "mdn.mp4"),
        ("chair", "chair"),
    ]
    assert [found.family for found in find_divided_recordings(tmp_path, left_out=["car"])] == [
        "rabbit",
        "chair",
    ]


def test_half_without_videos_is_reported(tmp_path: Path) -> None:
    write_pan(tmp_path / "mine.mp4", "coffee", 4)
    with pytest.raises(InvalidArgumentError, match="no video of the held-back half; use --half all for your own"):
        find_divided_recordings(tmp_path, "held-back")
