"""The comparison on critical clips, with small synthetic recordings and a small network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vidkin_research.critical import CriticalStudy, run_critical_study
from vidkin_research.learned.detector import ShotRules

SMALL = CriticalStudy(
    losses=("untrained", "quadlet", "radial_detached"),
    seeds=1,
    steps=3,
    train=(2, 0),
    test=(2, 1),
    held_out=False,
    network="small",
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*.*"))}


@pytest.mark.large
def test_every_loss_is_evaluated_and_second_run_reuses_results(clips: Path, tmp_path: Path) -> None:
    work, told = tmp_path / "work", []
    report = run_critical_study(
        SMALL,
        clips,
        work=work,
        save=tmp_path / "model",
        on_progress=lambda done, total, what: told.append((done, total, what)),
    )
    assert [line["loss"] for line in report.summary] == list(SMALL.losses)
    assert report.settings["shots"] == {"all places": {"shots": 18, "critical": 6}}
    control, *runs = report.runs
    assert control["loss"] == "length of the shot"
    assert [(row["split"], row["loss"], row["seed"]) for row in runs] == [
        ("all places", loss, 0) for loss in SMALL.losses
    ]
    for row in runs:
        assert set(row["trends"]) == {"mann-kendall", "theil-sen", "end-rise", "combined"}
        assert 0 <= row["found"]["clips"]["f1"] <= 1
        assert 0 <= row["default"]["clips"]["f1"] <= 1
    assert "distance" not in runs[0]  # nothing was trained
    assert runs[1]["seconds"] > 0
    assert told[-1] == (2, 3, "all places: radial_detached, seed 0")
    assert ShotRules.load(tmp_path / "model").critical is not None

    before = files(work)
    again = run_critical_study(SMALL, clips, work=work)
    assert files(work) == before
    assert again.runs == report.runs
    assert again.summary == report.summary


@pytest.mark.slow
def test_each_location_is_held_out_once(clips: Path, tmp_path: Path) -> None:
    study = replace(SMALL, losses=("untrained",), held_out=True, held_out_videos=1)
    report = run_critical_study(study, clips, work=tmp_path)
    assert list(dict.fromkeys(row["split"] for row in report.runs)) == [
        "all places",
        "room held out",
        "road held out",
        "bottles held out",
    ]
