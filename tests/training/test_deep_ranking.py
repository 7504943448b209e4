"""Deep ranking recipes train three paths end to end on online triplets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.training import recipe_for, write_pictures
from vidkin.errors import InvalidArgumentError
from vidkin.models import load_model
from vidkin.training import load_recipe, train


def recipe(source: Path, *, relevance: str = "labels", **changes: dict[str, Any]) -> dict[str, Any]:
    """Images of 64 pixels, so that the path at an eighth of the size fits a kernel of eight."""
    content = recipe_for(source, "deep_ranking", **changes)
    content["model"] |= {"kind": "deep_ranking", "size": 64}
    content["data"] |= {"relevance": relevance}
    content["schedule"] |= {"steps": 4, "quadlets": 6}
    return content


@pytest.mark.thorough
@pytest.mark.parametrize("relevance", ["labels", "classical:color"])
def test_recipe_trains_all_three_paths(tmp_path: Path, relevance: str) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    report = train(recipe(pictures, relevance=relevance), output=tmp_path / "model")
    assert report.steps == 4
    assert report.terms["deep_ranking"] > 0
    trained = load_model(tmp_path / "model")
    assert trained.config.kind == "deep_ranking"
    before = train(
        {**recipe(pictures, relevance=relevance), "name": "start", "validation": {"every": 0}}
        | {"schedule": {**recipe(pictures)["schedule"], "steps": 1, "learning_rate": 1e-12}},
        output=tmp_path / "start",
    )
    start = load_model(before.output)
    moved = {
        name.split(".")[0] if not name.startswith("shallow") else name[:9]
        for (name, weight), old in zip(trained.named_parameters(), start.parameters(), strict=True)
        if float((weight - old).detach().abs().max()) > 1e-5
    }
    assert {"backbone", "shallow.0", "shallow.1", "linear"} <= moved


def test_relevance_is_only_accepted_for_deep_ranking(tmp_path: Path) -> None:
    content = recipe_for(tmp_path)
    content["data"] |= {"relevance": "classical:color"}
    with pytest.raises(InvalidArgumentError, match=r"data\.relevance is for the objective 'deep_ranking'"):
        load_recipe(content)
    content = recipe(tmp_path)
    for name, value in (("buffer", 1), ("relevance_margin", -1), ("in_class", 2)):
        with pytest.raises(InvalidArgumentError, match=f"schedule.{name} must be"):
            load_recipe({**content, "schedule": {**content["schedule"], name: value}})
