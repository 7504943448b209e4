"""Training a comparator on a folder of videos, resuming it, and using the result."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.support.videos import pan
from vidkin.errors import InvalidArgumentError, WeightsUnavailableError
from vidkin.features import import_timm, open_extractor
from vidkin.index import Index
from vidkin.media import Frames
from vidkin.models import EXTRACTOR_WEIGHTS_FILE, read_comparator_info
from vidkin.training import load_recipe, preview_recipe, show_recipe, train

MakeRecipe = Callable[..., dict[str, Any]]

SCRIPT = """
import json, sys, time, torch
from vidkin.training import train
torch.set_num_threads(1)
pause = float(sys.argv[3])
train(json.loads(sys.argv[1]), output=sys.argv[2],
      on_progress=lambda told: time.sleep(pause) if told.phase == "training" else None)
"""


@pytest.mark.kill
def test_killed_and_resumed_run_has_the_same_weights(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    content = clip_recipe(data={"validation": 0.4}, validation={"every": 3})
    train(content, output=tmp_path / "whole")
    command = [sys.executable, "-c", SCRIPT, json.dumps(content), str(tmp_path / "killed")]
    process = subprocess.Popen([*command, "0.2"])
    deadline = time.monotonic() + 120
    log = tmp_path / "killed" / "run.jsonl"
    while not (log.is_file() and log.read_text().count('"kind": "step"') >= 3):
        assert process.poll() is None, "the run ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    report = train(content, output=tmp_path / "killed")
    assert report.resumed_from >= 2
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert log.read_bytes() == (tmp_path / "whole" / "run.jsonl").read_bytes()


@pytest.mark.large
def test_views_generated_at_every_step_do_not_depend_on_threads(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    content = clip_recipe(schedule={"steps": 2})
    content["data"]["cache"] = "memory"
    content["data"]["options"]["views"] = 0
    for threads in (1, 3):
        content["data"]["threads"] = threads
        train(content, output=tmp_path / str(threads))
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("1", "3"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not (tmp_path / "1" / "features").exists()


@pytest.mark.large
def test_the_trained_model_can_be_used_to_search(clip_recipe: MakeRecipe, footage: Path, tmp_path: Path) -> None:
    report = train(clip_recipe(schedule={"steps": 2}), output=tmp_path / "model")
    assert {Path(path).name for path, _ in report.broken} == {"broken.mp4", "still.mp4"}
    info = read_comparator_info(tmp_path / "model")
    assert info.notes["objective"][-1] == "frame_quad_linear_ap"
    assert info.config.unrelated is not None
    # The folder contains the encoder that the comparator was trained on.
    assert info.weights == tmp_path / "model" / EXTRACTOR_WEIGHTS_FILE
    extractor = open_extractor(str(tmp_path / "model"))
    assert extractor.fingerprint.endswith(open_extractor("squares", device="cpu").fingerprint)
    index = Index.open(tmp_path / "collection", extractor=str(tmp_path / "model"), create=True)
    index.add([footage / "coffee.mp4", footage / "rocket.mp4"])
    matches = index.search(footage / "coffee.mp4")
    assert Path(matches[0].path).name == "coffee.mp4"
    assert matches[0].score == pytest.approx(1.0)


@pytest.mark.large
@pytest.mark.parametrize("views", [0, 2])
def test_the_teacher_can_label_edited_frames(clip_recipe: MakeRecipe, tmp_path: Path, views: int) -> None:
    folders = {}
    for seen in ("unedited", "edited"):
        content = clip_recipe(schedule={"steps": 2})
        content["data"]["options"] |= {"teacher_sees": seen, "views": views}
        train(content, output=tmp_path / seen)
        folders[seen] = tmp_path / seen
    first, second = (load_file(folder / "model.safetensors") for folder in folders.values())
    assert any(not torch.equal(first[name], second[name]) for name in first)
    # Embeddings of unedited frames are stored per video; those of edited frames belong to the views.
    assert (folders["unedited"] / "features" / "teacher").is_dir()
    assert not (folders["edited"] / "features" / "teacher").exists()


def test_error_names_the_command_for_a_missing_whitening(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    content = clip_recipe(model={"extractor": "classical", "dimension": 16})
    with pytest.raises(
        InvalidArgumentError,
        match=r"model.dimension must be 128, .* got 16; or fit a whitening to 16 dimensions \(`vidkin whiten FOLDER "
        r"--kind pca --dimension 16 --extractor 'classical' -o FILE`\) and use it: --set model.whitening=FILE",
    ):
        train(content, output=tmp_path)


@pytest.mark.large
def test_network_of_the_extractor_can_be_trained_as_well(
    clip_recipe: MakeRecipe, footage: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    network = import_timm().create_model("test_resnet", pretrained=False)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    name = "timm:test_resnet?size=64&bars=keep"
    length = open_extractor(name, weights=tmp_path / "w.safetensors", device="cpu")
    wide = sum(length.channels)  # type: ignore[attr-defined]
    model = {"extractor": name, "dimension": wide, "weights": str(tmp_path / "w.safetensors")}
    for trainable in ("all", "head"):
        content = clip_recipe(model={**model, "trainable": trainable}, schedule={"steps": 2, "pairs": 3})
        content["schedule"]["learning_rate"] = 1e-3
        train(content, output=tmp_path / trainable)
    before = load_file(tmp_path / "w.safetensors")
    after = load_file(tmp_path / "all" / EXTRACTOR_WEIGHTS_FILE)
    assert any(not torch.equal(before[key], after[key]) for key in before if key.endswith("weight") and key in after)
    # Batch-norm statistics do not change, and the folder is a model that describes frames with the new weights.
    assert all(torch.equal(before[key], after[key]) for key in before if "running" in key and key in after)
    extractor, frozen = (open_extractor(str(tmp_path / folder), device="cpu") for folder in ("all", "head"))
    assert extractor.fingerprint.partition("-timm")[2] != frozen.fingerprint.partition("-timm")[2]
    images = np.stack(list(pan("coffee", 2)))
    frames = Frames(images, np.arange(2.0))
    assert not np.allclose(extractor.extract(frames).whole, frozen.extract(frames).whole, atol=1e-4)
    with pytest.raises(InvalidArgumentError, match=r"model\.trainable 'all' needs an extractor timm:"):
        train(clip_recipe(model={"trainable": "all"}), output=tmp_path / "vidkin")


@pytest.mark.thorough
def test_error_for_missing_weights_names_the_settings(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    for part, settings in (
        (
            {"model": {"extractor": "timm:test_resnet", "dimension": 9}},
            "model.extractor=squares and model.dimension=128",
        ),
        ({}, "teacher --set data.options.teacher_weights=FILE"),
    ):
        content = clip_recipe(**part)
        if not part:
            content["data"]["options"]["teacher"] = "timm:test_resnet"
        with pytest.raises(WeightsUnavailableError) as refused:
            train(content, output=tmp_path / settings[:5])
        text = str(refused.value)
        assert settings in text
        assert "--set model.weights=FILE" in text
        assert "--extractor" not in text


def test_small_folder_reduces_clips_per_step_and_disables_validation(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    content = clip_recipe(schedule={"steps": 1, "pairs": 40}, validation={"every": 1}, data={"validation": 0.1})
    report = train(content, output=tmp_path)
    assert report.notes[0].startswith("no validation: splitting ")
    assert report.notes[1] == "12 clips per step instead of 40 (schedule.pairs): there are no more"
    stored = load_recipe(tmp_path / "recipe.toml")
    assert (stored.schedule.pairs, stored.validation.every) == (12, 0)


@pytest.mark.large
def test_training_separates_the_clips(clip_recipe: MakeRecipe, tmp_path: Path) -> None:
    content = clip_recipe(
        data={"validation": 0.4},
        schedule={"steps": 30, "learning_rate": 3e-3, "clip": 1.0},
        validation={"every": 30},
    )
    report = train(content, output=tmp_path)
    assert report.measure == "map"
    assert report.terms["positives"] > report.terms["negatives"] + 0.02


def test_preview_shows_both_views_without_writing_files(clip_recipe: MakeRecipe) -> None:
    preview = preview_recipe(load_recipe(clip_recipe(data={"validation": 0.4}, validation={"every": 1})))
    assert preview.splits == {"train": 8, "validation": 4}
    assert (preview.kind, preview.labels) == ("clip", ())
    assert preview.batch.images.shape == (8, 8, 32, 32, 3)
    assert preview.batch.members == ("weak view", "strong view")
    assert preview.batch.items[0].path == preview.batch.items[4].path
    assert [Path(error.path).name for error in preview.batch.broken] == ["broken.mp4", "still.mp4"]


class TestRecipe:
    @pytest.mark.parametrize("name", ["self-supervised", "published-self-supervised"])
    def test_of_the_package_are_shown_with_comments_and_can_be_read(self, name: str) -> None:
        shown = show_recipe(load_recipe(name))
        assert load_recipe(tomllib.loads(shown)) == load_recipe(name)
        for comment in (
            "# Number of strong views of each window",
            "# k_s of the TopK-Chamfer similarity over regions",
            "# Range of",
        ):
            assert comment in shown

    def test_of_the_package_use_several_regions(self) -> None:
        """TopK-Chamfer over regions needs frames with several regions."""
        recipe = load_recipe("self-supervised")
        frames = Frames(np.zeros((1, 48, 64, 3), np.uint8), np.zeros(1))
        values = open_extractor(recipe.comparator().extractor, device="cpu").extract(frames).whole
        assert values.shape[1] >= 9
        assert values.shape[2] == recipe.comparator().dimension

    def test_accept_a_number_for_k(self, clip_recipe: MakeRecipe) -> None:
        config = load_recipe(clip_recipe(model={"temporal_share": 3})).comparator()
        assert config.temporal_share == 3.0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"model": {"unrelated": [0, 1]}}, "model.unrelated is derived from the data; remove it"),
            ({"model": {"network": "none", "weighting": "none"}}, "has no weights to train"),
            (
                {"model": {"weighting": "none"}},
                "must be 'attention' or 'direction' for a loss on frames, got 'none'",
            ),
            ({"validation": {"every": 1, "measure": "qp"}}, "must be 'map' for a comparator, got 'qp'"),
            ({"data": {"kind": "labeled"}}, "data.kind must be 'unlabeled' for a comparator, got 'labeled'"),
            ({"model": {"whitening": 3}}, "model.whitening must be text, got 3"),
            (
                {"model": {"extractor": "timm:resnet50?fit=crop"}},
                r"data.options.fit must be 'crop', got 'stretch': timm:.* crops the center",
            ),
            ({"model": {"temporal_share": 2.5}}, "temporal_share must be None"),
        ],
    )
    def test_reject_incompatible_settings(self, clip_recipe: MakeRecipe, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            load_recipe(clip_recipe(**changes))

    def test_reject_losses_for_other_models(self, clip_recipe: MakeRecipe) -> None:
        content = {**clip_recipe(), "objective": {"name": "triplet"}}
        with pytest.raises(InvalidArgumentError, match=r"for a comparator must be one of .*mae.*, got 'triplet'"):
            load_recipe(content)
        encoder = {**clip_recipe(), "model": {"kind": "frame_encoder", "fit": "stretch"}}
        with pytest.raises(InvalidArgumentError, match=r"'similarity_regularizer' is for model.kind 'comparator'"):
            load_recipe({**encoder, "objective": {"name": "similarity_regularizer"}})

    def test_reject_a_dimension_that_differs_from_the_extractor(self, clip_recipe: MakeRecipe, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"model.dimension must be 128, .* 'squares', got 64"):
            train(clip_recipe(model={"dimension": 64}), output=tmp_path)
