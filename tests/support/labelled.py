"""Labeled files generated for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from tests.support.videos import encode


def picture(path: Path, color: tuple[int, int, int] = (200, 60, 20), size: tuple[int, int] = (16, 12)) -> Path:
    """Write an image of one color with ``size`` (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)
    return path


def counting_clip(
    path: Path, count: int = 20, *, rate: int = 10, width: int = 64, height: int = 48, step: int = 10
) -> Path:
    """Write a gray video whose frame k has the level 20 + step * k, so that tests can identify frames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frames = (np.full((height, width, 3), 20 + step * k, np.uint8) for k in range(count))
    return encode(path, frames, rate=rate, options={"crf": "4"})


def shown(images: np.ndarray, *, step: int = 10) -> list[int]:
    """Identify the frames of a counting clip in images [T, S, S, 3] by their center pixel."""
    middle = images.shape[1] // 2
    values = images[:, middle, middle, 1].astype(float)
    return [round((value - 20) / step) for value in values]


def two_by_two(folder: Path, *, each: int, videos: bool = False, seed: int = 0) -> Path:
    """Write ``categoryC/kindK/N.png`` (or ``.mp4``): two kinds of a noisy color in each of two categories."""
    random = np.random.default_rng(seed)
    for category in range(2):
        for kind in range(2):
            place = folder / f"category{category}" / f"kind{kind}"
            place.mkdir(parents=True)
            base = np.array([200 * category, 200 * kind, 100])
            for number in range(each):
                shape = (3 if videos else 1, 40, 40, 3)
                frames = (base + random.integers(0, 50, shape)).astype(np.uint8)
                if videos:
                    encode(place / f"{number}.mp4", frames, rate=3)
                else:
                    Image.fromarray(frames[0]).save(place / f"{number}.png")
    return folder
