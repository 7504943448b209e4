"""Synthetic photographs with one level of labels, and a recipe for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

COLORS = {"blue": (30, 40, 220), "green": (40, 210, 30), "red": (220, 30, 40)}


def write_colors(root: Path) -> Path:
    """Write ``split/class/N.png``: three colors with noise, 8 images each for training and 4 for the test."""
    random = np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 4)):
        for label, color in COLORS.items():
            folder = root / split / label
            folder.mkdir(parents=True)
            for number in range(count):
                noise = random.integers(-25, 26, (24, 24, 3))
                image = np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)
                Image.fromarray(image).save(folder / f"{number}.png")
    return root


def color_recipe(source: Path, loss: str = "semi_hard", **changes: object) -> dict[str, object]:
    """A recipe that trains a small classifier with an embedding head on these images in a second."""
    schedule = {
        "steps": 12,
        "quadlets": 3,
        "optimizer": "sgd",
        "learning_rate": 0.02,
        "head_factor": 1.0,
        "decay": "linear",
        "device": "cpu",
        "checkpoint_every": 4,
        **changes,
    }
    second = {"name": loss, **({"weight": 0.003} if loss == "center" else {})}
    return {
        "name": "colors",
        "data": {"source": str(source), "reader": "classes"},
        "model": {"kind": "two_head", "backbone": "small", "width": 0.5, "size": 16, "embedding": 8},
        "objective": [{"name": "classification"}, second],
        "schedule": schedule,
    }
