"""Training on real turntable videos with a real backbone: one video per variety, cached features, a better ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vidkin.models import build_model
from vidkin.training import TrainingProgress, evaluate, load_recipe, open_data, train

pytestmark = [pytest.mark.data, pytest.mark.slow]


def recipe_for_fruit(shared_data: Path) -> dict[str, Any]:
    return {
        "name": "fruit",
        "data": {
            "source": str(shared_data / "labelled" / "fruit"),
            "reader": "fruit",
            "options": {"validation": 0.25},
            "excerpts": 2,
            "threads": 1,
        },
        "model": {
            "kind": "clip",
            "backbone": "timm:mobilenetv2_100?pad_type=same",
            "weights": str(shared_data / "weights" / "mobilenetv2_100.same.safetensors"),
            "trainable": "head",
            "hidden": 64,
            "lstm": 64,
            "frames": 5,
            "size": 96,
        },
        "objective": [{"name": "radial_detached"}],
        "schedule": {"steps": 150, "quadlets": 32, "device": "cpu"},
        "validation": {"every": 50, "measure": "map"},
    }


def test_frozen_network_learns_to_rank_from_one_video_per_variety(shared_data: Path, tmp_path: Path) -> None:
    recipe = load_recipe(recipe_for_fruit(shared_data))
    told: list[TrainingProgress] = []
    report = train(recipe, output=tmp_path / "model", on_progress=told.append)
    assert report.broken == ()
    assert not report.collapsed
    # 67 training videos, two excerpts each, and the last quarter of each for validation.
    assert {progress.total for progress in told if progress.phase == "reading"} == {3 * 67}
    assert report.best_step in (50, 100, 150)
    labelled, made_here = open_data(recipe)
    assert not made_here
    trained = evaluate(tmp_path / "model", labelled)
    assert (trained.queries, trained.gallery) == (95, 67)
    start = build_model(recipe.config(), weights=recipe.weights, seed=0).eval()
    untrained = evaluate(start, labelled, cache=tmp_path / "model" / "features")
    # Nothing of the test axes was seen in training.
    assert trained.qp > untrained.qp + 0.1
    assert trained.tp > untrained.tp
    assert trained.map > untrained.map
    # Excerpts, validation, queries, gallery: evaluating the untrained head cached all features.
    assert len(list((tmp_path / "model" / "features").iterdir())) == 4
