"""Queries and copies with what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.experiments.copies import CopyMaterial, Families, make_copies
from vidkin.experiments.copies import material as material_module


def test_names_tell_families_and_scenes() -> None:
    families = Families(alone=False)
    assert families.family(Path("videos/tmk/chair-19-sd-bar.mp4")) == "chair"
    assert families.family(Path("videos/mdn/flower2.mp4")) == "flower"
    assert families.scene(Path("videos/mdn/flower2.mp4")) == "mdn.mp4"
    assert families.scene(Path("videos/intel/car.mp4")) == "car"
    assert Families(alone=True).family(Path("a/b1.mp4")) == "a/b1.mp4"


def test_each_source_is_edited_and_the_rest_are_distractors(material: CopyMaterial) -> None:
    (query,) = material.queries
    assert (query.recording, query.start) == ("coffee", 0.0)
    assert query.end == pytest.approx(8.0)
    assert [(video.path.stem, video.edit) for video in material.gallery] == [
        ("coffee-0.reencode", "reencode"),
        ("coffee-0.crop", "crop"),
        ("coffee-0.mirror", "mirror"),
        ("chelsea", "distractor"),
        ("gravel", "distractor"),
    ]
    copy = material.gallery[0]
    assert copy.source is query
    assert copy.segment == pytest.approx((0.0, 8.0, 0.0, 8.0), abs=0.11)


def test_nothing_is_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    videos, work = tmp_path / "videos", tmp_path / "work"
    videos.mkdir()
    encode(videos / "rock1.mp4", pan("rocket", 70, width=96, height=64))
    encode(videos / "rock2.mp4", pan("rocket", 80, width=96, height=64))
    encode(videos / "x.mp4", pan("coffee", 65, width=96, height=64))
    encode(videos / "short.mp4", pan("gravel", 10, width=96, height=64))
    monkeypatch.setattr(material_module, "EDITS", ("reencode",))
    first = make_copies(videos, work, Families(alone=False), distractors=[videos], sources=1)
    assert [query.recording for query in first.queries] == ["rock2"]  # the longest of its family
    assert [video.edit for video in first.gallery] == [
        "reencode",
        "real copy",
        "distractor",
        "distractor",
        *["distractor"] * 4,
    ]
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*.*")}
    assert make_copies(videos, work, Families(alone=False), distractors=[videos], sources=1) == first
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*.*")} == before
