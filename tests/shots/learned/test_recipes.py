"""Recipes of shots: read, shown, checked."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots.learned.recipes import load_shot_recipe, show_shot_recipe

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


def test_a_recipe_has_every_default_and_comes_back_as_shown(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(TEXT, encoding="utf-8")
    plan = load_shot_recipe(tmp_path / "recipe.toml")
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
        ({}, r"\[shots\] must have a loss"),
        (
            {"shots": {"loss": "quadlet"}, "model": {"kind": "image"}},
            r"model\.kind must be 'clip' to train on .* got 'image'",
        ),
        (
            {"shots": {"loss": "quadlet"}, "model": {"frames": 40}},
            r"model\.frames must be 10 to train on .* got 40",
        ),
        ({"shots": {"loss": "quadlet"}, "model": {"weights": 1}}, r"model\.weights must be text, got 1"),
        ({"shots": {"loss": "quadlet"}, "model": {"depth": 1}}, "has no setting depth"),
    ],
)
def test_mistakes_are_told(content: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        load_shot_recipe(content)


def test_files_that_are_no_recipe_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"none\.toml: the recipe cannot be read: No such file"):
        load_shot_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[shots", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"bad\.toml: not TOML"):
        load_shot_recipe(tmp_path / "bad.toml")
