"""``vidkin benchmark shots`` and ``critical``: options, tables and plots."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import run
from tests.support.videos import encode, pan
from vidkin_research import critical as critical_experiment
from vidkin_research import shots as shots_experiment
from vidkin_research.commands.shots import _published
from vidkin_research.critical import CriticalStudy
from vidkin_research.runs import Report
from vidkin_research.shots import ShotStudy
from vidkin_research.shots.labels import SHOT_COLLECTIONS

ONE = {"mean": 0.912, "deviation": None, "values": [0.912]}
THREE = {"mean": 0.5, "deviation": 0.0134, "values": [0.5, 0.5, 0.5]}


class Recorder:
    """Replacement for an experiment: records its options and returns a report of one line."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.report = Report(what="w", machine="m", settings={}, minutes=1.0, summary=[line], runs=[{"seed": 0}])
        self.study: Any = None
        self.arguments: dict[str, Any] = {}

    def __call__(self, study: Any, data: Path, **arguments: Any) -> Report:
        self.study, self.arguments = study, {"data": data, **arguments}
        arguments["on_progress"](1, 2, "quadlet, seed 0")
        return self.report


@pytest.fixture
def shots(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    names = ("f1_nearest_0", "f1_nearest_1", "f1_nearest_2", "f1_overlap_2", "hard_precision")
    line = {"set": "edited", "detector": "svd", **dict.fromkeys(names, ONE), "hard_recall": THREE}
    line |= {"extent": {"mean": 0.7, "deviation": None, "values": [0.7]}, "kinds_right": None}
    recorder = Recorder({**line, "gradual_found": {"mean": 7.0}, "gradual": 23})
    monkeypatch.setattr(shots_experiment, "run_shot_study", recorder)
    return recorder


@pytest.fixture
def critical(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    names = (
        "precision",
        "recall",
        "f1",
        "average_precision",
        "spotting",
        "found_f1",
        "found_cuts_f1",
        "default_f1",
        "default_cuts_f1",
    )
    recorder = Recorder({"split": "all places", "loss": "quadlet", **dict.fromkeys(names, THREE)})
    monkeypatch.setattr(critical_experiment, "run_critical_study", recorder)
    return recorder


def test_shots_prints_a_table_for_each_set(shots: Recorder, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("data", "videos", "photographs")}
    for folder in folders.values():
        folder.mkdir()
    words = [word for name, folder in folders.items() for word in (f"--{name}", folder)]
    printed = run("benchmark", "shots", *words, "--work", tmp_path / "work", "--seeds", "2").out
    assert "edited" in printed
    assert [cell.strip() for cell in printed.splitlines()[-2].strip("│┃ ").split("│")] == [
        "svd",
        *["91.2"] * 5,
        "50.0 ± 1.3",
        "70.0",
        "7.0 of 23",
    ]
    assert shots.study == ShotStudy(seeds=2)
    assert shots.arguments["videos"] == folders["videos"]
    assert shots.arguments["photographs"] == folders["photographs"]


def _cells(printed: str, title: str) -> list[list[str]]:
    """Cells of the table with this title."""
    lines = iter(printed.splitlines())
    assert any(line.strip() == title for line in lines), printed
    rows = []
    for line in lines:
        if line.startswith("└"):
            break
        if line.startswith("│"):
            rows.append([cell.strip() for cell in line.strip("│").split("│")])
    return rows


def test_detections_of_a_collection_are_scored_by_extent_and_kind(tmp_path: Path) -> None:
    """Two images of 30 frames, a dissolve of 15 frames, a third image of 30; the cut is labeled as a jump."""
    coffee, rocket, chelsea = (list(pan(name, 45)) for name in ("coffee", "rocket", "chelsea"))
    shares = [(place + 1) / 16 for place in range(15)]
    between = [
        np.uint8(one * (1 - share) + other * share)
        for one, other, share in zip(rocket[30:], chelsea[:15], shares, strict=True)
    ]
    encode(tmp_path / "a.mp4", [*coffee[:30], *rocket[:30], *between, *chelsea[15:]], rate=25)
    entry = {
        "video_path": "videos/a.mp4",
        "ranges": [[0, 30], [30, 60], [60, 75], [75, 105]],
        "intra_labels": ["General", "General", "dissolve", "General"],
        "inter_labels": ["New_Start", "Sudden_Jump", "Transition", "Transition"],
    }
    (tmp_path / "labels.json").write_text(json.dumps([entry]))
    words = ("--data", tmp_path, "--labels", f"omnishotcut={tmp_path / 'labels.json'}", "--work", tmp_path / "work")
    outcome = run("benchmark", "shots", *words, "-o", tmp_path / "figures.json")
    rows = json.loads((tmp_path / "figures.json").read_text())["runs"]
    default = next(row["transitions"] for row in rows if row["detector"] == "default")
    assert default["right, false, missed"] == [2, 0, 0]
    assert default["confusion"] == {"dissolve as dissolve": 1, "jump as hard": 1}
    assert default["extent"] > 0.8
    kinds = _cells(outcome.out, "omnishotcut: default, by kind")
    assert kinds == [["hard", "0", "0.000"], ["jump", "1", "0.000"], ["dissolve", "1", "1.000"]]
    assert _cells(outcome.out, "omnishotcut: default, found as") == [["jump", "1", "0"], ["dissolve", "0", "1"]]
    assert "No column follows the evaluation rule of OmniShotCut." in outcome.err
    (line,) = [row for row in _cells(outcome.out, "omnishotcut") if row[0] == "default"]
    assert line[-3:-1] == [f"{100 * default['extent']:.1f}", "50.0"]


def test_column_of_published_results_is_named() -> None:
    bbc = SHOT_COLLECTIONS["bbc"]
    assert _published(bbc) == (
        "F1 overlap corresponds to the published result of BBC Planet Earth: within 2 frames. "
        "Its labels only distinguish cuts from gradual transitions."
    )
    nearest = _published(replace(bbc, rule="nearest", tolerance=0))
    assert nearest.startswith("F1, 0 corresponds to the published result of BBC")


def test_quick_run_is_short(shots: Recorder, critical: Recorder, tmp_path: Path) -> None:
    run("benchmark", "shots", "--data", tmp_path, "--quick")
    assert shots.study == ShotStudy(seeds=1, steps=80, segment_steps=50)
    run("benchmark", "critical", "--data", tmp_path, "--quick")
    assert critical.study == CriticalStudy(seeds=1, steps=100, held_out=False)
    run("benchmark", "critical", "--data", tmp_path, "--no-held-out")
    assert critical.study == CriticalStudy(held_out=False)


def test_results_are_written_to_the_output_and_printed_as_json(critical: Recorder, tmp_path: Path) -> None:
    output = tmp_path / "new" / "figures.json"
    told = run("benchmark", "critical", "--data", tmp_path, "-o", output, "--save", tmp_path / "m", "-f", "json")
    assert told.json == json.loads(output.read_text())
    assert told.json["summary"][0]["loss"] == "quadlet"
    assert critical.arguments["save"] == tmp_path / "m"
    printed = run("benchmark", "critical", "--data", tmp_path)
    assert "50.0 ± 1.3" in printed.out
    assert "all places" in printed.out
    assert "Percent." in printed.err


@pytest.mark.parametrize("command", ["shots", "critical"])
def test_unwritable_output_is_reported_before_measuring(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "file" / "x.json", "choose an output folder that can be written"),
    ):
        outcome = run("benchmark", command, "--data", tmp_path, "-o", output, status=2)
        assert message in outcome.err
