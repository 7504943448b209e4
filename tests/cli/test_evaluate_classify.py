"""``vidkin classify``, and ``vidkin evaluate`` of a classifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.colors import COLORS, color_recipe, write_colors
from vidkin.models import EncoderConfig, build_model, save_model
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
    found = run("classify", model, *files, "--classes", "2", "--neighbors", "1", "--json").json
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
    outcome = run("classify", model, data / "test" / "red" / "0.png", broken, "--json", status=1)
    assert [entry["label"] for entry in outcome.json["files"]] == ["red"]
    assert outcome.json["broken"][0]["path"].endswith("broken.png")
    assert "broken.png" in run("classify", model, broken, status=3).err


def test_another_kind_of_model_is_refused(data: Path, tmp_path: Path) -> None:
    save_model(build_model(EncoderConfig(kind="image", backbone="small", size=16)), tmp_path / "image")
    error = run("classify", tmp_path / "image", data / "test" / "red" / "0.png", status=2).err
    assert "must hold a model of kind 'two_head' to classify, got 'image'" in " ".join(error.split())


def test_the_evaluation_of_a_classifier(data: Path, model: Path, tmp_path: Path) -> None:
    found = run("evaluate", model, "--json").json
    assert (found["top_1"], found["macro"], found["items"], found["explained"]) == (1.0, 1.0, 12, None)
    assert found["embedding"]["recalls"]["1"] == 1.0
    assert found["per_class"]["red"] == [4, 1.0]
    outcome = run("evaluate", model, "--picture", tmp_path / "pictures")
    for title in ("macro accuracy", "recall@16", "NMI of k-means", "penultimate layer", "green"):
        assert title in outcome.out
    assert (tmp_path / "pictures" / "misclassified.png").is_file()


def test_a_folder_stands_for_the_files_in_it(data: Path, model: Path, tmp_path: Path) -> None:
    found = run("classify", model, data / "test" / "red", "--json").json
    assert [entry["label"] for entry in found["files"]] == ["red"] * 4
    (tmp_path / "notes.txt").write_text("no picture")
    error = run("classify", model, tmp_path, status=2).err
    assert "there are no images and no videos in this folder" in " ".join(error.split())
