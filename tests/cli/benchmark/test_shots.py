"""``vidkin benchmark shots`` and ``critical`` on small made recordings: all rows, stored and printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from tests.support.videos import encode, pan
from vidkin.cli.app import _Commands
from vidkin.cli.benchmark import critical as benchmark_critical
from vidkin.cli.benchmark import shots as benchmark_shots
from vidkin.experiments import heads as benchmark_models
from vidkin.experiments.shots import material as benchmark_composed
from vidkin.shots.learned import ShotRules

app = typer.Typer(cls=_Commands)
app.command("shots")(benchmark_shots.shots)
app.command("critical")(benchmark_critical.critical)

LENGTHS = {
    "one-by-one-person-detection.mp4": 139.4,
    "car-detection.mp4": 30.1,
    "bottle-detection.mp4": 39.9,
    "crystal.mp4": 12.0,
    "frog.mp4": 8.3,
    "monster.mp4": 7.4,
    "elf.mp4": 8.1,
    "pig.mp4": 6.6,
    "rabbit.mp4": 7.9,
}


def run(*words: str | Path, status: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for the recordings: a coloured room in which a white bar appears while something happens."""
    from vidkin.datasets import ACTIVITIES, HIGHLIGHT_PLACES

    folder = tmp_path_factory.mktemp("clips")
    random = np.random.default_rng(0)
    for name, seconds in LENGTHS.items():
        events = [a for a in ACTIVITIES if HIGHLIGHT_PLACES[a.place] == name]
        base = np.broadcast_to(
            random.integers(40, 200, (48, 72, 3), dtype=np.uint8) // 8 * 2 + 60, (48, 72, 3)
        )
        frames = []
        for number in range(int(seconds * 10)):
            frame = base.copy()
            if any(event.start <= number / 10 < event.end for event in events):
                frame[:, 20:50] = 250
            frames.append(frame)
        encode(folder / name, frames, rate=10)
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network with fresh weights, little data, few steps."""
    torch.set_num_threads(1)
    monkeypatch.setattr(benchmark_models, "_NETWORK", "small")
    monkeypatch.setattr(benchmark_critical, "LOSSES", ("untrained", "quadlet", "radial_detached"))
    monkeypatch.setattr(benchmark_critical, "_TRAIN", (2, 0))
    monkeypatch.setattr(benchmark_critical, "_TEST", (2, 1))
    monkeypatch.setattr(benchmark_critical, "_STEPS", (8, 3))
    monkeypatch.setattr(benchmark_shots, "LOSSES", ("triplet", "quadlet"))
    monkeypatch.setattr(benchmark_shots, "_TRAIN", 2)
    monkeypatch.setattr(benchmark_shots, "_TEST", 1)
    monkeypatch.setattr(benchmark_shots, "_FRAMES", 300)
    monkeypatch.setattr(benchmark_shots, "_STEPS", (8, 3))
    monkeypatch.setattr(benchmark_shots, "_SEGMENT_STEPS", (4, 2))
    monkeypatch.setattr(benchmark_shots, "_SEGMENT_SIZE", 16)
    monkeypatch.setattr(benchmark_shots, "_HIGHLIGHT_VIDEOS", 2)
    monkeypatch.setattr(benchmark_composed, "_SIZE", (36, 64))
    monkeypatch.setattr(benchmark_shots, "UNTRAINED", ("content", "default"))


@pytest.mark.usefixtures("small")
def test_critical_judges_every_loss_and_keeps_a_model(clips: Path, tmp_path: Path) -> None:
    arguments = ["critical", "--data", clips, "--work", tmp_path / "work", "--quick"]
    printed = run(*arguments, "-o", tmp_path / "out" / "figures.json", "--save", tmp_path / "model")
    assert "all places" in printed.stdout
    assert "radial_detached" in printed.stdout
    stored = json.loads((tmp_path / "out" / "figures.json").read_text(encoding="utf-8"))
    assert [line["loss"] for line in stored["summary"]] == list(benchmark_critical.LOSSES)
    control, *runs = stored["runs"]
    assert control["loss"] == "length of the shot"
    for row in runs:
        assert set(row["trends"]) == {"mann-kendall", "theil-sen", "end-rise", "combined"}
        clips_found = row["found"]["clips"]
        assert 0 <= clips_found["f1"] <= 1
        assert row["seed"] == 0
    assert stored["settings"]["shots"]["all places"] == {"shots": 18, "critical": 6}
    assert ShotRules.load(tmp_path / "model").critical is not None
    # Nothing is made again: neither videos nor features.
    before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "work").rglob("*.*"))}
    again = json.loads(run(*arguments, "--json").stdout)
    assert {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "work").rglob("*.*"))} == before
    untrained = [[row for row in result["runs"] if row["loss"] == "untrained"] for result in (stored, again)]
    assert untrained[0] == untrained[1]


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edited video with one hard cut, and one shot alone."""
    folder = tmp_path_factory.mktemp("edited")
    encode(folder / "two.mp4", [*pan("coffee", 30), *pan("rocket", 30)], rate=25)
    encode(folder / "one.mp4", pan("chelsea", 30), rate=25)
    labels = {"two.mp4": {"hard": [30], "gradual": []}, "one.mp4": {"hard": [], "gradual": []}}
    (folder / "truth.json").write_text(json.dumps({"videos": labels}), encoding="utf-8")
    return folder


