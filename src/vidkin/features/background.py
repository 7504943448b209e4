"""Background photographs: what unrelated frames look like to an extractor."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from vidkin.errors import MissingPartError
from vidkin.media import Frames

PHOTOGRAPHS: Mapping[str, str] = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "camera": "camera.png",
    "chelsea": "chelsea.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "hubble": "hubble_deep_field.jpg",
    "ihc": "ihc.png",
    "moon": "moon.png",
    "motorcycle": "motorcycle_left.png",
    "page": "page.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
    "text": "text.png",
}
"""Photographs, and two scanned texts, that come with scikit-image, and their files in its wheel."""

_CROPS = 6
_HEIGHT, _WIDTH = 240, 320


@cache
def open_photograph(name: str) -> Image.Image:
    """One of `PHOTOGRAPHS` in RGB, not to be changed, read as a file: scikit-image's own functions download what its
    wheel lacks.

    Raises:
        MissingPartError: scikit-image is not installed, or its wheel lacks the file.
    """
    spec = importlib.util.find_spec("skimage")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPartError("the sample photographs come with scikit-image: pip install scikit-image")
    file = PHOTOGRAPHS[name]
    path = Path(spec.submodule_search_locations[0]) / "data" / file
    if not path.is_file():
        raise MissingPartError(
            f"this scikit-image does not ship {file}; another version does: pip install 'scikit-image>=0.25'"
        )
    with Image.open(path) as image:
        return image.convert("RGB")


@cache
def background_frames() -> Frames:
    """96 cut-outs, [96, 240, 320, 3], of 16 photographs; the same on every machine.

    Each photograph makes up one sixteenth of the set, so the .9 quantile is not affected if a video shows one of them.
    """
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
            pictures.append(np.asarray(source.resize((_WIDTH, _HEIGHT), Image.Resampling.BILINEAR, box=box)))
    return Frames(np.stack(pictures), np.arange(len(pictures), dtype=np.float64))
