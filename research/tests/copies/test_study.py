"""The copy study from a folder to a report, a Markdown page and a page with images."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from research.tests.copies.conftest import SMALL

from vidkin._base.values import as_json
from vidkin_research.copies.page import as_image_page
from vidkin_research.copies.recordings import find_recordings
from vidkin_research.copies.study import CopyResults, CopyStudy, ExtractorChoice, run_copy_study

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def results(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CopyResults:
    study = CopyStudy(
        size=SMALL,
        edits=("grey", "crop", "inset_30"),
        extractors=(ExtractorChoice("classical"),),
        peers=True,
    )
    steps: list[str] = []
    recordings = find_recordings(folder, left_out=["unused"])
    results = run_copy_study(
        study,
        recordings,
        tmp_path_factory.mktemp("work"),
        on_progress=lambda done, total, what: steps.append(what.split()[0]),
    )
    assert steps[:3] == ["edit"] * 3
    assert set(steps[3:]) == {"vidkin"}
    return results


def test_report_has_results_of_every_system(results: CopyResults) -> None:
    report = results.report
    assert (report.queries, report.videos) == (1, 5)
    assert [figures.system for figures in report.figures][:2] == ["vidkin classical", "pHash per frame"]
    ours = report.figures[0]
    assert [group.name for group in ours.edits] == ["crop", "grey", "inset_30"]
    assert [group.name for group in ours.families] == ["pixels", "geometry", "inset"]
    gray = ours.edits[1]
    assert gray.reported == gray.copies == 1
    assert gray.strict.map == gray.recall == 1.0
    assert gray.times is not None
    assert gray.times.end_median < 0.5
    assert as_json(report)["figures"][0]["edits"][1]["name"] == "grey"


def test_image_page_is_self_contained_and_shows_hits_and_misses(results: CopyResults) -> None:
    page = as_image_page(results)
    assert "src='http" not in page
    assert page.count("<figure class=") == 3
    matches = re.search(r"<figure class='found'>.*?<b>grey</b>grayscale", page)
    assert matches
    assert "1 of 1 found" in matches.group()
    pictures = [Image.open(io.BytesIO(base64.b64decode(data))) for data in re.findall(r"base64,([^']+)'", page)]
    assert len(pictures) == 6
    assert pictures[0].size == (96, 64)
    # The last image is the copy, with the true box of the inset below the found one.
    red, green, blue = np.moveaxis(np.asarray(pictures[-1]).astype(int), -1, 0)
    true, found = (green > red + 60) & (green > blue + 40), (red > green + 60) & (red > blue + 100)
    assert true.sum() > 10
    assert (true | found).sum() > 40


def test_higher_threshold_finds_fewer_copies(results: CopyResults) -> None:
    from vidkin_research.copies.figures import summarize_copies

    strict = summarize_copies("mine", results.scores["vidkin classical"], results.material, threshold=1.0)
    assert strict.everything.reported <= results.report.figures[0].everything.reported
    assert strict.everything.threshold == 1.0
