"""``vidkin benchmark copies``: options and output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import run
from vidkin.similarity import Segment
from vidkin_research.copies.edits import EDITS, EditedSegment
from vidkin_research.copies.figures import summarize_copies
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.recordings import FULL, QUICK, QueryClip, Recording
from vidkin_research.copies.scores import PairScores
from vidkin_research.copies.study import CopyReport, CopyResults, CopyStudy, ExtractorChoice

RECORDING = Recording(Path("a.mp4"), "a", "a", 9.0)
QUERY = QueryClip("a-0", Path("a-0.mp4"), RECORDING, 0.0, 9.0)
WHOLE = (EditedSegment(0.0, 9.0, 0.0, 9.0),)
MATERIAL = CopyMaterial(
    (QUERY,),
    (
        GalleryVideo(Path("a-0.crop.mp4"), "a", "a", "crop", QUERY, WHOLE),
        GalleryVideo(Path("a-0.inset_30.mp4"), "a", "a", "inset_30", QUERY, WHOLE),
        GalleryVideo(Path("b.mp4"), "b", "b", "distractor"),
    ),
)
SCORES = PairScores(np.array([[0.91, 0.1, 0.3]]), [[(Segment(0, 9, 0.25, 9, 0.9),), (), ()]])


class Recorder:
    """Replacement for the experiment: records its options and reports one of two copies as found."""

    study: Any = None
    work: Any = None

    def __call__(self, study: CopyStudy, recordings: Any, work: Path, **arguments: Any) -> CopyResults:
        self.study, self.work = study, work
        arguments["on_progress"](1, 2, "edit a-0.crop.mp4")
        figures = (summarize_copies("vidkin", SCORES, MATERIAL, threshold=study.threshold),)
        report = CopyReport(machine="m", study=study, queries=1, videos=3, minutes=1.0, figures=figures)
        return CopyResults(report=report, material=MATERIAL, scores={"vidkin": SCORES})


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr("vidkin_research.copies.study.run_copy_study", recorder)
    monkeypatch.setattr("vidkin_research.copies.recordings.find_recordings", lambda folder: [RECORDING])
    monkeypatch.setattr("vidkin_research.copies.page.as_image_page", lambda results: "<html>pictures</html>")
    return recorder


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│┃ ").split("│")]


def test_every_edit_and_family_has_a_row(experiment: Recorder, tmp_path: Path) -> None:
    told = run("benchmark", "copies", tmp_path, "--work", tmp_path / "work")
    lines = {row[0]: row[1:] for row in map(cells, told.out.splitlines()) if len(row) > 1}
    assert lines["crop"] == ["geometry", "1 of 1", "0.91", "0.91", "1.000", "1.000", "0.25 s", "1.00"]
    assert lines["inset_30"][:5] == ["inset", "0 of 1", "0.10", "0.10", "0.500"]
    assert lines["everything"][1] == "1 of 2"
    assert "1 of 1 pairs have a score of 0.2 or more; the highest is 0.30 (a-0 and b.mp4)" in " ".join(told.err.split())
    assert experiment.study.size == FULL
    assert experiment.study.edits == tuple(EDITS)
    assert experiment.study.extractors == (ExtractorChoice(),)
    assert experiment.work == tmp_path / "work"


def test_options_reach_the_experiment(experiment: Recorder, tmp_path: Path) -> None:
    told = run(
        *("benchmark", "copies", tmp_path, "--quick", "-f", "json", "--threshold", "0.5"),
        *("-e", "classical", "-e", "timm:x", "--weights", tmp_path / "w", "--edit", "crop", "--peers"),
    ).json
    assert experiment.study == CopyStudy(
        size=QUICK,
        edits=("crop",),
        extractors=(ExtractorChoice("classical"), ExtractorChoice("timm:x", tmp_path / "w")),
        peers=True,
        threshold=0.5,
        threads=experiment.study.threads,
    )
    (figures,) = told["figures"]
    assert [(row["name"], row["reported"], row["threshold"]) for row in figures["edits"]] == [
        ("crop", 1, 0.5),
        ("inset_30", 0, 0.5),
    ]


def test_page_is_written(experiment: Recorder, tmp_path: Path) -> None:
    output = tmp_path / "new" / "copies.html"
    told = run("benchmark", "copies", tmp_path, "-o", output)
    assert output.read_text() == "<html>pictures</html>"
    assert "copies.html: an example of each edit, with images" in " ".join(told.err.split())
    failed = run("benchmark", "copies", tmp_path, "-o", tmp_path, status=2)
    assert "is a folder" in failed.err


def test_unknown_edit_is_reported_before_work_starts(experiment: Recorder, tmp_path: Path) -> None:
    failed = run("benchmark", "copies", tmp_path, "--edit", "sparkle", status=2)
    assert "unknown edit 'sparkle'; choose from reencode, resize, crop" in " ".join(failed.err.split())
    assert experiment.study is None


def test_missing_device_is_reported_before_work_starts(experiment: Recorder, tmp_path: Path) -> None:
    told = run("benchmark", "copies", tmp_path, "--device", "gpu", status=2).err
    assert "device must be auto, cpu, cuda or cuda:N, got 'gpu'" in told
    assert experiment.study is None
