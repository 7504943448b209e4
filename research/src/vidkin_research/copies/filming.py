"""Simulate filming a screen with a camera: perspective, noise, and under- or overexposure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin.media.layouts import Size, homographies
from vidkin.media.picture_edits import Image
from vidkin_research.copies.layouts import WHOLE, Box
from vidkin_research.copies.transforms import EditSetting

# Distance from each screen corner to the frame corner, as a fraction of the frame's width and height.
_NEAREST, _FARTHEST = 0.02, 0.11


# Standard deviation of the camera noise, in gray levels (0 to 255).
_NOISE = 9.0


# The noise is shifted by up to this many pixels from frame to frame.
_SHIFTS = 64


def film_screen(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Show the video on a screen in a dark room, in perspective, with noise and a changed exposure."""
    exposure = np.random.default_rng([setting.seed, 5])
    is_dark = exposure.random() < 0.5
    gain = exposure.uniform(0.65, 0.8) if is_dark else exposure.uniform(1.15, 1.35)
    gamma = exposure.uniform(0.85, 1.2)
    curve = np.rint(255 * np.clip(gain * (np.arange(256) / 255) ** gamma, 0, 1)).astype(np.int16)
    random = np.random.default_rng([setting.seed, 4])
    coefficients: tuple[float, ...] = ()
    grain = np.empty((0, 0, 3), dtype=np.int16)
    for image in frames:
        height, width = image.shape[:2]
        if not coefficients:
            coefficients = _perspective(screen_corners(setting), (width, height))
            noise = random.standard_normal((height + _SHIFTS, width + _SHIFTS, 3), dtype=np.float32)
            grain = np.rint(_NOISE * noise).astype(np.int16)
        picture = PILImage.fromarray(image).transform(
            (width, height), PILImage.Transform.PERSPECTIVE, coefficients,
            resample=PILImage.Resampling.BILINEAR, fillcolor=(22, 20, 24),
        )  # fmt: skip
        # Generating noise for every frame would take most of the time; shifted noise looks new.
        y, x = (int(value) for value in random.integers(_SHIFTS, size=2))
        noisy = curve[np.asarray(picture)] + grain[y : y + height, x : x + width]
        yield np.clip(noisy, 0, 255).astype(np.uint8)


def screen_boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
    """Return the full source box, and the smallest upright box around the screen."""
    corners = screen_corners(setting)
    left, top = corners.min(axis=0)
    right, bottom = corners.max(axis=0)
    return WHOLE, (float(left), float(top), float(right), float(bottom))


def screen_corners(setting: EditSetting) -> NDArray[np.float64]:
    """[4, 2] corners of the filmed screen, clockwise from the upper left, as fractions of the frame size."""
    inside = np.random.default_rng([setting.seed, 3]).uniform(_NEAREST, _FARTHEST, (4, 2))
    edges = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return np.where(edges == 0, inside, 1 - inside)


def _perspective(corners: NDArray[np.float64], size: Size) -> tuple[float, ...]:
    """Return Pillow's eight perspective coefficients, which map positions in the copy to positions in the source."""
    width, height = size
    origins = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
    matrix = homographies((corners * size)[None], origins[None])
    return tuple(float(value) for value in matrix.ravel()[:8])
