"""Fixtures for tests of training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.videos import encode, pan

NAMES = ("coffee", "rocket", "chelsea", "astronaut", "camera", "page")


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six videos of 3.2 s (16 frames at 5 fps), a file that is not a video, and a video of one frame."""
    folder = tmp_path_factory.mktemp("footage")
    for name in NAMES:
        encode(folder / f"{name}.mp4", pan(name, 32, width=96, height=64))
    (folder / "broken.mp4").write_bytes(b"no video")
    encode(folder / "still.mp4", pan("text", 1, width=96, height=64))
    return folder


@pytest.fixture(scope="session")
def clip_recipe(footage: Path) -> Callable[..., dict[str, Any]]:
    """Factory of recipes for these videos, with changes to their tables."""

    def make(**changes: dict[str, Any]) -> dict[str, Any]:
        content: dict[str, Any] = {
            "name": "clips",
            "data": {
                "kind": "unlabeled",
                "source": str(footage),
                "threads": 1,
                "options": {"rate": 5.0, "window": 8, "length": 8, "side": 32, "views": 2},
            },
            "model": {"kind": "comparator", "weighting": "attention", "symmetric": True},
            "objective": [
                {"name": "info_nce"},
                {"name": "self_hard_negative", "weight": 3.0},
                {"name": "similarity_regularizer"},
                {"name": "quad_linear_ap", "weight": 4.0},
                {"name": "frame_quad_linear_ap", "weight": 6.0},
            ],
            "schedule": {"steps": 6, "pairs": 4, "checkpoint_every": 2, "log_every": 1, "device": "cpu"},
        }
        for table, values in changes.items():
            content[table] = {**content.get(table, {}), **values}
        return content

    return make
