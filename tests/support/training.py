"""A labeled folder of small images, and recipes that train on it in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# Category -> subcategories with their colors; a category is a hue, its subcategories are shades of it.
SHADES: dict[str, dict[str, tuple[int, int, int]]] = {
    "blue": {"dark": (20, 30, 110), "light": (110, 140, 240)},
    "red": {"dark": (120, 20, 20), "light": (240, 110, 100)},
    "green": {"dark": (20, 90, 30), "light": (120, 230, 130)},
}


def write_pictures(folder: Path, *, each: int = 8, size: int = 24, seed: int = 0) -> Path:
    """Write ``category/subcategory/N.png``: noisy images of one shade with a brighter corner."""
    generator = np.random.default_rng(seed)
    for category, shades in SHADES.items():
        for name, color in shades.items():
            (folder / category / name).mkdir(parents=True)
            for number in range(each):
                values = np.array(color) + generator.normal(0, 25, (size, size, 3))
                values[: size // 3, : size // 3] += 40
                picture = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
                picture.save(folder / category / name / f"{number}.png")
    return folder


def recipe_for(source: Path, objective: str = "quadlet", **changes: dict[str, Any]) -> dict[str, Any]:
    """A recipe for the images of :func:`write_pictures`; ``changes`` are merged into its tables."""
    recipe: dict[str, Any] = {
        "name": "shades",
        "data": {
            "source": str(source),
            "options": {"kind": "image"},
            "split_by": "item",
            "test": 0.25,
            "validation": 0.25,
            "threads": 1,
        },
        "model": {
            "kind": "image",
            "backbone": "small",
            "trainable": "all",
            "width": 0.34,
            "hidden": 16,
            "size": 16,
        },
        "objective": [{"name": objective}],
        "schedule": {
            "steps": 12,
            "quadlets": 4,
            "head_factor": 1.0,
            "device": "cpu",
            "log_every": 1,
            "checkpoint_every": 4,
        },
        "validation": {},
    }
    for table, values in changes.items():
        recipe[table] = {**recipe[table], **values} if isinstance(values, dict) else values
    return recipe
