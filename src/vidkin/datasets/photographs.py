"""Photographs from scikit-image, and simulated camera flights over them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import background

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
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}
"""Names of the photographs, and their files in the scikit-image wheel."""

# Speed of a flight: about eleven seconds between turning points.
_SECONDS_PER_RADIAN = 3.5


@check_arguments
def photograph(name: str) -> NDArray[np.uint8]:
    """Return a photograph [H, W, 3] in RGB; gray photographs have three equal channels.

    This is the original if scikit-image is installed (extra ``train``), and otherwise the compressed version from the
    bundled background photographs, which looks the same.

    Raises:
        InvalidArgumentError: ``name`` is not in :data:`PHOTOGRAPHS`.
        MissingPartError: The scikit-image wheel lacks the file.
    """
    if name not in PHOTOGRAPHS:
        raise InvalidArgumentError(f"name must be one of {', '.join(sorted(PHOTOGRAPHS))}, got {name!r}")
    return np.array(_open_original(name) or background.open_photograph(name))


@cache
def _open_original(name: str) -> Image.Image | None:
    """Open a photograph from scikit-image in RGB; None if scikit-image is not installed.

    The file is read directly, because scikit-image's functions would download photographs that its wheel lacks.
    """
    spec = importlib.util.find_spec("skimage")
    if spec is None or not spec.submodule_search_locations:
        return None
    file = PHOTOGRAPHS[name]
    path = Path(spec.submodule_search_locations[0]) / "data" / file
    if not path.is_file():
        raise MissingPartError(
            f"this scikit-image does not ship {file}; another version does: pip install 'scikit-image>=0.25'"
        )
    with Image.open(path) as image:
        return image.convert("RGB")


@check_arguments
def camera_flight(
    name: str,
    *,
    seconds: float = 10.0,
    rate: int = 15,
    width: int = 320,
    height: int = 240,
    seed: int = 0,
) -> Iterator[NDArray[np.uint8]]:
    """Yield frames [height, width, 3] of a camera that pans and zooms over a photograph.

    The window's center and size follow sine waves with different periods, so that no two seconds of a clip
    show the same area. The same arguments give the same frames; another seed gives another flight.

    Args:
        name: Name of a photograph in :data:`PHOTOGRAPHS`.
        seconds: Length of the clip, which has ``round(seconds * rate)`` frames, but at least one.
        rate: Frames per second.
        width: Width of the frames in pixels.
        height: Height of the frames in pixels.
        seed: Seed of the flight.
    """
    for argument, value in (("seconds", seconds), ("rate", rate), ("width", width), ("height", height)):
        if not value > 0:
            raise InvalidArgumentError(f"{argument} must be above 0, got {value}")
    source = Image.fromarray(photograph(name))
    generator = np.random.default_rng([seed, *name.encode()])
    phases = generator.uniform(0.0, 2 * np.pi, 3)
    turns = generator.uniform(0.7, 1.4, 3) / _SECONDS_PER_RADIAN
    return _iter_flight_frames(source, round(seconds * rate) or 1, rate, (width, height), phases, turns)


def _iter_flight_frames(
    source: Image.Image,
    count: int,
    rate: int,
    size: tuple[int, int],
    phases: NDArray[np.float64],
    turns: NDArray[np.float64],
) -> Iterator[NDArray[np.uint8]]:
    width, height = size
    largest = min(source.height, source.width * height / width)
    for index in range(count):
        zoom, x, y = np.sin(turns * (index / rate) + phases)
        window_height = largest * (0.55 + 0.2 * zoom)
        window_width = window_height * width / height
        left = (source.width - window_width) * (0.5 + 0.5 * x)
        top = (source.height - window_height) * (0.5 + 0.5 * y)
        box = (left, top, left + window_width, top + window_height)
        yield np.asarray(source.resize(size, Image.Resampling.BILINEAR, box=box))
