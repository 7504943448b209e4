"""Pictures that tests of features describe."""

from __future__ import annotations

import numpy as np

from vidkin.features import background_frames
from vidkin_research.features import Image


def photographs(count: int) -> list[Image]:
    """Cut-outs [240, 320, 3] of photographs; six at a time are of the same one."""
    return list(background_frames().images[:count])


def plain(color: tuple[int, int, int] = (200, 60, 20), *, height: int = 40, width: int = 60) -> Image:
    """A picture of one color."""
    return np.full((height, width, 3), color, dtype=np.uint8)


def stripes(period: int, *, side: int = 128, vertical: bool = True) -> Image:
    """Black and white stripes; each is half a ``period`` wide."""
    row = (np.arange(side) // (period // 2) % 2 * 255).astype(np.uint8)
    gray = np.tile(row, (side, 1))
    return np.repeat((gray if vertical else gray.T)[..., None], 3, axis=2)
