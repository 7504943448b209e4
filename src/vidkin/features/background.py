"""Background photographs, which represent unrelated frames when scores are calibrated.

They ship with the package as JPEG files of quality 92 (88 for the two that were downscaled), 1.3 MB in total. Compared
with the originals, the baselines of the classical extractor change by 0.0005 on average. Sources and licenses are in
``data/background/LICENSES.txt``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from vidkin.media import Frames

if TYPE_CHECKING:
    from PIL import Image

# The order matters, because one random generator crops the photographs one after the other.
PHOTOGRAPHS: tuple[str, ...] = (
    "astronaut", "brick", "camera", "chelsea", "coffee", "coins", "grass", "gravel", "hubble", "ihc", "moon",
    "motorcycle", "page", "retina", "rocket", "text",
)  # fmt: skip
"""Names of the photographs, including two scanned texts."""

_CROPS = 6
_HEIGHT, _WIDTH = 240, 320


@cache
def open_photograph(name: str) -> Image.Image:
    """Open one of `PHOTOGRAPHS` in RGB; the image is cached and must not be modified."""
    from PIL import Image

    with (
        (files("vidkin.features") / "data" / "background" / f"{name}.jpg").open("rb") as file,
        Image.open(file) as image,
    ):
        return image.convert("RGB")


@cache
def background_frames() -> Frames:
    """Return 96 crops [96, 240, 320, 3] of 16 photographs, the same on every machine.

    Each photograph contributes one sixteenth of the crops, so baselines hardly change if a video shows one of them.
    """
    from PIL.Image import Resampling

    generator = np.random.default_rng(20)
    images = []
    for name in PHOTOGRAPHS:
        source = open_photograph(name)
        for _ in range(_CROPS):
            height = min(source.height, source.width * _HEIGHT / _WIDTH) * generator.uniform(0.4, 0.95)
            width = height * _WIDTH / _HEIGHT
            left = generator.uniform(0, source.width - width)
            top = generator.uniform(0, source.height - height)
            box = (left, top, left + width, top + height)
            images.append(np.asarray(source.resize((_WIDTH, _HEIGHT), Resampling.BILINEAR, box=box)))
    return Frames(np.stack(images), np.arange(len(images), dtype=np.float64))
