"""Training DeepSBD with two processes started by `torchrun` gives the same result as with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from research.tests.learned.test_processes import MEMBER, TOLERANCE
from research.tests.learned.test_train import annotations

from tests.support.processes import difference, finish, start_processes
from vidkin.shots import VideoAnnotation, write_shot_annotations
from vidkin_research.detectors.deep_sbd_train import train_deep_sbd
from vidkin_research.learned.recipes import load_shot_recipe

__all__ = ["annotations"]

# A batch of 5 items, which cannot be split evenly between two processes.
RECIPE: dict[str, Any] = {
    "segments": {"steps": 3, "batch": 5, "learning_rate": 1e-4},
    "model": {"width": 0.05, "size": 16, "dropout": 0.0},
}


@pytest.mark.process
def test_two_processes_train_the_same_network_as_one(annotations: list[VideoAnnotation], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    labels = str(tmp_path / "labels.json")
    write_shot_annotations(labels, annotations)
    (tmp_path / "jobs.json").write_text(json.dumps([[labels, RECIPE, str(tmp_path / "two")]]), encoding="utf-8")
    started = start_processes(MEMBER, str(tmp_path / "jobs.json"))
    train_deep_sbd(labels, load_shot_recipe(RECIPE), output=tmp_path / "one")
    finish(started)
    assert difference(tmp_path / "one", tmp_path / "two") < TOLERANCE
    one, two = ({path.name for path in (tmp_path / place).iterdir()} for place in ("one", "two"))
    assert one == two
