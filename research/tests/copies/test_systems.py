"""Scores by `vidkin search`."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.errors import MediaError
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.scores import search_scores


@pytest.mark.large
def test_search_finds_the_copies(material: CopyMaterial, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    scores = search_scores(
        material,
        tmp_path / "c.vidkin",
        extractor="vidkin",
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
    # The index of 22 s of video takes a few kilobytes.
    assert 1e6 < scores.costs.bytes_per_hour < 1e9
    assert min(scores.costs.index_seconds, scores.costs.search_seconds) > 0
    assert steps[-1] == (6, 6, material.queries[0].path.name)
    # An existing index is replaced, so that it contains nothing else.
    fewer = CopyMaterial(material.queries, material.gallery[:1])
    assert search_scores(fewer, tmp_path / "c.vidkin", extractor="vidkin").scores.shape == (1, 1)


def test_broken_video_aborts_the_measurement(material: CopyMaterial, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    broken = CopyMaterial(material.queries, (GalleryVideo(tmp_path / "empty.mp4", "e", "e", "distractor"),))
    with pytest.raises(MediaError, match=r"empty\.mp4"):
        search_scores(broken, tmp_path / "c.vidkin", extractor="vidkin")
