"""``vidkin train-shots``: from labels to a detector for `vidkin shots`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from tests.support.videos import encode, pan
from vidkin.cli.app import app
from vidkin.shots import ShotAnnotation, VideoAnnotation, detect, write_shot_annotations
from vidkin_research.learned.detector import ShotRules


def run(*words: str | Path, status: int = 0) -> Any:
    torch.set_num_threads(1)
    result = CliRunner().invoke(app, ["train-shots", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five films of three shots made from photographs; the first shot of each is labeled critical at its end."""
    folder = tmp_path_factory.mktemp("films")
    names = ("astronaut", "coffee", "chelsea", "rocket")
    annotations = []
    for number in range(5):
        three = [names[(number + place) % 4] for place in range(3)]
        frames = [frame for name in three for frame in pan(name, 24, width=96, height=64, seed=number)]
        path = encode(folder / f"{number}.mp4", frames, rate=25, options={"mbtree": "0", "preset": "medium"})
        shots = (ShotAnnotation(0, 24, (16, 24)), ShotAnnotation(24, 48), ShotAnnotation(48, 72))
        annotations.append(VideoAnnotation(path, 25.0, shots))
    write_shot_annotations(folder / "labels.json", annotations)
    (folder / "recipe.toml").write_text(
        '[shots]\nloss = "quadlet"\nwindow = 6\nsteps = 20\nlearning_rate = 3e-3\nquadlets = 6\ntriplets = 6\n'
        '[model]\nbackbone = "small"\nwidth = 0.5\nhidden = 32\nlstm = 32\nsize = 32\n',
        encoding="utf-8",
    )
    return folder / "labels.json"


@pytest.mark.large
def test_training_on_labels_creates_a_detector(labels: Path, tmp_path: Path) -> None:
    recipe = labels.parent / "recipe.toml"
    told = json.loads(run(labels, "--recipe", recipe, "-o", tmp_path / "model", "-f", "json").stdout)
    assert told["videos"] == {"trained": 4, "fitted": 1}
    assert told["critical"] is True
    assert told["gradual"] is False
    rules = ShotRules.load(tmp_path / "model")
    assert rules.window == 6
    assert rules.fitted_on == "1 held-out video"
    detection = detect(labels.parent / "0.mp4", f"learned:{tmp_path / 'model'}")
    assert len(detection.shots) >= 2
    assert all(shot.critical is not None for shot in detection.shots)
    printed = run(labels, "--recipe", recipe, "-o", tmp_path / "again").output
    assert "4 videos" in printed
    assert "use it with vidkin shots --detector" in printed
    # Training is deterministic for the same labels and recipe.
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "again"))
    assert one == two


def test_show_prints_every_default(labels: Path, tmp_path: Path) -> None:
    printed = run(labels, "--recipe", labels.parent / "recipe.toml", "-o", tmp_path / "m", "--show").stdout
    assert "weight_decay = 0.001" in printed
    assert 'fit = "stretch"' in printed
    assert not (tmp_path / "m").exists()


def test_training_needs_at_least_four_videos(labels: Path, tmp_path: Path) -> None:
    few = VideoAnnotation(labels.parent / "0.mp4", 25.0, (ShotAnnotation(0, 24), ShotAnnotation(24, 48)))
    write_shot_annotations(tmp_path / "few.json", [few])
    result = run(tmp_path / "few.json", "--recipe", labels.parent / "recipe.toml", status=2)
    assert (
        "labels must cover at least 4 videos, because every fourth is held out to fit the thresholds, got 1"
        in result.stderr
    )


