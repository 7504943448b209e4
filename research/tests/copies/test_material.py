"""Selection of videos as queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from research.tests.copies.conftest import write_pan

from vidkin.errors import InvalidArgumentError
from vidkin.media import probe
from vidkin_research.copies.recordings import QUICK, ClipSize, Recording, choose_queries, find_recordings, write_query

SIZE = ClipSize(seconds=10.0, clips=3, short_side=64, rate=10.0)


def recording(name: str, duration: float, family: str | None = None) -> Recording:
    path = Path(__file__).parent / "conftest.py"  # any existing file; only its size is read
    return Recording(path.with_name("conftest.py"), family or name, name, duration)


def test_each_video_of_a_folder_is_a_separate_family(tmp_path: Path) -> None:
    for name in ("a/one.mp4", "b/one.mp4", "car.mp4"):
        write_pan(tmp_path / name, "coffee", 4)
    recordings = find_recordings(tmp_path, left_out=["car"])
    assert [found.family for found in recordings] == [str(tmp_path / f"{name}/one.mp4") for name in "ab"]


def test_folder_without_videos_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r": no videos$"):
        find_recordings(tmp_path)


def test_clips_are_spread_evenly_over_the_longest_recording_of_a_family(tmp_path: Path) -> None:
    found = [recording("a", 40.0, "x"), recording("b", 25.0, "x"), recording("c", 5.0), recording("d", 3.0)]
    clips = choose_queries(found, SIZE, tmp_path)
    assert [(clip.recording.scene, clip.start, clip.end) for clip in clips] == [
        ("a", 0.0, 10.0),
        ("a", 15.0, 25.0),
        ("a", 30.0, 40.0),
        ("c", 0.0, 5.0),
    ]
    assert len({clip.path for clip in clips}) == 4
    # A single clip is taken from the middle.
    single = choose_queries(found, ClipSize(seconds=10.0, clips=1, short_side=64, rate=10.0), tmp_path)
    assert [(clip.start, clip.end) for clip in single] == [(15.0, 25.0), (0.0, 5.0)]


def test_quick_run_uses_six_recordings(tmp_path: Path) -> None:
    found = [recording(f"{number:02}", 9.0) for number in range(13)]
    assert len(choose_queries(found, QUICK, tmp_path)) == 6


def test_short_videos_are_not_edited(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be at least 3\.8 s long"):
        choose_queries([recording("a", 2.0)], SIZE, tmp_path)


def test_query_is_resized_and_written_once(folder: Path, tmp_path: Path) -> None:
    (found,) = [found for found in find_recordings(folder) if found.path.stem == "coffee"]
    size = ClipSize(seconds=4.0, clips=1, short_side=32, rate=5.0)
    (query,) = choose_queries([found], size, tmp_path)
    write_query(query, size)
    info = probe(query.path)
    assert (info.width, info.height, round(info.frame_rate), round(info.duration)) == (48, 32, 5, 4)
    before = query.path.stat().st_mtime_ns
    write_query(query, size)
    assert query.path.stat().st_mtime_ns == before
