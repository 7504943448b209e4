"""`vidkin.train_shots`: from labels to a detector, in Python."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import vidkin
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.shots import ShotAnnotation, VideoAnnotation, write_shot_annotations
from vidkin.training.runner import hold_training_folder
from vidkin_research.learned.detector import ShotRules
from vidkin_research.learned.recipes import ShotPlan, load_shot_recipe
from vidkin_research.learned.train import ShotTrainingProgress, ShotTrainingReport, train_shots

RECIPE: dict[str, dict[str, Any]] = {
    "shots": {
        "loss": "quadlet",
        "window": 6,
        "steps": 4,
        "learning_rate": 3e-3,
        "quadlets": 4,
        "triplets": 4,
    },
    "model": {"backbone": "small", "width": 0.5, "hidden": 16, "lstm": 16, "size": 32},
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """A second thread only slows down steps of this size."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def annotations(tmp_path_factory: pytest.TempPathFactory) -> list[VideoAnnotation]:
    """Four films of three shots made from photographs; the first shot of each is critical at its end."""
    folder = tmp_path_factory.mktemp("films")
    names = ("astronaut", "coffee", "chelsea", "rocket")
    shots = (ShotAnnotation(0, 24, (16, 24)), ShotAnnotation(24, 48), ShotAnnotation(48, 72))
    made = []
    for number in range(4):
        frames = [
            frame
            for name in (names[number], names[(number + 1) % 4], names[(number + 2) % 4])
            for frame in pan(name, 24, width=96, height=64, seed=number)
        ]
        path = encode(folder / f"{number}.mp4", frames, rate=25, options={"mbtree": "0"})
        made.append(VideoAnnotation(path, 25.0, shots))
    return made


