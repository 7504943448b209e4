"""Videos of composed transitions and negatives, and detection scores by family."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from vidkin.shots import DetectedCut
from vidkin_research.shots.composed import ComposedTransition, build_transitions, score_families, summarize_families
from vidkin_research.shots.extents import LabeledTransition


def test_videos_are_composed_once_for_the_same_settings(tmp_path: Path) -> None:
    takes = [tmp_path / "red.png", tmp_path / "blue.png"]
    for take, color in zip(takes, ((200, 30, 30), (30, 30, 200)), strict=True):
        Image.new("RGB", (320, 180), color).save(take)
    made = build_transitions(takes, tmp_path / "videos", count=1, families=("wipe", "exposure"))
    assert [(video.family, video.label is None, video.held_back) for video in made] == [
        ("wipe", False, False),
        ("exposure", True, False),
    ]
    assert made[0].label is not None
    assert made[0].label.kind == "wipe"
    assert made[1].events >= 1
    written = made[0].path.stat().st_mtime_ns
    assert build_transitions(takes, tmp_path / "videos", count=1, families=("wipe", "exposure")) == made
    assert made[0].path.stat().st_mtime_ns == written
    other = build_transitions(takes, tmp_path / "videos", count=1, families=("wipe",), seed=1)
    assert [video.family for video in other] == ["wipe"]


def test_false_detections_are_counted_by_time_and_by_event() -> None:
    """A dissolve found as a wipe with half its extent, and two false cuts in five minutes with forty flashes."""
    film, take = Path("film.mp4"), Path("take.mp4")
    videos = [
        ComposedTransition(film, "dissolve", LabeledTransition("dissolve", 11, 29), 4.0),
        ComposedTransition(take, "strobe", None, 300.0, events=40),
    ]
    cuts = {film: [DetectedCut(15, "wipe", 0.9, 11, 19)], take: [DetectedCut(5), DetectedCut(50)]}
    scores = score_families(videos, cuts)
    assert scores["families"]["dissolve"]["f1"] == 1.0
    assert scores["families"]["dissolve"]["extent"] == pytest.approx(0.5)
    assert scores["all"]["kinds_right"] == 0.0
    assert scores["negatives"]["false in ten minutes"] == pytest.approx(4.0)
    assert scores["negatives"]["false in 100 events"] == pytest.approx(5.0)
    assert [row[0] for row in summarize_families(scores)] == ["dissolve", "strobe", "all transitions", "all negatives"]