@pytest.mark.usefixtures("small")
def test_shots_judges_every_detector(clips: Path, edited: Path, tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    printed = run(
        "shots",
        "--data",
        edited,
        "--videos",
        clips,
        "--work",
        tmp_path / "work",
        "--quick",
        "-o",
        tmp_path / "figures.json",
        "--save",
        tmp_path / "model",
    )
    assert "DeepSBD" in printed.stdout
    stored = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    names = [*benchmark_shots.UNTRAINED, *(f"learned, {loss}" for loss in benchmark_shots.LOSSES)]
    assert [line["detector"] for line in stored["summary"] if line["set"] == "composed"] == [
        *names,
        "DeepSBD, 1/8 width",
    ]
    assert stored["settings"]["sets"]["edited"] == {"videos": 1, "hard": 1, "gradual": 0}
    assert stored["settings"]["sets"]["composed"]["hard"] > 0
    content = next(row for row in stored["runs"] if row["detector"] == "content" and row["set"] == "two.mp4")
    assert content["nearest"]["0"]["all"]["f1"] == 1.0
    assert content["overlap"]["2"]["hard"]["right"] == 1
    assert ShotRules.load(tmp_path / "model").window == benchmark_shots.WINDOW


def test_shots_without_clips_judges_what_needs_no_training(edited: Path, tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    stored = json.loads(run("shots", "--data", edited, "--work", tmp_path, "--json").stdout)
    assert {row["detector"] for row in stored["runs"]} == set(benchmark_shots.UNTRAINED)
    assert {row["set"] for row in stored["runs"]} == {"edited", "two.mp4", "one.mp4"}


def test_labels_without_their_video_are_told(tmp_path: Path) -> None:
    labels = {"videos": {"gone.mp4": {"hard": [3]}}}
    (tmp_path / "truth.json").write_text(json.dumps(labels), encoding="utf-8")
    result = run("shots", "--data", tmp_path, status=2)
    assert "has labels but no video for gone.mp4" in result.stderr


def test_videos_without_a_cut_and_names_without_an_ending_are_judged(edited: Path, tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    (tmp_path / "film").write_bytes((edited / "two.mp4").read_bytes())
    (tmp_path / "truth.json").write_text(json.dumps({"videos": {"film": {"hard": []}}}), encoding="utf-8")
    stored = json.loads(run("shots", "--data", tmp_path, "--work", tmp_path / "work", "--json").stdout)
    assert {row["set"] for row in stored["runs"]} == {"film"}
    (tmp_path / "truth.json").write_text(json.dumps({"videos": {}}), encoding="utf-8")
    assert "has labels of no video" in run("shots", "--data", tmp_path, status=2).stderr
    (tmp_path / "truth.json").write_text('{"videos": {"film": {"hard": [Infinity]}}}', encoding="utf-8")
    assert "does not hold labels of cuts" in run("shots", "--data", tmp_path, status=2).stderr


def test_an_output_that_cannot_be_written_is_told_before_measuring(edited: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in ("shots", "critical"):
        for output, message in (
            (tmp_path, "is a folder"),
            (tmp_path / "file" / "x.json", "cannot be written"),
        ):
            result = run(command, "--data", edited, "--work", tmp_path / "work", "-o", output, status=2)
            assert message in result.stderr
    assert not (tmp_path / "work").exists()


def test_runs_of_other_data_are_not_taken_for_these(clips: Path, edited: Path, tmp_path: Path) -> None:
    """A run is kept under its settings, which do not hold the data."""
    given = {"--data": edited, "--videos": clips, "--weights": None}
    own = edited / "figures.json"
    (tmp_path / "none").mkdir()
    call = ("shots", "--data", edited, "--work", tmp_path / "work", "--videos")
    # A call that gave no run leaves nothing to be mixed with.
    assert "holds no single-shot clips" in run(*call, tmp_path / "none", status=2).stderr
    (tmp_path / "work" / "runs").mkdir(parents=True)
    (tmp_path / "work" / "shots-data.json").unlink()
    for _ in range(2):
        benchmark_models.check_same_data(tmp_path / "work", "shots", given, written=(own, None))
        own.touch()
    own.unlink()
    result = run(*call, tmp_path / "none", status=2)
    assert "holds runs with another --videos, which would be mixed" in result.stderr


def test_shots_between_cuts_and_transitions() -> None:
    from vidkin.shots.judging import BoundaryLabels

    video = benchmark_composed.LabelledVideo(Path("a.mp4"), BoundaryLabels((10, 40), ((0, 3), (20, 29))))
    found = benchmark_composed.annotation_of(video, 50)
    assert [(shot.start, shot.end) for shot in found.shots] == [(4, 10), (10, 20), (30, 40), (40, 50)]
