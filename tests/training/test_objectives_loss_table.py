"""Losses by name, from the package and from entry points of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support.training import recipe_for, write_pictures
from vidkin.errors import InvalidArgumentError
from vidkin.training import (
    DrawnItems,
    LossEntry,
    available_objectives,
    find_loss,
    load_recipe,
    settle_parameters,
    train,
)


class SpreadLoss(nn.Module):
    """A loss of another package that pulls positives together and makes all other pairs orthogonal."""

    def __init__(self, power: float = 2.0) -> None:
        super().__init__()
        if power < 1:
            raise InvalidArgumentError(f"power must be at least 1, got {power}")
        self.power = power

    def forward(self, q: Tensor, p: Tensor, i: Tensor, n: Tensor) -> Tensor:
        near = 1 - (q * p).sum(dim=1)
        far = (q * n).sum(dim=1).abs()
        return (near**self.power + far**self.power).mean()


class OwnPassLoss(nn.Module):
    """An objective of another package that calls the model itself and has no parameters."""

    def forward(self, model: Any, items: DrawnItems) -> dict[str, Tensor]:
        vectors = items.embeddings(model)
        return {"loss": -torch.pdist(vectors).mean(), "largest": vectors.detach().abs().max()}


SPREAD = LossEntry("quadlets", "members", SpreadLoss)
OWN_PASS = LossEntry("uniform", "model", OwnPassLoss)
SCALED = LossEntry("uniform", "model", lambda scale: OwnPassLoss())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the metadata of another package with two objectives."""
    points = EntryPoints(
        EntryPoint(name, f"{__name__}:{value}", "vidkin.objectives")
        for name, value in (("spread", "SPREAD"), ("own_pass", "OWN_PASS"), ("scaled", "SCALED"))
    )
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points if group == "vidkin.objectives" else ())


@pytest.mark.usefixtures("installed")
class TestEntryPoints:
    def test_are_available_by_name(self) -> None:
        assert {"spread", "own_pass", "quadlet"} <= set(available_objectives())
        assert find_loss("spread") is SPREAD
        recipe = load_recipe({"data": {"source": "a"}, "objective": {"name": "spread"}})
        assert recipe.objectives[0].parameters == {"power": 2.0}

    def test_their_parameters_are_checked(self) -> None:
        with pytest.raises(InvalidArgumentError, match="objective 'spread' has no parameter tau; choose from power"):
            settle_parameters("spread", {"tau": 1})
        with pytest.raises(InvalidArgumentError, match="objective 'spread': power must be at least 1, got 0"):
            settle_parameters("spread", {"power": 0})
        with pytest.raises(InvalidArgumentError, match="objective 'scaled' requires the parameter scale"):
            settle_parameters("scaled", {})
        assert settle_parameters("scaled", {"scale": 2}) == {"scale": 2}

    def test_can_be_used_in_recipes(self, tmp_path: Path) -> None:
        recipe = recipe_for(write_pictures(tmp_path / "pictures"), schedule={"steps": 2})
        recipe["objective"] = [{"name": "spread", "power": 1.0}, {"name": "own_pass", "weight": 0.1}]
        report = train(recipe, output=tmp_path / "run")
        assert {"spread", "own_pass", "largest", "distance", "loss"} <= set(report.terms)
        assert report.terms["loss"] == pytest.approx(report.terms["spread"] + 0.1 * report.terms["own_pass"], rel=1e-5)


def test_error_for_an_unknown_name_lists_all_names() -> None:
    with pytest.raises(InvalidArgumentError, match="'spread' is not an objective; choose from all_quadlets, angular"):
        find_loss("spread")


def test_parameters_implied_by_a_name_cannot_be_set() -> None:
    assert settle_parameters("radial_detached", {}).keys() == settle_parameters("radial", {}).keys()
    assert "detach_radius" not in settle_parameters("radial", {})
    assert settle_parameters("angular", {"alpha": [30.0, 40.0, 50.0]})["alpha"] == (30.0, 40.0, 50.0)
