"""A season of short, encoded episodes whose shared segments are known to the frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image as PILImage
from PIL import ImageDraw

from tests.support.videos import Image, encode, pan

RATE = 10
SIZE = {"width": 192, "height": 108}
# Frames: 6.5 s with cuts at 2.5 and 5 s.
OPENING = (("coffee", 0, 25), ("rocket", 0, 25), ("coffee", 3, 15))


def shots(*parts: tuple[str, int, int]) -> list[Image]:
    """Concatenate pans over photographs, given as (name, seed, frames)."""
    return [image for name, seed, count in parts for image in pan(name, count, seed=seed, **SIZE)]


def still(count: int) -> list[Image]:
    """Frames of a static title card."""
    return shots(("chelsea", 5, 1)) * count


def black(count: int) -> list[Image]:
    """Black frames."""
    return [np.full((SIZE["height"], SIZE["width"], 3), 16, np.uint8)] * count


def titled(images: Sequence[Image], text: str) -> list[Image]:
    """Add a title to the frames."""
    made = []
    for image in images:
        picture = PILImage.fromarray(image)
        ImageDraw.Draw(picture).text((20, 80), text, fill="white", stroke_width=1, stroke_fill="black")
        made.append(np.asarray(picture))
    return made


def write_season(folder: Path) -> dict[str, tuple[float, float]]:
    """Write two episodes with a common opening, a static card and black; return the times of the opening by name.

    The second episode has a title over the opening and a fifth of the bit rate.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first = [*black(5), *shots(("astronaut", 0, 40)), *shots(*OPENING), *shots(("chelsea", 0, 45)), *still(30)]
    opening = titled(shots(*OPENING), "Episode 2")
    second = [*shots(("brick", 1, 28)), *opening, *still(30), *black(12), *shots(("astronaut", 9, 50))]
    encode(folder / "e1.mp4", first, rate=RATE, options={"crf": "20"})
    encode(folder / "e2.mp4", second, rate=RATE, options={"crf": "32"})
    return {"e1.mp4": (4.5, 11.0), "e2.mp4": (2.8, 9.3)}
