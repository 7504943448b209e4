"""Background photographs: what unrelated frames look like to an extractor.

They ship with the package, as JPEG files of quality 92 (88 for the two that were reduced), 1.3 MB in all: against the
originals the baselines of the classical extractor change by .0005 on average. What they were made from and under which
terms they may be passed on stands beside them in ``data/background/LICENSES.txt``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from vidkin.media import Frames

if TYPE_CHECKING:
    from PIL import Image

# Their order is part of the background: each is cut up by the next numbers of one generator.
PHOTOGRAPHS: tuple[str, ...] = (
    "astronaut", "brick", "camera", "chelsea", "coffee", "coins", "grass", "gravel", "hubble", "ihc", "moon",
    "motorcycle", "page", "retina", "rocket", "text",
)  # fmt: skip
"""Photographs, and two scanned texts."""

_CROPS = 6
_HEIGHT, _WIDTH = 240, 320


@cache
def open_photograph(name: str) -> Image.Image:
    """One of `PHOTOGRAPHS` in RGB, not to be changed."""
    from PIL import Image

    with (
        (files("vidkin.features") / "data" / "background" / f"{name}.jpg").open("rb") as file,
        Image.open(file) as image,
    ):
        return image.convert("RGB")


@cache
def background_frames() -> Frames:
    """96 cut-outs, [96, 240, 320, 3], of 16 photographs; the same on every machine.

    Each photograph makes up one sixteenth of the set, so what unrelated frames reach hardly changes if a video
    shows one of them.
    """
    from PIL.Image import Resampling

    generator = np.random.default_rng(20)
    pictures = []
    for name in PHOTOGRAPHS:
        source = open_photograph(name)
        for _ in range(_CROPS):
            height = min(source.height, source.width * _HEIGHT / _WIDTH) * generator.uniform(0.4, 0.95)
            width = height * _WIDTH / _HEIGHT
            left = generator.uniform(0, source.width - width)
            top = generator.uniform(0, source.height - height)
            box = (left, top, left + width, top + height)
            pictures.append(np.asarray(source.resize((_WIDTH, _HEIGHT), Resampling.BILINEAR, box=box)))
    return Frames(np.stack(pictures), np.arange(len(pictures), dtype=np.float64))
