"""Copies and their content, and the other videos in the gallery."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from research.tests.copies.conftest import SMALL, write_pan

from vidkin.media import probe
from vidkin_research.copies.material import CopyMaterial, make_copies
from vidkin_research.copies.recordings import find_recordings


def test_each_query_is_edited_and_the_rest_are_distractors(material: CopyMaterial) -> None:
    (query,) = material.queries
    assert (query.name, query.start, query.end) == ("coffee-0", pytest.approx(1.0), pytest.approx(7.0))
    assert [(video.edit, video.edit_family) for video in material.gallery] == [
        ("reencode", "pixels"),
        ("crop", "geometry"),
        ("mirror", "geometry"),
        ("distractor", None),
        ("distractor", None),
    ]
    reencoded, cropped, mirrored, *others = material.gallery
    assert reencoded.source == cropped.source == query
    # Times refer to the query file.
    assert reencoded.segments[0][:4] == pytest.approx((0.0, 6.0, 0.0, 6.0), abs=0.11)
    assert reencoded.segments[0].source_box == (0, 0, 1, 1)
    left, top, right, bottom = cropped.segments[0].source_box
    assert (right - left) * (bottom - top) == pytest.approx(0.7, abs=0.03)
    assert [video.mirrored for video in material.gallery] == [False, False, True, False, False]
    assert [video.path.stem for video in others] == ["chelsea", "gravel"]
    assert mirrored.family == str(query.recording.path)


def test_copies_are_made_once_and_reused_with_other_settings(folder: Path, tmp_path: Path) -> None:
    recordings = find_recordings(folder, left_out=["unused"])
    steps: list[tuple[int, int, str]] = []
    first = make_copies(
        recordings,
        tmp_path,
        SMALL,
        edits=["grey", "inset_30"],
        on_progress=lambda done, total, name: steps.append((done, total, name.split(".")[2])),
    )
    assert steps == [(1, 2, "grey"), (2, 2, "inset_30")]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.name[0] != "."}
    assert make_copies(recordings, tmp_path, SMALL, edits=["grey", "inset_30"], threads=2) == first
    # Inserting an edit or adding sources changes nothing either.
    more = make_copies(find_recordings(folder), tmp_path, SMALL, edits=["mirror", "grey"])
    assert first.gallery[0] in more.gallery
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_real_copies_and_distractors_are_in_the_gallery(tmp_path: Path) -> None:
    videos, others = tmp_path / "videos", tmp_path / "others"
    write_pan(videos / "rock1.mp4", "rocket", 40)
    write_pan(videos / "rock2.mp4", "rocket", 50)
    write_pan(others / "x.mp4", "coffee", 45)
    material = make_copies(
        [replace(recording, family="rock") for recording in find_recordings(videos)],
        tmp_path / "work",
        SMALL,
        edits=["grey"],
        distractors=find_recordings(others),
    )
    assert [query.name for query in material.queries] == ["rock2-0"]  # the longest of its family
    assert [video.edit for video in material.gallery] == ["grey", "real copy", "distractor"]


def test_photograph_is_the_filler_if_there_are_no_short_videos(tmp_path: Path) -> None:
    write_pan(tmp_path / "videos" / "a.mp4", "rocket", 70)
    work = tmp_path / "work"
    material = make_copies(find_recordings(tmp_path / "videos"), work, SMALL, edits=["inset_45"])
    (filler,) = work.glob("filler-*.mp4")
    assert probe(filler).duration == pytest.approx(20.0, abs=0.1)
    assert filler.stem in material.gallery[0].path.name
