"""Automatic splits: if groups are too small, another split is chosen and reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.labelled import picture
from tests.support.training import recipe_for
from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.training import load_recipe
from vidkin.training.division import SplitData, split_data

LABELS = ("a/x", "a/y", "b/x", "b/y")


def make(
    folder: Path, each: int, *, suffix: str = ".png", groups: int = 0, counts: Mapping[str, int] | None = None
) -> Path:
    """Write ``category/subcategory/N.png``, or ``category/subcategory/group/N.png``."""
    for label in LABELS:
        for number in range((counts or {}).get(label, each)):
            place = folder / label / f"group {number % groups}" if groups else folder / label
            path = place / f"{number}{suffix}"
            if suffix == ".png":
                picture(path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"")  # only its name matters
    return folder


def divide(folder: Path, **changes: dict[str, Any]) -> SplitData:
    recipe = recipe_for(folder, **changes)
    recipe["data"] = {"source": str(folder), **changes.get("data", {})}
    recipe["validation"] = {"every": 5, "patience": 2, **changes.get("validation", {})}
    return split_data(load_recipe(recipe))


def sizes(labelled: LabelledSet) -> dict[str, int]:
    return labelled.split_counts()


def test_large_groups_are_split_without_a_note(tmp_path: Path) -> None:
    # Of the 20 files of each subcategory, 6 are test and 2 validation items.
    division = divide(make(tmp_path, 20))
    assert sizes(division.labelled) == {"train": 48, "validation": 8, "test": 24}
    assert (division.notes, division.is_made) == ((), True)
    data, rules = division.recipe.data, division.recipe.validation
    assert (data.split_by, data.test, data.validation) == ("group", 0.3, 0.1)
    assert (rules.every, rules.measure) == (5, "qp")


def test_single_validation_items_are_evaluated_against_training_items(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 4))
    assert sizes(division.labelled) == {"train": 8, "validation": 4, "test": 4}
    assert division.recipe.validation.measure == "map"
    assert "have no quadlets" in division.notes[0]
    assert "validation.measure = 'map'" in division.notes[0]


def test_a_requested_measure_is_not_replaced(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 4), validation={"measure": "qp"})
    assert (division.recipe.validation.measure, division.notes) == ("qp", ())


def test_three_files_per_subcategory_have_no_validation_split(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 3))
    assert sizes(division.labelled) == {"train": 8, "test": 4}
    rules = division.recipe.validation
    assert (rules.every, rules.patience, division.recipe.data.validation) == (0, 0, 0.0)
    assert len(division.notes) == 1
    assert "data.validation" in division.notes[0]
    assert "weights of the last step are kept" in division.notes[0]


def test_one_group_per_subcategory_is_split_by_item(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 10, groups=1))
    assert sizes(division.labelled) == {"train": 24, "validation": 4, "test": 12}
    assert division.recipe.data.split_by == "item"
    assert "data.split_by = 'item'" in division.notes[0]


def test_two_files_per_subcategory_are_all_for_training(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 2))
    assert sizes(division.labelled) == {"train": 8}
    assert division.recipe.data.test == 0.0
    assert "data.test = 0" in division.notes[0]


def test_one_video_per_subcategory_is_cut_into_excerpts(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 1, suffix=".mp4"))
    assert sizes(division.labelled) == {"train": 4}
    assert division.recipe.data.excerpts == 4
    assert any("data.excerpts = 4" in note for note in division.notes)


def test_clip_model_is_replaced_by_an_image_model_for_images(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 20), model={"kind": "clip"})
    assert division.recipe.model["kind"] == "image"
    assert "model.kind" in division.notes[0]


def test_train_and_test_folders_without_validation_disable_validation(tmp_path: Path) -> None:
    for part in ("train", "test"):
        make(tmp_path / part, 3)
    division = divide(tmp_path)
    assert not division.is_made
    assert division.recipe.validation.every == 0
    assert "has no validation items" in division.notes[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"split_by": "group"}, r"too few for a validation split; set validation to 0 .*data.validation"),
        ({"split_by": "group", "validation": 0.0, "test": 0.9}, ""),
    ],
)
def test_requested_split_is_made_or_rejected(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    make(tmp_path, 3)
    if message:
        with pytest.raises(InvalidArgumentError, match=message):
            divide(tmp_path, data=data)
    else:
        assert sizes(divide(tmp_path, data=data).labelled) == {"train": 4, "test": 8}


def test_one_image_per_subcategory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="too few for a test and a validation split"):
        divide(make(tmp_path, 1))


def test_dividing_an_already_divided_recipe_does_not_change_it(tmp_path: Path) -> None:
    division = divide(make(tmp_path, 3))
    again = split_data(division.recipe)
    assert (again.recipe, again.notes) == (division.recipe, ())
    assert again.labelled == division.labelled
