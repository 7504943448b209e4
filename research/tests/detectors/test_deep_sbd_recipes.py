"""DeepSBD recipes: loading, printing and validation."""

from __future__ import annotations

import tomllib

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.detectors.deep_sbd_train import SegmentPlan
from vidkin_research.learned.recipes import load_shot_recipe, show_shot_recipe


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"segments": {}, "shots": {}}, r"\[recipe\] has no setting shots; choose from segments, model"),
        ({"segments": {"classifier": "tree"}}, r"classifier must be one of softmax, svm, got 'tree'"),
        ({"segments": {"batch": 0}}, "batch must be at least 1, got 0"),
        ({"segments": {"learning_rate": 0.0}}, "learning_rate must be above 0"),
        ({"segments": {}, "model": {"frames": 8}}, r"model\.frames must be 16 for DeepSBD, got 8"),
    ],
)
def test_settings_out_of_range_are_rejected(content: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        load_shot_recipe(content)


@pytest.mark.parametrize("name", ["deepsbd", "deepsbd-svm"])
def test_printed_recipes_round_trip(name: str) -> None:
    plan = load_shot_recipe(name)
    assert load_shot_recipe(tomllib.loads(show_shot_recipe(plan))) == plan


def test_deepsbd_has_its_published_size_by_default() -> None:
    for name, classifier in (("deepsbd", "softmax"), ("deepsbd-svm", "svm")):
        plan = load_shot_recipe(name, method="deepsbd")
        assert isinstance(plan, SegmentPlan)
        assert (plan.model.width, plan.model.size, plan.model.frames) == (1.0, 112, 16)
        assert plan.segments.classifier == classifier


@pytest.mark.parametrize(("method", "expected"), [(None, "extended"), ("learned", "extended"), ("deepsbd", "deepsbd")])
def test_every_method_has_a_default_recipe(method: str | None, expected: str) -> None:
    assert load_shot_recipe(method=method) == load_shot_recipe(expected)


def test_recipe_of_another_method_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="the recipe is for method 'learned', got method 'deepsbd'"):
        load_shot_recipe("published", method="deepsbd")
