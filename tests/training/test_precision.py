"""Automatic mixed precision uses bfloat16 for the network but not for the loss, and runs resume exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.training import recipe_for, write_pictures
from tests.training.test_objectives import batch_for, features, make_recipe, objective_of
from vidkin.training import TrainingProgress, available_objectives, find_loss, train

ON_EMBEDDINGS = [
    name for name in available_objectives() if name != "classification" and find_loss(name).draw != "clips"
]


@pytest.mark.parametrize("name", ON_EMBEDDINGS)
def test_losses_are_computed_in_full_precision(name: str) -> None:
    objective, model = objective_of(make_recipe(name))
    rows = features()
    batch, _ = batch_for(objective, rows)
    objective.eval()  # class centers would move between the two calls
    plain = objective(model, batch)["loss"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = objective(model, batch)["loss"]
    assert mixed.dtype == torch.float32
    assert torch.equal(plain, mixed)


@pytest.mark.thorough
def test_run_in_mixed_precision_learns_and_resumes_exactly(
    tmp_path: Path,
) -> None:
    source = write_pictures(tmp_path / "pictures", each=4)

    class StopError(Exception):
        pass

    def stop(told: TrainingProgress) -> None:
        if told.phase == "training" and told.done == 6:
            raise StopError

    recipe = recipe_for(source, schedule={"precision": "bfloat16"})
    recipe["data"] |= {"test": 0.0, "validation": 0.0}
    report = train(recipe, output=tmp_path / "mixed")
    assert report.steps == 12
    with pytest.raises(StopError):
        train(recipe, output=tmp_path / "cut", on_progress=stop)
    assert train(recipe, output=tmp_path / "cut").resumed_from == 4
    recipe["schedule"]["precision"] = "float32"
    full = train(recipe, output=tmp_path / "full")
    assert full.terms["loss"] == pytest.approx(report.terms["loss"], rel=0.2)
    mixed, cut, plain = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("mixed", "cut", "full"))
    assert mixed == cut
    assert mixed != plain