def test_training_on_labels_creates_a_detector_and_a_report(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    progress: list[ShotTrainingProgress] = []
    report = vidkin.train_shots(annotations, RECIPE, output=tmp_path / "model", on_progress=progress.append)
    assert isinstance(report, ShotTrainingReport)
    assert report.output == tmp_path / "model"
    assert (report.trained_videos, report.fitted_videos) == (3, 1)
    assert (report.has_critical, report.has_gradual) == (True, False)
    assert 0 <= report.distance <= 2
    assert report.loss > 0
    assert report.seconds > 0
    reading, training = progress[:4], progress[4:]
    assert [(one.phase, one.done, one.total, one.video) for one in reading] == [
        ("reading", number, 4, f"{number}.mp4") for number in range(4)
    ]
    assert [(one.phase, one.done, one.total) for one in training] == [("training", step, 4) for step in range(1, 5)]
    assert all({"loss", "quadlets", "triplets"} <= set(one.terms) for one in training)
    assert ShotRules.load(tmp_path / "model").fitted_on == "1 held-out video"
    # The folder contains only the detector.
    assert sorted(path.name for path in (tmp_path / "model").glob("[!.]*")) == [
        "config.toml",
        "head.onnx",
        "model.onnx",
        "model.safetensors",
        "shots.json",
    ]
    shots = vidkin.detect_shots(annotations[0].video, str(tmp_path / "model"))
    assert shots[0].critical is not None


def test_label_file_and_training_plan_give_the_same_detector(
    annotations: list[VideoAnnotation], tmp_path: Path
) -> None:
    write_shot_annotations(tmp_path / "labels.json", annotations)
    first = train_shots(annotations, RECIPE, output=tmp_path / "a")
    plan = load_shot_recipe(RECIPE)
    assert isinstance(plan, ShotPlan)
    second = train_shots(tmp_path / "labels.json", plan, output=tmp_path / "b")
    assert (first.loss, first.distance) == (second.loss, second.distance)
    for name in ("model.safetensors", "shots.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert 'labels = "labels.json"' in (tmp_path / "b" / "config.toml").read_text()


def test_interrupted_training_does_not_change_the_folder(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("an older detector")

    def interrupt(progress: ShotTrainingProgress) -> None:
        if progress.phase == "training":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_shots(annotations, RECIPE, output=tmp_path, on_progress=interrupt)
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["config.toml"]
    assert (tmp_path / "config.toml").read_text() == "an older detector"


def test_other_files_in_the_folder_are_kept(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "shots.json").write_text("an older detector")
    train_shots(annotations, RECIPE, output=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert ShotRules.load(tmp_path).window == 6


def test_missing_rule_for_critical_shots_gives_a_warning(
    annotations: list[VideoAnnotation], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = tuple(ShotAnnotation(shot.start, shot.end) for shot in annotations[3].shots)
    changed = [*annotations[:3], VideoAnnotation(annotations[3].video, 25.0, plain)]
    with caplog.at_level("WARNING", logger="vidkin"):
        report = train_shots(changed, RECIPE, output=tmp_path / "model")
    assert not report.has_critical
    assert "every fourth video (3.mp4) is held out to fit the rule for critical shots" in caplog.text
    assert "the detector will not compute critical scores" in caplog.text


def test_labels_are_validated_before_any_video_is_read(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    output = tmp_path / "model"
    with pytest.raises(InvalidArgumentError, match=r"labels must cover at least 4 videos, .* got 3"):
        train_shots(annotations[:3], RECIPE, output=output)
    gone = VideoAnnotation(tmp_path / "gone.mp4", 25.0, annotations[0].shots)
    with pytest.raises(InvalidArgumentError, match=r"2 labeled videos not found: gone\.mp4, gone\.mp4"):
        train_shots([*annotations[:2], gone, gone], RECIPE, output=output)
    uncut = VideoAnnotation(annotations[3].video, 25.0, annotations[3].shots[:1])
    with pytest.raises(InvalidArgumentError, match=r"fourth video \(3\.mp4\) .* none of them has a labeled"):
        train_shots([*annotations[:3], uncut], RECIPE, output=output)
    assert not output.exists()
    with pytest.raises(InvalidArgumentError, match=r"labels\.json"):
        train_shots(tmp_path / "labels.json", RECIPE, output=output)


PUBLISHED: dict[str, dict[str, Any]] = {
    "shots": {
        **RECIPE["shots"],
        "loss": "radial",
        "rule": "slope",
        "rate": 12.5,
        "quadlets": 2,
        "triplets": 2,
        "window": 4,
    },
    "model": {**RECIPE["model"], "trainable": "all"},
}
"""The published recipe in small: every second frame, the slope alone, the frame network learns too."""


@pytest.mark.large
def test_published_rule_can_be_used_as_detector(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    report = train_shots(annotations, PUBLISHED, output=tmp_path / "model")
    assert (report.has_gradual, report.has_critical) == (False, True)
    rules = ShotRules.load(tmp_path / "model")
    assert (rules.method, rules.rate, rules.window) == ("slope", 12.5, 4)
    assert set(rules.cut.weights) == {"jump"}
    shots = vidkin.detect_shots(annotations[0].video, str(tmp_path / "model"))
    # At half the rate a new shot starts at an even frame index.
    assert all(shot.start_frame % 2 == 0 for shot in shots)
    untrained = train_shots(
        annotations, {**PUBLISHED, "shots": {**PUBLISHED["shots"], "steps": 0}}, output=tmp_path / "untrained"
    )
    one, two = (load_file(folder / "model.safetensors") for folder in (report.output, untrained.output))
    changed = {name for name in one if not torch.equal(one[name], two[name])}
    assert any(name.startswith("backbone.") for name in changed)
    # Frames that are not cached are decoded again, with the same resulting weights.
    less = {**PUBLISHED, "shots": {**PUBLISHED["shots"], "memory": 0.0}}
    train_shots(annotations, less, output=tmp_path / "less")
    assert (tmp_path / "less" / "model.safetensors").read_bytes() == (
        tmp_path / "model" / "model.safetensors"
    ).read_bytes()


def test_interrupted_training_resumes_with_the_same_weights(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    def press(progress: ShotTrainingProgress) -> None:
        if progress.phase == "training" and progress.done == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_shots(annotations, RECIPE, output=tmp_path / "model", on_progress=press)
    assert [path.name for path in (tmp_path / "model").glob("[!.]*")] == ["checkpoint.safetensors"]
    other = {**RECIPE, "shots": {**RECIPE["shots"], "learning_rate": 1e-3}}
    with pytest.raises(InvalidArgumentError, match=r"unfinished training run with a different recipe.*--restart"):
        train_shots(annotations, other, output=tmp_path / "model")
    steps: list[int] = []
    report = train_shots(
        annotations,
        RECIPE,
        output=tmp_path / "model",
        on_progress=lambda progress: steps.append(progress.done) if progress.phase == "training" else None,
    )
    assert steps == [3, 4]
    whole = train_shots(annotations, RECIPE, output=tmp_path / "whole")
    assert report.loss == whole.loss
    for name in ("model.safetensors", "shots.json"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "model" / "checkpoint.safetensors").exists()


def test_training_can_start_over(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(b"of something else")
    with pytest.raises(InvalidArgumentError, match="the checkpoint is damaged"):
        train_shots(annotations, RECIPE, output=tmp_path)
    assert train_shots(annotations, RECIPE, output=tmp_path, resume=False).loss > 0


def test_training_into_a_used_folder_is_rejected(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    with (
        hold_training_folder(tmp_path),
        pytest.raises(InvalidArgumentError, match="another training run is using this folder"),
    ):
        train_shots(annotations, RECIPE, output=tmp_path)


def test_critical_shots_can_be_learned_with_cuts_of_the_default_detector(
    annotations: list[VideoAnnotation], tmp_path: Path
) -> None:
    recipe = {**RECIPE, "shots": {**RECIPE["shots"], "rule": "default"}}
    report = vidkin.train_shots(annotations, recipe, output=tmp_path / "model")
    assert report.has_critical
    rules = ShotRules.load(tmp_path / "model")
    assert (rules.method, rules.cut, rules.gradual) == ("default", None, None)
    plain = [
        replace(one, shots=tuple(ShotAnnotation(shot.start, shot.end) for shot in one.shots)) for one in annotations
    ]
    with pytest.raises(InvalidArgumentError, match="only learns critical shots, so the held-out videos"):
        vidkin.train_shots(plain, recipe, output=tmp_path / "other")
