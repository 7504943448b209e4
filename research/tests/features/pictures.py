"""Images for feature tests."""

from __future__ import annotations

import numpy as np

from vidkin.features import background_frames
from vidkin_research.features import Image


def photographs(count: int) -> list[Image]:
    """Crops [240, 320, 3] of photographs; six consecutive ones are of the same photograph."""
    return list(background_frames().images[:count])


def plain(color: tuple[int, int, int] = (200, 60, 20), *, height: int = 40, width: int = 60) -> Image:
    """Return an image of one color."""
    return np.full((height, width, 3), color, dtype=np.uint8)


def stripes(period: int, *, side: int = 128, vertical: bool = True) -> Image:
    """Return black and white stripes with this ``period``."""
    row = (np.arange(side) // (period // 2) % 2 * 255).astype(np.uint8)
    gray = np.tile(row, (side, 1))
    return np.repeat((gray if vertical else gray.T)[..., None], 3, axis=2)
