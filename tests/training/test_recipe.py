"""Recipes are checked when they are read, and shown with all settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.training import (
    Recipe,
    available_objectives,
    available_recipes,
    describe_recipe,
    find_loss,
    load_recipe,
    recipe_tables,
    show_recipe,
)

OF_A_COMPARATOR = {
    "data": {"source": "folder", "kind": "unlabeled"},
    "model": {"kind": "comparator", "weighting": "attention"},
}


def content(**changes: Any) -> dict[str, Any]:
    return {"data": {"source": "folder"}, "objective": {"name": "quadlet"}, **changes}


def test_defaults_are_filled_in() -> None:
    recipe = load_recipe(content())
    assert recipe.data.reader == "tree"
    assert recipe.schedule.weight_decay == 1e-3
    assert recipe.model["backbone"] == "small"
    assert recipe.objectives[0].parameters == {"g1": 0.7, "g2": 0.3, "g3": 0.5}


@pytest.mark.parametrize("name", ["published-clips", "published-deep-ranking"])
def test_published_recipes_use_the_published_weight_decay_without_clipping(name: str) -> None:
    """lambda ||W||^2 with lambda = 0.001 has the gradient 2 lambda W, so these optimizers use a weight decay of 2
    lambda.
    """
    schedule = load_recipe(name).schedule
    assert schedule.optimizer in ("adam", "sgd")
    assert (schedule.weight_decay, schedule.clip) == (2 * 0.001, 0.0)


def test_objective_with_weight_0_does_not_affect_sampling() -> None:
    """The softmax-only baseline of the two-head classifier samples any items, not mined triplets."""
    whole = load_recipe("published-two-head-events")
    assert [find_loss(part.name).draw for part in whole.objectives] == ["uniform", "mined"]
    tables = tomllib.loads(show_recipe(whole))
    tables["objective"][1]["weight"] = 0
    alone = load_recipe(tables)
    assert [part.name for part in alone.objectives] == ["classification"]
    with pytest.raises(InvalidArgumentError, match="requires an objective with nonzero weight, got quadlet"):
        load_recipe(content(objective={"name": "quadlet", "weight": 0}))


@pytest.mark.parametrize("name", available_recipes())
def test_package_recipes_are_shown_with_all_defaults_and_can_be_read(name: str) -> None:
    recipe = load_recipe(name)
    shown = show_recipe(recipe)
    assert load_recipe(tomllib.loads(shown)) == recipe
    for word in ("momentum = 0.9", "collapse_below", " is not set", "patience"):
        assert word in shown


@pytest.mark.parametrize("name", available_recipes())
def test_every_shown_setting_has_a_description_above_it(name: str) -> None:
    lines = [line for line in show_recipe(load_recipe(name)).splitlines() if line]
    # A setting, or a comment with an unset one; descriptions may span several lines.
    settings = [
        place
        for place, line in enumerate(lines)
        if (" = " in line and not line.startswith("#")) or line.endswith(" is not set")
    ]
    assert len(settings) > 40
    bare = [lines[place] for place in settings if not lines[place - 1].startswith("# ")]
    assert bare == []


@pytest.mark.parametrize("objective", available_objectives())
def test_every_parameter_of_every_objective_has_a_description(objective: str) -> None:
    changes = {} if find_loss(objective).draw != "clips" else OF_A_COMPARATOR
    recipe = load_recipe(content(objective={"name": objective}, **changes))
    (meanings,) = describe_recipe(recipe)["objective"]
    assert {"name", "weight", *recipe.objectives[0].parameters} <= set(meanings)


def test_values_of_all_kinds_round_trip_through_toml(tmp_path: Path) -> None:
    recipe = load_recipe(
        content(
            name='a "name" \\ with\tmarks \x7f',
            data={"source": "a", "augmentation": ["flip"], "options": {"content": "strokes", "drawers": 3}},
            model={"rate": 5, "mean": [0.1, 0.2, 0.3], "weights": "file.safetensors"},
            objective=[{"name": "angular", "alpha": [30.0, 40.0, 50.0], "weight": 2}, {"name": "batch_hard"}],
            schedule={"batch": [2, 2, 4], "precision": "bfloat16"},
        )
    )
    (tmp_path / "recipe.toml").write_text(show_recipe(recipe), encoding="utf-8")
    again = load_recipe(tmp_path / "recipe.toml")
    assert again == recipe
    assert again.model["rate"] == 5.0
    assert again.objectives[0].parameters["alpha"] == (30.0, 40.0, 50.0)
    assert again.schedule.batch == (2, 2, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (content(model={"size": 64, "sise": 3}), r"no setting sise; choose from kind, backbone"),
        (content(schedule={"step": 3}), r"\[schedule\] has no setting step; choose from steps, quadlets"),
        (content(extra={}), r"\[recipe\] has no setting extra; choose from name, data, model, objective"),
        (content(schedule=3), r"\[schedule\] must be a table of settings, got 3"),
        (content(schedule={"steps": 0}), r"schedule.steps must be at least 1, got 0"),
        (content(schedule={"steps": 1.5}), r"schedule.steps must be a whole number, got 1.5"),
        (content(schedule={"steps": True}), r"schedule.steps must be a whole number, got True"),
        (
            content(schedule={"learning_rate": "fast"}),
            r"schedule.learning_rate must be a number, got 'fast'",
        ),
        (
            content(schedule={"learning_rate": -1.0}),
            r"schedule.learning_rate must be a number above 0, got -1.0",
        ),
        (
            content(schedule={"decay": "slow"}),
            r"schedule.decay must be one of constant, cosine, linear, step, one_cycle, got 'slow'",
        ),
        (content(schedule={"batch": [2]}), r"schedule.batch must be 3 numbers .*, got \[2\]"),
        (content(schedule={"batch": 2}), r"schedule.batch must be a list, got 2"),
        (content(schedule={"clip": float("inf")}), r"clip must be a number, got inf"),
        (
            content(data={"source": "a", "augmentation": ["spin"]}),
            r"data.augmentation must consist of flip, crop, color, got 'spin'",
        ),
        (
            content(data={"source": "a", "excerpt_share": 2.0}),
            r"data.excerpt_share must be above 0 and at most 1, got 2.0",
        ),
        (content(data={"source": "a", "options": 3}), r"data.options must be a table, got 3"),
        (content(data={}), r"\[data\] requires a source"),
        (content(data=5), r"\[data\] must be a table of settings, got 5"),
        (content(model=5), r"\[model\] must be a table of settings, got 5"),
        (content(objective=5), r"\[\[objective\]\] must be a table with a name, got 5"),
        (
            content(data={"source": "a", "split_seed": -1}),
            r"data.split_seed must be an integer from 0 to 4294967295, got -1",
        ),
        (
            content(schedule={"seed": 2**70}),
            r"seed must be a whole number, got \d+",
        ),
        (content(model={"mean": 5}), r"model.mean must be a list, got 5"),
        (content(model={"mean": ["a", "b", "c"]}), r"model.mean must be a number, got 'a'"),
        (content(model={"std": [1.0, float("nan"), 1.0]}), r"std must be three numbers or None, got"),
        ({"data": {"source": "a"}}, r"a recipe requires \[data\] with a source and \[\[objective\]\]"),
        (content(objective=[]), r"requires at least one \[\[objective\]\]"),
        (content(objective={"weight": 1}), r"must be a table with a name"),
        (content(objective={"name": "best"}), r"'best' is not an objective; choose from .*triplet"),
        (
            content(objective={"name": "radial", "d": 1}),
            r"'radial' has no parameter d; choose from c, margin",
        ),
        (
            content(objective={"name": "radial", "c": -1.0}),
            r"objective 'radial': c must be above 0, got -1.0",
        ),
        (
            content(objective={"name": "radial", "c": "x"}),
            r"objective 'radial': c must be a number, got 'x'",
        ),
        (
            content(objective={"name": "radial", "weight": "x"}),
            r"objective.weight must be a number, got 'x'",
        ),
        (content(objective={"name": "radial", "detach_radius": True}), r"no parameter detach_radius"),
        (content(model={"kind": "c3d"}), r"the objective must be 'classification' for a model of kind 'c3d'"),
        (content(model={"classes": 3}), r"model.classes is derived from the data; remove it"),
        (content(model={"weights": 3}), r"model.weights must be text, got 3"),
        (
            content(validation={"patience": 2}),
            r"validation.patience must be 0 while validation.every is 0, got 2",
        ),
        (
            content(validation={"measure": "luck"}),
            r"validation.measure must be one of auto, qp, tp, .*, got 'luck'",
        ),
    ],
)
def test_invalid_recipes_are_rejected_with_the_accepted_values(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        load_recipe(given)


def test_error_for_a_missing_recipe_lists_the_recipes_of_the_package() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'cooking' is not a recipe; choose a TOML file, or .*photographs"):
        load_recipe("cooking")


def test_a_recipe_that_is_not_toml_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[data\n")
    with pytest.raises(InvalidArgumentError, match=r"recipe.toml: not valid TOML"):
        load_recipe(tmp_path / "recipe.toml")


def test_a_recipe_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "evening.toml"
    path.write_text('data.source = "a"\nobjective = [{name = "triplet"}]\n')
    assert load_recipe(path).name == "evening"


def test_classifier_gets_its_classes_from_the_data() -> None:
    recipe = load_recipe(content(model={"kind": "c3d"}, objective={"name": "classification"}))
    assert recipe.config(classes=7).classes == 7
    assert "classes" not in recipe.model


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"schedule": {"log_every": 3, "checkpoint_every": 9, "tensorboard": True, "device": "cpu"}}, True),
        ({"data": {"source": "folder", "threads": 7, "cache": "memory", "memory": 0.5}}, True),
        ({"data": {"source": "folder", "moving": True}, "model": {"rate": 4}}, False),
        ({"name": "another"}, True),
        ({"schedule": {"steps": 3}}, False),
        ({"objective": {"name": "quadlet", "g1": 0.8}}, False),
        ({"model": {"size": 32}}, False),
    ],
)
def test_the_digest_changes_with_settings_that_affect_the_weights(changes: dict[str, Any], same: bool) -> None:
    first: Recipe = load_recipe(content())
    assert (load_recipe(content(**changes)).digest() == first.digest()) == same


def test_a_name_that_cannot_be_a_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"x+: cannot be read: File name too long"):
        load_recipe("x" * 300)


@pytest.mark.parametrize("name", available_recipes())
def test_the_tables_of_a_recipe_equal_its_file(name: str) -> None:
    recipe = load_recipe(name)
    tables = recipe_tables(recipe)
    assert load_recipe(tables) == recipe
    # The caller may modify the tables.
    tables["data"]["source"] = "elsewhere"
    tables["data"].setdefault("options", {})["side"] = -1
    assert load_recipe(name) == recipe == load_recipe(tomllib.loads(show_recipe(recipe)))
