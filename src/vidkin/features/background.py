"""Background photographs: what unrelated frames look like to an extractor."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import numpy as np

from vidkin.media import Frames

__all__ = ["background_frames"]

# Photographs from the scikit-image wheel, read as files because its own functions may use the network.
_PHOTOGRAPHS = (
    "astronaut.png",
    "brick.png",
    "camera.png",
    "chelsea.png",
    "coffee.png",
    "coins.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "moon.png",
    "motorcycle_left.png",
    "page.png",
    "retina.jpg",
    "rocket.jpg",
    "text.png",
)
_CROPS = 6
_HEIGHT, _WIDTH = 240, 320


@cache
def background_frames() -> Frames:
    """96 cut-outs, [96, 240, 320, 3], of 16 photographs; the same on every machine.

    Each photograph makes up one sixteenth of the set, so the .9 quantile is not affected if a video shows one of them.
    """
    from PIL import Image

    generator = np.random.default_rng(20)
    pictures = []
    for name in _PHOTOGRAPHS:
        with as_file(files("skimage") / "data" / name) as path, Image.open(path) as image:
            source = image.convert("RGB")
        for _ in range(_CROPS):
            height = min(source.height, source.width * _HEIGHT / _WIDTH) * generator.uniform(0.4, 0.95)
            width = height * _WIDTH / _HEIGHT
            left = generator.uniform(0, source.width - width)
            top = generator.uniform(0, source.height - height)
            box = (left, top, left + width, top + height)
            pictures.append(np.asarray(source.resize((_WIDTH, _HEIGHT), Image.Resampling.BILINEAR, box=box)))
    return Frames(np.stack(pictures), np.arange(len(pictures), dtype=np.float64))
