"""Scores by `vidkin search` and by frame hashes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vidkin.errors import MediaError, MissingPartError
from vidkin.experiments.copies import (
    CopyMaterial,
    GalleryVideo,
    as_page,
    phash_scores,
    relevance_of,
    search_scores,
    summarize_copies,
    summarize_search,
)


def test_search_finds_the_copies_and_the_page_says_so(material: CopyMaterial, tmp_path: Path) -> None:
    found = search_scores(material, tmp_path / "c.vidkin")
    reencoded, cropped, mirrored, *unrelated = found.scores[0]
    assert min(reencoded, cropped, mirrored) > 0.5 > 0.2 > max(unrelated)
    assert found.identical > 0.99
    assert found.recall == 1.0
    assert found.segments[0][0][0].target_end == pytest.approx(8.0, abs=0.6)
    truth = relevance_of(material)
    results = {
        "vidkin classical": summarize_search(found, truth, material),
        "pHash per frame": summarize_copies(phash_scores(material), truth, material),
    }
    page = as_page(results, material, ["A note."], machine="a machine")
    assert "1 queries against 5 videos. a machine" in page
    assert "| vidkin classical | 1.000 | 1.000 | 1.000 | 1.000 |" in page
    assert "| crop | 1.00 / 1.00 | 1.00 / 1.00 |" in page
    assert page.endswith("A note.\n")
    # Only a search gives times.
    assert page.count("\n| vidkin classical |") == 2
    assert page.count("\n| pHash per frame |") == 1


def test_hashes_of_one_picture_are_alike(material: CopyMaterial) -> None:
    scores = phash_scores(material)
    assert scores.shape == (1, 5)
    assert scores[0, 0] > 0.9 > 0.6 > scores[0, 3:].max()


def test_a_missing_package_is_named(material: CopyMaterial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imagehash", None)
    with pytest.raises(MissingPartError, match=r"imagehash; run pip install 'vidkin\[bench\]'"):
        phash_scores(material)


def test_a_broken_video_ends_the_measurement(material: CopyMaterial, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    broken = CopyMaterial(material.queries, (GalleryVideo(tmp_path / "empty.mp4", "e", "e", "distractor"),))
    with pytest.raises(MediaError, match=r"empty\.mp4"):
        search_scores(broken, tmp_path / "c.vidkin")
