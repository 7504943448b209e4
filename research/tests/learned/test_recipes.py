"""Recipes for shot detectors: loading, printing and validation."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.recipes import ShotPlan, available_shot_recipes, load_shot_recipe, show_shot_recipe

TEXT = """
[shots]
loss = "radial_detached"
window = 8
steps = 20

[model]
backbone = "small"
hidden = 16
weights = "frames.safetensors"
"""


def test_printed_recipe_has_all_defaults_and_round_trips(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(TEXT, encoding="utf-8")
    plan = load_shot_recipe(tmp_path / "recipe.toml")
    assert isinstance(plan, ShotPlan)
    assert (plan.shots.loss, plan.shots.window, plan.shots.steps) == ("radial_detached", 8, 20)
    assert plan.shots.margin == 0.7
    assert (plan.model.frames, plan.model.hidden, plan.model.trainable) == (8, 16, "head")
    assert plan.weights == "frames.safetensors"
    shown = show_shot_recipe(plan)
    assert "learning_rate = 0.001" in shown
    assert load_shot_recipe(tomllib.loads(shown)) == plan


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"shots": {"loss": "quadlet"}, "data": {}},
            r"\[recipe\] has no setting data; choose from shots, model",
        ),
        ({}, r"\[shots\] must set loss to one of"),
        (
            {"shots": {"loss": "quadlet"}, "model": {"kind": "image"}},
            r"model\.kind must be 'clip' to train on windows of 10 frames, got 'image'",
        ),
        (
            {"shots": {"loss": "quadlet"}, "model": {"frames": 40}},
            r"model\.frames must be 10 to train on windows of 10 frames, got 40",
        ),
        ({"shots": {"loss": "quadlet"}, "model": {"weights": 1}}, r"model\.weights must be a string, got 1"),
        ({"shots": {"loss": "quadlet"}, "model": {"depth": 1}}, "has no setting depth"),
        ({"shots": {"loss": "quadlet", "rate": 0}}, "rate must be above 0, got 0"),
        (
            {"shots": {"loss": "quadlet", "rule": "steep"}},
            r"shots\.rule must be one of extended, slope, default, got 'steep'",
        ),
    ],
)
def test_invalid_arguments_are_rejected_with_the_accepted_values(content: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        load_shot_recipe(content)


def test_files_without_a_recipe_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"none\.toml' is not a recipe; choose a TOML file, or one of deep"):
        load_shot_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[shots", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"bad\.toml: not TOML"):
        load_shot_recipe(tmp_path / "bad.toml")


@pytest.mark.parametrize("name", ["extended", "published"])
def test_included_recipes_round_trip(name: str) -> None:
    plan = load_shot_recipe(name)
    assert load_shot_recipe(tomllib.loads(show_shot_recipe(plan))) == plan


def test_published_recipe_has_the_settings_of_the_paper() -> None:
    plan = load_shot_recipe("published")
    assert isinstance(plan, ShotPlan)
    shots, model = plan.shots, plan.model
    assert (shots.rule, shots.window, shots.rate, shots.loss) == ("slope", 40, 20.0, "radial")
    assert (shots.margin, shots.weight_decay, shots.head_factor) == (0.7, 2e-3, 10.0)
    assert (model.backbone, model.trainable, model.hidden, model.frames) == ("torchvision:alexnet", "all", 512, 40)


def test_recipes_of_all_methods_are_listed() -> None:
    assert list(available_shot_recipes()) == ["deepsbd", "deepsbd-svm", "extended", "published"]
    assert load_shot_recipe(method="learned") == load_shot_recipe() == load_shot_recipe("extended")


def test_unknown_methods_and_recipes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'boosted' is not a method of training shots; choose from deepsbd"):
        load_shot_recipe(method="boosted")
    with pytest.raises(InvalidArgumentError, match="'boosted' is not a recipe; choose a TOML file, or one of deepsbd"):
        load_shot_recipe("boosted")
