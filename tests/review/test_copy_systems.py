"""Scores by `vidkin search` and by frame hashes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vidkin.errors import MediaError, MissingPartError
from vidkin.review.copy_gallery import CopyMaterial, GalleryVideo
from vidkin.review.copy_search import phash_scores, search_scores


def test_search_finds_the_copies(material: CopyMaterial, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    scores = search_scores(
        material,
        tmp_path / "c.vidkin",
        extractor="classical",
        on_progress=lambda done, total, name: steps.append((done, total, name)),
    )
    reencoded, cropped, mirrored, *unrelated = scores.scores[0]
    assert min(reencoded, cropped, mirrored) > 0.4 > 0.2 > max(unrelated)
    assert scores.segments is not None
    assert scores.segments[0][0][0].target_end == pytest.approx(6.0, abs=0.6)
    assert scores.kept is not None
    assert scores.kept[0, :3].all()
    assert scores.costs is not None
    assert scores.costs.identical > 0.99
    # An index has a few kilobytes beside its 22 s of video.
    assert 1e6 < scores.costs.bytes_per_hour < 1e9
    assert min(scores.costs.index_seconds, scores.costs.search_seconds) > 0
    assert steps[-1] == (6, 6, material.queries[0].path.name)
    # An index of an earlier run is replaced, so that it holds nothing else.
    fewer = CopyMaterial(material.queries, material.gallery[:1])
    assert search_scores(fewer, tmp_path / "c.vidkin", extractor="classical").scores.shape == (1, 1)


def test_hashes_of_one_picture_are_alike(material: CopyMaterial) -> None:
    scores = phash_scores(material)
    assert scores.scores.shape == (1, 5)
    assert scores.scores[0, 0] > 0.9 > 0.6 > scores.scores[0, 3:].max()
    assert scores.segments is scores.kept is scores.costs is None


def test_a_missing_package_is_named(material: CopyMaterial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imagehash", None)
    with pytest.raises(MissingPartError, match=r"imagehash; run pip install 'vidkin\[bench\]'"):
        phash_scores(material)


def test_a_broken_video_ends_the_measurement(material: CopyMaterial, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    broken = CopyMaterial(material.queries, (GalleryVideo(tmp_path / "empty.mp4", "e", "e", "distractor"),))
    with pytest.raises(MediaError, match=r"empty\.mp4"):
        search_scores(broken, tmp_path / "c.vidkin", extractor="classical")
