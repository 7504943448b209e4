"""The comparison of shot detectors, on small synthetic recordings and with small networks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.shots import detect
from vidkin_research.learned.detector import ShotRules
from vidkin_research.shots import PublishedDetector, ShotStudy, run_shot_study

pytest.importorskip("scenedetect")

SMALL = ShotStudy(
    detectors=("content", "default"),
    losses=("triplet", "quadlet"),
    seeds=1,
    steps=3,
    segment_steps=2,
    train_videos=2,
    test_videos=1,
    frames=300,
    size=(36, 64),
    segment_size=16,
    highlight_videos=2,
    network="small",
    published=PublishedDetector(network="small", size=16, units=8, steps=2, window=16),
    family_videos=0,
)
PUBLISHED = "published rule, radial, small of 16 px trained along, 2 steps of 2 + 2 tuples"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.large
def test_every_detector_is_evaluated_and_second_run_trains_nothing(clips: Path, edited: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    report = run_shot_study(SMALL, edited, videos=clips, work=work, save=tmp_path / "model")
    names = ["content", "default", "extended rule (ours), triplet", "extended rule (ours), quadlet"]
    names += ["DeepSBD, 1/8 width, 16 px", "DeepSBD, 1/8 width, 16 px, SVM", PUBLISHED]
    assert [line["detector"] for line in report.summary if line["set"] == "composed"] == names
    assert report.settings["sets"]["edited"] == {"videos": 1, "hard": 1, "gradual": 0}
    assert report.settings["sets"]["composed"]["hard"] > 0
    content = next(row for row in report.runs if row["detector"] == "content" and row["set"] == "two.mp4")
    assert content["nearest"]["0"]["all"]["f1"] == 1.0
    assert content["overlap"]["2"]["hard"]["right"] == 1
    assert ShotRules.load(tmp_path / "model").window == SMALL.window
    # The published rule is saved in a separate folder and is a normal detector.
    rules = ShotRules.load(tmp_path / "model-published")
    assert (rules.method, rules.window, rules.rate, rules.gradual) == ("slope", 16, 20.0, None)
    assert detect(edited / "two.mp4", str(tmp_path / "model-published")).curve is not None

    stored = {path: path.stat().st_mtime_ns for path in (work / "runs").iterdir()}
    again = run_shot_study(SMALL, edited, videos=clips, work=work)
    assert {path: path.stat().st_mtime_ns for path in (work / "runs").iterdir()} == stored
    assert again.summary == report.summary


def test_without_seeds_composed_videos_are_evaluated_without_training(
    clips: Path, edited: Path, tmp_path: Path
) -> None:
    study = replace(SMALL, seeds=0, detectors=("default",))
    report = run_shot_study(study, edited, videos=clips, work=tmp_path)
    assert {row["detector"] for row in report.runs} == {"default"}
    assert {"edited", "composed"} <= {row["set"] for row in report.runs}
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "composed-train").exists()


def test_without_clips_only_untrained_detectors_are_evaluated(edited: Path, tmp_path: Path) -> None:
    report = run_shot_study(ShotStudy(), edited, work=tmp_path)
    assert {row["detector"] for row in report.runs} == set(ShotStudy().detectors)
    assert {row["set"] for row in report.runs} == {"edited", "two.mp4", "one.mp4"}


def test_videos_without_a_cut_and_names_without_an_extension_are_evaluated(edited: Path, tmp_path: Path) -> None:
    (tmp_path / "film").write_bytes((edited / "two.mp4").read_bytes())
    (tmp_path / "truth.json").write_text(json.dumps({"videos": {"film": {"hard": []}}}), encoding="utf-8")
    report = run_shot_study(SMALL, tmp_path, work=tmp_path / "work")
    assert {row["set"] for row in report.runs} == {"film"}


def test_results_on_other_data_are_rejected(clips: Path, edited: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    work = tmp_path / "work"
    study = replace(SMALL, detectors=())
    with pytest.raises(InvalidArgumentError, match="no single-shot clips"):
        run_shot_study(study, edited, videos=tmp_path / "none", work=work)
    (work / "shots-data.json").unlink()
    (work / "runs").mkdir()
    (work / "shots-data.json").write_text(json.dumps({"--data": "other"}))
    with pytest.raises(InvalidArgumentError, match=r"results from other data \(--data, --videos\)"):
        run_shot_study(study, edited, videos=clips, work=work)
