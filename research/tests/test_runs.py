"""Saved results: reused if valid, never mixed, and rejected if they cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vidkin.cli.options import check_output_file
from vidkin.errors import InvalidArgumentError
from vidkin_research.runs import FIGURES, Report, check_same_data, load_or_run, run_path, write_figures


def test_result_is_computed_once(tmp_path: Path) -> None:
    calls = []

    def run() -> Any:
        calls.append(1)
        return {"f1": 0.1, "pair": (1, 2)}

    path = tmp_path / "runs" / "a.json"
    first = load_or_run(path, run)
    assert first == {"f1": 0.1, "pair": [1, 2]} == load_or_run(path, run)
    assert len(calls) == 1
    load_or_run(path, run, is_current=lambda stored: stored["f1"] > 0.5)
    assert len(calls) == 2
    assert [each.name for each in path.parent.iterdir()] == ["a.json"]


def test_name_depends_on_settings() -> None:
    one, other = run_path(Path("r"), ("quadlet", 0)), run_path(Path("r"), ["quadlet", 1])
    assert one != other
    assert one == run_path(Path("r"), ["quadlet", 0])
    # Names of runs saved since version 0.1: changing them would repeat an afternoon of training.
    assert one.name == "99b8ab6407dfa0da3626.json"


def test_results_are_json(tmp_path: Path) -> None:
    report = Report(
        what="cuts", machine="m", settings={"steps": 3}, minutes=0.5, summary=[{"f1": float("nan")}], runs=[]
    )
    write_figures(report, None)
    write_figures(report, tmp_path / "figures.json")
    assert json.loads((tmp_path / "figures.json").read_text()) == {
        "what": "cuts",
        "machine": "m",
        "settings": {"steps": 3},
        "minutes": 0.5,
        "summary": [{"f1": None}],
        "runs": [],
    }


def test_results_are_rounded(tmp_path: Path) -> None:
    row = {"f1": 2 / 3, "right, false, missed": [1234567, 0, 1]}
    report = Report(what="cuts", machine="m", settings={}, minutes=61.23456789, summary=[], runs=[row] * 3)
    write_figures(report, tmp_path / "figures.json")
    lines = (tmp_path / "figures.json").read_text().splitlines()
    assert lines[4] == ' "minutes": 61.235,'
    assert lines[7] == '  {"f1": 0.66667, "right, false, missed": [1234567, 0, 1]},'
    assert len(lines) == 12


def test_output_file_is_checked_before_work_starts(tmp_path: Path) -> None:
    check_output_file(None, FIGURES)
    check_output_file(tmp_path / "new folder" / "x.json", FIGURES)
    assert list((tmp_path / "new folder").iterdir()) == []
    (tmp_path / "file").touch()
    for path, message in (
        (tmp_path, "cannot be written: it is a folder, not a file"),
        (tmp_path / "file" / "x.json", ".*file: .*; choose an output folder that can be written"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            check_output_file(path, FIGURES)


def test_other_data_is_rejected_but_own_output_may_change(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    (data / "a.mp4").write_bytes(b"123")
    own = data / "figures.json"
    for _ in range(2):
        check_same_data(work, "shots", {"--data": data, "--weights": None}, outputs=(own, None))
        own.touch()
        (work / "runs").mkdir(exist_ok=True)
    (data / "a.mp4").write_bytes(b"1234")
    with pytest.raises(InvalidArgumentError, match=r"results from other data \(--data\).*choose another folder"):
        check_same_data(work, "shots", {"--data": data, "--weights": None}, outputs=(own,))
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match=r"--work .*file.* cannot be used"):
        check_same_data(tmp_path / "file" / "work", "shots", {"--data": data})
