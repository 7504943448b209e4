"""``vidkin evaluate``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.training import recipe_for, write_pictures
from vidkin.datasets import open_labelled, read_split
from vidkin.training import Evaluation, evaluate, train

MEASURES = set(Evaluation.__dataclass_fields__)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("shades") / "pictures")


@pytest.fixture(scope="module")
def model(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "shades-model"
    train(recipe_for(pictures, schedule={"steps": 30}), output=folder)
    return folder


def test_without_data_those_of_the_recipe_are_taken_divided_as_in_training(model: Path, pictures: Path) -> None:
    found = run("evaluate", model, "-f", "json").json
    assert set(found) == MEASURES | {"model", "outputs"}
    assert (found["queries"], found["gallery"]) == (12, 24)
    labelled = read_split(open_labelled(pictures, kind="image"), model / "split.json")
    direct = evaluate(model, labelled)
    assert found["qp"] == pytest.approx(direct.qp)
    assert found["map"] == pytest.approx(direct.map)
    # 12 queries in 3 categories of 2 subcategories of 2 items: 1 positive, 2 intermediates, 8 negatives each.
    assert found["quadlets"] == 12 * 1 * 2 * 8


def test_the_table_names_every_measure_and_says_what_was_ranked(model: Path) -> None:
    outcome = run("evaluate", model)
    for title in (
        "QP, all test quadlets",
        "QP, 15,000 test quadlets",
        "QP, all gallery quadlets",
        "NDCG",
        "recall@1",
    ):
        assert title in outcome.out
    assert "12 queries (test), 24 items in the gallery (train), 192 test quadlets" in outcome.err


def test_one_split_can_rank_itself(model: Path) -> None:
    found = run("evaluate", model, "--queries", "validation", "--gallery", "validation", "-f", "json").json
    assert (found["queries"], found["gallery"]) == (12, 12)
    assert (found["query_split"], found["gallery_split"]) == ("validation", "validation")


def test_the_data_of_the_training_are_divided_as_in_training_wherever_they_are_named(
    model: Path, pictures: Path, tmp_path: Path
) -> None:
    expected = run("evaluate", model, "-f", "json").json
    # Another split would rank and query with items that the model has learned.
    assert run("evaluate", model, pictures, "-f", "json").json == expected
    moved = tmp_path / "elsewhere" / "pictures"
    shutil.copytree(pictures, moved)
    outcome = run("evaluate", model, moved, "-f", "json")
    assert outcome.json == expected
    assert "using the split in" in outcome.err
    (moved / "red" / "dark" / "0.png").unlink()
    assert "splitting it by group" in run("evaluate", model, moved, "-f", "json").err


def test_a_list_of_files_is_read_as_in_training(pictures: Path, tmp_path: Path) -> None:
    rows = [f"{path},{path.parts[-3]},{path.parts[-2]}" for path in sorted(pictures.rglob("*.png"))]
    listed = tmp_path / "list.csv"
    listed.write_text("path,category,subcategory\n" + "\n".join(rows) + "\n", encoding="utf-8")
    recipe = recipe_for(listed, schedule={"steps": 2}, data={"reader": "manifest"})
    train(recipe, output=tmp_path / "model")
    expected = run("evaluate", tmp_path / "model", "-f", "json").json
    assert run("evaluate", tmp_path / "model", listed, "-f", "json").json == expected


def test_evaluate_refuses_a_folder_without_a_model(tmp_path: Path, pictures: Path) -> None:
    outcome = run("evaluate", tmp_path, status=2)
    assert "contains no model" in outcome.err
    outcome = run("evaluate", tmp_path, pictures, "--option", "kind=image", status=2)
    assert str(tmp_path) in outcome.err


def test_a_model_without_a_recipe_needs_data(model: Path, pictures: Path, tmp_path: Path) -> None:
    for name in ("model.safetensors", "config.toml"):
        shutil.copy(model / name, tmp_path)
    outcome = run("evaluate", tmp_path, status=2)
    assert "has no recipe.toml with labeled data; specify the data" in outcome.err
    assert "splitting it by group" in run("evaluate", tmp_path, pictures, "--option", "kind=image").err


def test_options_without_data_are_refused(model: Path) -> None:
    outcome = run("evaluate", model, "--option", "kind=image", status=2)
    assert "--option needs DATA, whose reader it is for" in outcome.err
