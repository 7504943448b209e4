"""A working folder with images and vectors of a synthetic teacher."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.frame_encoder.pictures import Picture
from vidkin_research.frame_encoder.teacher import teach


def means_of_cells(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """A synthetic teacher with 512 dimensions: the mean gray values of 16 by 32 cells, as unit vectors."""
    count, side = images.shape[:2]
    cells = images.mean(axis=3).reshape(count, 16, side // 16, 32, side // 32).mean(axis=(2, 4))
    flat = cells.reshape(count, -1).astype(np.float32) - 128
    vectors: NDArray[np.float32] = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return vectors


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six synthetic pages, and three scenes of three moments each."""
    folder = tmp_path_factory.mktemp("work")
    rows = []
    (folder / "pictures").mkdir()
    (folder / "lists").mkdir()
    for number in range(6):
        rows.append(_store(folder, f"page-{number}", draw_page(np.random.default_rng(number)), f"pages/{number}", 0.0))
    for scene in range(3):
        page = draw_page(np.random.default_rng(100 + scene))
        for moment in range(3):
            moved = page.copy()
            moved[20 + 60 * moment : 70 + 60 * moment, 30:90] = (255, 0, 60 * scene)
            rows.append(_store(folder, f"scene-{scene}-{moment}", moved, f"videos/{scene}", 2.0 * moment))
    (folder / "lists" / "made.json").write_text(json.dumps([asdict(row) for row in rows]))
    teach(folder, means_of_cells, side=64)
    return folder


def _store(folder: Path, name: str, image: NDArray[np.uint8], group: str, time: float) -> Picture:
    file = f"pictures/{name}.jpg"
    PILImage.fromarray(image).save(folder / file, quality=92)
    return Picture(file, "made", group, time)