def test_output_that_cannot_be_a_folder_is_rejected_before_training(labels: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(labels, "--recipe", labels.parent / "recipe.toml", "-o", tmp_path / "file" / "model", status=2)
    assert "choose an output folder that can be written" in result.stderr
    assert "training" not in result.stderr  # fail if training starts


def rewrite(labels: Path, target: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """Write the labels with changed content, for the same videos."""
    document = json.loads(labels.read_text(encoding="utf-8"))
    for video in document["videos"]:
        video["video"] = str(labels.parent / video["video"])
    change(document["videos"])
    target.write_text(json.dumps(document), encoding="utf-8")
    return target


def test_labels_beyond_the_end_of_a_held_out_video_are_rejected(labels: Path, tmp_path: Path) -> None:
    changed = rewrite(labels, tmp_path / "labels.json", lambda videos: videos[3]["shots"][2].update(end=500))
    result = run(changed, "--recipe", labels.parent / "recipe.toml", "--output", tmp_path / "model", status=2)
    assert "3.mp4: a labeled shot ends at frame 500, but the video has 72 frames" in result.stderr


def test_unusable_labels_are_reported_before_training(labels: Path, tmp_path: Path) -> None:
    recipe = ("--recipe", labels.parent / "recipe.toml", "--output", tmp_path / "model")
    uncut = rewrite(labels, tmp_path / "uncut.json", lambda videos: videos[3].update(shots=videos[3]["shots"][:1]))
    assert "every fourth video (3.mp4) is held out to fit the cut rule" in run(uncut, *recipe, status=2).stderr
    gone = rewrite(labels, tmp_path / "gone.json", lambda videos: videos[0].update(video="gone.mp4"))
    assert "1 labeled video not found: gone.mp4" in run(gone, *recipe, status=2).stderr
    assert not (tmp_path / "model").exists()
    calm = rewrite(labels, tmp_path / "calm.json", lambda videos: videos[3]["shots"][0].update(critical=None))
    assert "the detector will not compute critical scores" in run(calm, *recipe).stderr


def test_recipes_are_listed_without_labels() -> None:
    printed = run().stdout
    for name in ("deepsbd", "extended", "published"):
        assert name in printed
    assert json.loads(run("-f", "json").stdout) == {"recipes": ["deepsbd", "deepsbd-svm", "extended", "published"]}


def test_recipes_have_a_default_and_settings_can_be_overridden() -> None:
    assert 'rule = "extended"' in run("--show").stdout
    shown = run("--show", "--recipe", "published", "--rate", "10", "--set", "shots.steps=7").stdout
    assert 'rule = "slope"' in shown
    assert "rate = 10.0" in shown
    assert "steps = 7" in shown
    refused = run("--show", "--set", "steps=7", status=2)
    assert "the recipe has the tables shots, model; use the form shots.steps=100" in refused.stderr


def test_published_rule_can_be_used_as_detector(labels: Path, tmp_path: Path) -> None:
    small = ("--set", "shots.steps=3", "--set", "shots.quadlets=2", "--set", "shots.triplets=2")
    small += ("--set", "shots.window=5", "--set", "model.frames=5", "--set", "model.backbone=small")
    small += (
        "--set",
        "model.size=32",
        "--set",
        "model.width=0.34",
        "--set",
        "model.hidden=8",
        "--set",
        "model.lstm=8",
    )
    told = json.loads(run(labels, "--recipe", "published", *small, "-o", tmp_path / "slope", "-f", "json").stdout)
    assert told["gradual"] is False
    rules = ShotRules.load(tmp_path / "slope")
    assert (rules.method, rules.rate) == ("slope", 20.0)
    assert detect(labels.parent / "0.mp4", str(tmp_path / "slope")).curve is not None


def test_help_names_the_tables_of_a_recipe() -> None:
    assert "[shots]" in run("--help").stdout


def test_rate_is_rejected_if_every_frame_is_read(labels: Path) -> None:
    told = run(labels, "--method", "deepsbd", "--rate", "10", status=2).stderr
    assert "--rate is only for recipes with [shots]; method deepsbd reads every frame" in told


def test_check_lists_videos_and_their_errors(labels: Path, tmp_path: Path) -> None:
    printed = run(labels, "--check", "-o", tmp_path / "m").stdout
    assert printed.count("training") == 4
    assert printed.count("fitting the thresholds (held out)") == 1
    told = json.loads(run(labels, "--check", "-f", "json", "--method", "deepsbd").stdout)["videos"]
    assert [(one["shots"], one["hard"], one["gradual"], one["critical"]) for one in told] == [(3, 2, 0, 1)] * 5
    assert not any(one["is_held_out"] for one in told)
    changed = rewrite(labels, tmp_path / "labels.json", lambda videos: videos[1]["shots"][2].update(end=500))
    result = run(changed, "--check", status=1)
    assert "a shot ends at frame 500, but the video has about 72 frames" in result.stderr
    assert not (tmp_path / "m").exists()


def test_recipes_for_a_gpu_have_a_reduced_version(labels: Path) -> None:
    assert "width = 0.125" in run("--show", "--method", "deepsbd", "--reduced").stdout
    assert 'trainable = "head"' in run("--show", "-r", "published", "--reduced").stdout
    told = run("--show", "-r", "extended", "--reduced", status=2).stderr
    assert "recipe 'extended' has no table [reduced]" in told


def test_missing_gpu_is_reported_before_training(labels: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    for method in ("learned", "deepsbd"):
        told = run(labels, "--method", method, "-o", tmp_path / "m", "--device", "cuda", status=2).stderr
        assert "CUDA" in told
    note = (
        "--set",
        "segments.steps=1",
        "--set",
        "model.width=0.05",
        "--set",
        "model.size=16",
        "--set",
        "segments.batch=2",
    )
    assert "is for a GPU" in run(labels, "--method", "deepsbd", *note, "-o", tmp_path / "m").stderr
