"""Frame hashes as baselines for copy retrieval."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from research.tests.copies.conftest import SMALL

from vidkin.errors import MissingPartError
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.peers import phash_scores
from vidkin_research.copies.recordings import find_recordings
from vidkin_research.copies.report import as_page
from vidkin_research.copies.study import CopyStudy, ExtractorChoice, run_copy_study


def test_hashes_of_similar_frames_are_similar(material: CopyMaterial) -> None:
    scores = phash_scores(material)
    assert scores.scores.shape == (1, 5)
    assert scores.scores[0, 0] > 0.9 > 0.6 > scores.scores[0, 3:].max()
    assert scores.segments is scores.kept is scores.costs is None


def test_missing_package_is_reported(material: CopyMaterial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imagehash", None)
    with pytest.raises(MissingPartError, match=r"imagehash; run pip install .*research\[hashes\]"):
        phash_scores(material)


@pytest.mark.large
def test_report_has_a_line_for_every_family_and_edit(folder: Path, tmp_path: Path) -> None:
    study = CopyStudy(
        size=SMALL,
        edits=("grey", "crop", "inset_30"),
        extractors=(ExtractorChoice("classical"),),
        peers=True,
    )
    results = run_copy_study(study, find_recordings(folder, left_out=["unused"]), tmp_path)
    assert [figures.system for figures in results.report.figures][:2] == [
        "vidkin classical",
        "pHash per frame",
    ]
    page = as_page(results.report, notes=["A note."])
    assert "1 queries of 6 s against 5 videos, 3 edits." in page
    assert "## vidkin classical" in page
    assert re.search(
        r"\| grey \| pixels \| 1 of 1 \| \d\.\d+ \| 1\.000 \| 1\.000 \| 1\.000 \| 1\.000 \| 1\.000 \|", page
    )
    assert "Unrelated pairs, other scenes: the highest of 2 scores is" in page
    assert page.count("MB per hour of video") == 1  # hashes have no index
    assert page.endswith("A note.\n")
