"""``vidkin classify``, and ``vidkin evaluate`` of a classifier."""

from __future__ import annotations

import re
from pathlib import Path

import huggingface_hub
import pytest

from tests.cli.conftest import run
from tests.support.colors import COLORS, color_recipe, write_colors
from vidkin.models import EncoderConfig, build_model, load_model, save_model
from vidkin.training import train

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colors(tmp_path_factory.mktemp("colors"))


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "colors-model"
    train(color_recipe(data), output=folder)
    return folder


def test_classes_and_neighbors_as_json_and_as_a_table(data: Path, model: Path) -> None:
    files = [data / "test" / label / "0.png" for label in COLORS]
    found = run("classify", model, *files, "--classes", "2", "--neighbors", "1", "-f", "json").json
    assert [entry["label"] for entry in found["files"]] == list(COLORS)
    assert [len(entry["others"]) for entry in found["files"]] == [1, 1, 1]
    assert found["files"][2]["neighbors"][0]["path"].startswith("train/red/")
    assert found["broken"] == []
    out = run("classify", model, files[0]).out
    assert "blue" in out
    assert "train/blue/" in out


def test_files_that_cannot_be_read_are_named(data: Path, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"nothing")
    outcome = run("classify", model, data / "test" / "red" / "0.png", broken, "-f", "json", status=1)
    assert [entry["label"] for entry in outcome.json["files"]] == ["red"]
    assert outcome.json["broken"][0]["path"].endswith("broken.png")
    assert "broken.png" in run("classify", model, broken, status=3).err


def test_another_kind_of_model_is_refused(data: Path, tmp_path: Path) -> None:
    save_model(build_model(EncoderConfig(kind="image", backbone="small", size=16)), tmp_path / "image")
    error = run("classify", tmp_path / "image", data / "test" / "red" / "0.png", status=2).err
    assert "must contain a model of kind 'two_head' to classify, got 'image'" in " ".join(error.split())


def test_the_evaluation_of_a_classifier(data: Path, model: Path, tmp_path: Path) -> None:
    found = run("evaluate", model, "-f", "json").json
    assert (found["top_1"], found["macro"], found["items"], found["explained"]) == (1.0, 1.0, 12, None)
    assert found["embedding"]["recalls"]["1"] == 1.0
    assert found["per_class"]["red"] == [4, 1.0]
    outcome = run("evaluate", model, "-o", tmp_path / "pictures")
    for title in ("macro accuracy", "recall@16", "NMI of k-means", "penultimate layer", "green"):
        assert title in outcome.out
    assert (tmp_path / "pictures" / "misclassified.png").is_file()


def test_a_folder_stands_for_the_files_in_it(data: Path, model: Path, tmp_path: Path) -> None:
    found = run("classify", model, data / "test" / "red", "-f", "json").json
    assert [entry["label"] for entry in found["files"]] == ["red"] * 4
    (tmp_path / "notes.txt").write_text("no picture")
    error = run("classify", model, tmp_path, status=2).err
    assert "there are no images and no videos in this folder" in " ".join(error.split())


def test_without_a_network_the_shipped_encoder_is_trained_and_the_summary_says_so(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: None)
    settings = ["schedule.steps=2", "validation.every=2", "schedule.device=cpu", "model.size=64"]
    options = [word for setting in settings for word in ("--set", setting)]
    outcome = run("train", "two-head", "--data", data / "train", "-o", tmp_path / "model", *options)
    words = " ".join(outcome.err.split())
    assert "weights of timm:mobilenetv2_100?pad_type=same are not in the local cache and cannot be downloaded" in words
    assert "with the encoder that comes with vidkin instead" in words
    assert re.search(r"Accuracy \d+\.\d % on the validation split, by which the step", " ".join(outcome.out.split()))
    assert "`vidkin classify" in words
    assert "top-1 (micro accuracy)" in outcome.out
    assert load_model(tmp_path / "model").config.backbone == "vidkin"
    # The same command resumes that run; a backbone that somebody named is not replaced by another one.
    again = run("train", "two-head", "--data", data / "train", "-o", tmp_path / "model", *options)
    assert "2 steps" in again.err
    named = run(
        "train", "two-head", "--data", data / "train", *options, "--set", "model.backbone=timm:resnet18", status=3
    )
    assert "weights of timm:resnet18" in " ".join(named.err.split())
