"""Validation measures are checked before the first step, and reports of complete runs are preserved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.training import recipe_for, write_pictures
from vidkin.datasets import LabelledSet, open_labelled, write_split
from vidkin.errors import InvalidArgumentError
from vidkin.training import train


@pytest.fixture
def single(tmp_path: Path) -> dict[str, Any]:
    """A recipe with a single validation item per subcategory."""
    source = write_pictures(tmp_path / "pictures", each=4)
    whole = open_labelled(source)
    items = [
        type(item)(
            path=item.path,
            category=item.category,
            subcategory=item.subcategory,
            group=item.group,
            split="validation" if item.path.name == "0.png" else "train",
        )
        for item in whole.items
    ]
    divided: LabelledSet = whole.with_items(items)
    write_split(divided, tmp_path / "single.json")
    recipe = recipe_for(source, validation={"every": 6})
    recipe["data"]["split"] = str(tmp_path / "single.json")
    return recipe


@pytest.mark.parametrize("measure", ["qp", "tp"])
def test_undefined_measure_is_rejected_before_training(single: dict[str, Any], tmp_path: Path, measure: str) -> None:
    single["validation"]["measure"] = measure
    with pytest.raises(InvalidArgumentError, match=r"is undefined: the 6 validation items .* for example 'map'"):
        train(single, output=tmp_path / "run")
    assert not (tmp_path / "run" / "run.jsonl").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("measure", ["ndcg", "map", "hap", "asi", "recall_at_1"])
def test_measures_that_rank_training_items_need_one_validation_item_per_subcategory(
    single: dict[str, Any], tmp_path: Path, measure: str
) -> None:
    single["validation"]["measure"] = measure
    single["schedule"]["steps"] = 6
    report = train(single, output=tmp_path / "run")
    assert report.measure == measure
    assert report.best is not None
    assert 0.0 <= report.best <= 1.0


def test_validation_without_validation_items_is_rejected(tmp_path: Path) -> None:
    source = write_pictures(tmp_path / "pictures", each=4)
    recipe = recipe_for(source, validation={"every": 6})
    recipe["data"]["validation"] = 0.0
    with pytest.raises(InvalidArgumentError, match="has no validation items"):
        train(recipe, output=tmp_path / "run")


@pytest.mark.thorough
def test_calling_a_complete_run_again_keeps_its_report(tmp_path: Path) -> None:
    recipe = recipe_for(write_pictures(tmp_path / "pictures"), validation={"every": 6})
    train(recipe, output=tmp_path / "run")
    before = (tmp_path / "run" / "report.json").read_text()
    again = train(recipe, output=tmp_path / "run")
    assert (again.resumed_from, again.terms) == (12, {})
    assert (tmp_path / "run" / "report.json").read_text() == before
    assert json.loads(before)["terms"]["quadlet"] > 0
    (tmp_path / "run" / "report.json").unlink()
    train(recipe, output=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "report.json").read_text())["best"] == again.best
