"""``vidkin benchmark shots`` and ``critical``: what is asked for, and how it is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import run
from vidkin_research import critical as critical_experiment
from vidkin_research import shots as shots_experiment
from vidkin_research.critical import CriticalStudy
from vidkin_research.runs import Report
from vidkin_research.shots import ShotStudy

ONE = {"mean": 0.912, "deviation": None, "values": [0.912]}
THREE = {"mean": 0.5, "deviation": 0.0134, "values": [0.5, 0.5, 0.5]}


class Recorder:
    """Stands in for an experiment: notes what it was asked for and gives a report of one line."""

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
    recorder = Recorder({**line, "gradual_found": {"mean": 7.0}, "gradual": 23})
    monkeypatch.setattr(shots_experiment, "run_shot_study", recorder)
    return recorder


@pytest.fixture
def critical(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    names = ("precision", "recall", "f1", "average_precision", "spotting", "found_f1", "found_cuts_f1")
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
        "7.0 of 23",
    ]
    assert shots.study == ShotStudy(seeds=2)
    assert shots.arguments["videos"] == folders["videos"]
    assert shots.arguments["photographs"] == folders["photographs"]


def test_a_quick_run_is_short(shots: Recorder, critical: Recorder, tmp_path: Path) -> None:
    run("benchmark", "shots", "--data", tmp_path, "--quick")
    assert shots.study == ShotStudy(seeds=1, steps=80, segment_steps=50)
    run("benchmark", "critical", "--data", tmp_path, "--quick")
    assert critical.study == CriticalStudy(seeds=1, steps=100, held_out=False)
    run("benchmark", "critical", "--data", tmp_path, "--no-held-out")
    assert critical.study == CriticalStudy(held_out=False)


def test_figures_are_written_to_the_output_and_printed_as_json(critical: Recorder, tmp_path: Path) -> None:
    output = tmp_path / "new" / "figures.json"
    told = run("benchmark", "critical", "--data", tmp_path, "-o", output, "--save", tmp_path / "m", "--json")
    assert told.json == json.loads(output.read_text())
    assert told.json["summary"][0]["loss"] == "quadlet"
    assert critical.arguments["save"] == tmp_path / "m"
    printed = run("benchmark", "critical", "--data", tmp_path)
    assert "50.0 ± 1.3" in printed.out
    assert "all places" in printed.out
    assert "Percent." in printed.err


@pytest.mark.parametrize("command", ["shots", "critical"])
def test_an_output_that_cannot_be_written_is_reported_before_measuring(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output, message in ((tmp_path, "is a folder"), (tmp_path / "file" / "x.json", "cannot be written")):
        outcome = run("benchmark", command, "--data", tmp_path, "-o", output, status=2)
        assert message in outcome.err
