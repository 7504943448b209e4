"""Training detectors with two processes started by `torchrun` gives the same result as with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from research.tests.learned.test_train import RECIPE, annotations

from tests.support.processes import difference, finish, start_processes
from vidkin.shots import VideoAnnotation, write_shot_annotations
from vidkin_research.learned.detector import ShotRules
from vidkin_research.learned.recipes import load_shot_recipe
from vidkin_research.learned.train import train_shots

pytestmark = pytest.mark.process

__all__ = ["annotations"]

MEMBER = Path(__file__).with_name("member.py")

# Batches of 16 and 12 items. The small network has batch norms.
RECIPES: dict[str, dict[str, Any]] = {
    "head": RECIPE,
    "images": {"shots": RECIPE["shots"], "model": {**RECIPE["model"], "trainable": "all"}},
}

# The different order of sums, which AdamW amplifies where a gradient is nearly 0; the largest steps are 0.012.
TOLERANCE = 1e-4


def test_two_processes_train_the_same_detectors_as_one(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    labels = str(tmp_path / "labels.json")
    write_shot_annotations(labels, annotations)
    jobs = [[labels, recipe, str(tmp_path / "two" / name)] for name, recipe in RECIPES.items()]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    started = start_processes(MEMBER, str(tmp_path / "jobs.json"))
    for name, recipe in RECIPES.items():
        plan = load_shot_recipe(recipe)
        train_shots(labels, plan, output=tmp_path / "one" / name)
    finish(started)
    differences = {name: difference(tmp_path / "one" / name, tmp_path / "two" / name) for name in RECIPES}
    assert max(differences.values()) < TOLERANCE, differences
    for name in RECIPES:
        one, two = ({path.name for path in (tmp_path / place / name).iterdir()} for place in ("one", "two"))
        assert one == two
    rules = [ShotRules.load(tmp_path / place / "head") for place in ("one", "two")]
    assert rules[0].cut.weights == pytest.approx(rules[1].cut.weights, abs=1e-3)
    assert rules[0].fitted_on == rules[1].fitted_on
