"""Edits that hide much of the source: rotation, overlays, blending, halves, oblique views.

Like those in `transforms`, these functions map one iterator of frames to another; all randomness comes from the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageEnhance

from vidkin.media.layouts import Size, homographies
from vidkin.media.picture_edits import Image, resize, round_to_even
from vidkin_research.copies.layouts import WHOLE, Box, Layout
from vidkin_research.copies.transforms import EditSetting

# Distance of the corners of an oblique view from the frame corners, as a fraction of the frame's width and height: far
# for two adjacent corners, near for the other two.
_FAR_CORNER, _NEAR_CORNER = (0.2, 0.32), (0.0, 0.06)
# Fraction of the frame by which a shaking camera moves the corners from frame to frame.
_SHAKE = 0.03
# Fraction of each side shifted out of the frame, and fractions of the area hidden by a sticker and a cover.
_OUTSIDE, _STICKER, _COVER = 1 / 3, 0.45, 0.6
# Standard deviation of night camera noise in gray levels (0 to 255), and the fraction of light that remains.
_NIGHT_NOISE, _NIGHT_LIGHT = 4.0, 0.18
_HUE = "#f4c20d"


def rotate_quarters(image: Image, *, quarters: int) -> Image:
    """Rotate clockwise by this number of quarter turns."""
    return np.ascontiguousarray(np.rot90(image, -quarters))


def tilt(frames: Iterator[Image], setting: EditSetting, *, degrees: float) -> Iterator[Image]:
    """Rotate by an angle in a random direction within the frame, with black corners."""
    angle = degrees * (1 if setting.random().random() < 0.5 else -1)
    for image in frames:
        turned = PILImage.fromarray(image).rotate(angle, resample=PILImage.Resampling.BILINEAR)
        yield np.asarray(turned)


def shift_out(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Shift a third of each side out of the frame; black fills the L-shaped rest."""
    right, bottom = (bool(value) for value in setting.random().integers(2, size=2))
    width, height = round_to_even(size[0] * (1 - _OUTSIDE)), round_to_even(size[1] * (1 - _OUTSIDE))
    left, top = (size[0] - width if right else 0), (size[1] - height if bottom else 0)
    # The image is cut off on the side it moves to; black fills the opposite side.
    crop_left, crop_top = (0 if right else size[0] - width), (0 if bottom else size[1] - height)
    crop = (crop_left, crop_top, crop_left + width, crop_top + height)
    return Layout(size, crop, size, (left, top, left + width, top + height))


def black(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """Return a function that creates a black canvas for this layout."""
    width, height = layout.canvas
    return lambda image: np.zeros((height, width, 3), np.uint8)


def crop_half(size: Size, setting: EditSetting, passed: float, *, corner: bool) -> Layout:
    """Crop to half of each side, at the center or in a corner chosen by the seed, and scale up to the source size."""
    width, height = round_to_even(size[0] / 2), round_to_even(size[1] / 2)
    if corner:
        right, bottom = (bool(value) for value in setting.random().integers(2, size=2))
        left, top = (size[0] - width if right else 0), (size[1] - height if bottom else 0)
    else:
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return Layout(size, (left, top, left + width, top + height), size, (0, 0, *size))


def view_from_side(frames: Iterator[Image], setting: EditSetting, *, shaking: bool) -> Iterator[Image]:
    """Show the video in strong perspective on black; with ``shaking``, it moves slightly from frame to frame."""
    corners = side_corners(setting)
    random = np.random.default_rng([setting.seed, 7])
    for image in frames:
        height, width = image.shape[:2]
        moved = corners + (random.uniform(-_SHAKE, _SHAKE, 2) if shaking else 0.0)
        origins = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
        matrix = homographies((moved * (width, height))[None], origins[None])
        picture = PILImage.fromarray(image).transform(
            (width, height),
            PILImage.Transform.PERSPECTIVE,
            tuple(float(value) for value in matrix.ravel()[:8]),
            resample=PILImage.Resampling.BILINEAR,
        )
        yield np.asarray(picture)


def side_corners(setting: EditSetting) -> NDArray[np.float64]:
    """[4, 2] corners of an oblique view, clockwise from the upper left, as fractions of the frame size."""
    random = np.random.default_rng([setting.seed, 6])
    far = int(random.integers(4))
    inside = random.uniform(*_NEAR_CORNER, (4, 2))
    # The edge from corner `far` to the next one is distant, so it is shortened at both ends.
    along = far % 2
    for corner in (far, (far + 1) % 4):
        inside[corner, along] = random.uniform(*_FAR_CORNER)
    edges = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return np.where(edges == 0, inside, 1 - inside)


def side_boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
    """Return the full source box, and the smallest upright box around the oblique view."""
    corners = side_corners(setting)
    left, top = corners.min(axis=0)
    right, bottom = corners.max(axis=0)
    return WHOLE, (float(left), float(top), float(right), float(bottom))


def blend(frames: Iterator[Image], setting: EditSetting, *, share: float) -> Iterator[Image]:
    """Blend unrelated footage over the video with weight ``share``."""
    footage: Iterator[Image] | None = None
    for image in frames:
        if footage is None:
            footage = setting.footage(image.shape[1], image.shape[0])
        yield np.rint((1 - share) * image + share * next(footage)).astype(np.uint8)


def cover(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Cover 60 % of the frame with unrelated footage, in a corner or along one side."""
    random = setting.random()
    kind, right, bottom = int(random.integers(3)), bool(random.integers(2)), bool(random.integers(2))
    footage: Iterator[Image] | None = None
    for image in frames:
        height, width = image.shape[:2]
        shares = [(math.sqrt(_COVER),) * 2, (1.0, _COVER), (_COVER, 1.0)][kind]
        wide, tall = round(shares[0] * width), round(shares[1] * height)
        if footage is None:
            footage = setting.footage(wide, tall)
        left, top = (width - wide if right else 0), (height - tall if bottom else 0)
        result = image.copy()
        result[top : top + tall, left : left + wide] = next(footage)
        yield result


def add_sticker(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Cover 45 % of the frame with a single-color smiley near the center."""
    shift = setting.random().uniform(-0.08, 0.08, 2)
    half = math.sqrt(_STICKER / math.pi)
    overlay: PILImage.Image | None = None
    for image in frames:
        picture = PILImage.fromarray(image)
        if overlay is None:
            width, height = picture.size
            overlay = PILImage.new("RGBA", picture.size)
            pen = ImageDraw.Draw(overlay)

            def oval(
                x: float, y: float, across: float, down: float, color: str, *, pen: ImageDraw.ImageDraw = pen,
                sides: tuple[int, int] = (width, height),
            ) -> None:  # fmt: skip
                wide, tall = sides
                center = (0.5 + shift[0] + 2 * half * x) * wide, (0.5 + shift[1] + 2 * half * y) * tall
                radii = across * half * wide, down * half * tall
                pen.ellipse((center[0] - radii[0], center[1] - radii[1], center[0] + radii[0], center[1] + radii[1]),
                            fill=color)  # fmt: skip

            oval(0, 0, 1, 1, _HUE)
            oval(-0.18, -0.12, 0.12, 0.2, "#3b2a10")
            oval(0.18, -0.12, 0.12, 0.2, "#3b2a10")
            oval(0, 0.2, 0.5, 0.16, "#b3261e")
        picture.paste(overlay, mask=overlay)
        yield np.asarray(picture)


def distort_colors(image: Image) -> Image:
    """Halve the brightness, with 1.8 times the contrast and 2.5 times the saturation."""
    picture = ImageEnhance.Brightness(PILImage.fromarray(image)).enhance(0.5)
    picture = ImageEnhance.Contrast(picture).enhance(1.8)
    return np.asarray(ImageEnhance.Color(picture).enhance(2.5))


def film_at_night(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Simulate a camera trap at night: gray, a fifth of the light, half the sharpness, and noise."""
    random = setting.random()
    for image in frames:
        height, width = image.shape[:2]
        plain = np.asarray(PILImage.fromarray(image).convert("L").convert("RGB"))
        soft = resize(resize(plain, max(2, width // 2), max(2, height // 2)), width, height)
        noise = _NIGHT_NOISE * random.standard_normal((height, width, 1), dtype=np.float32)
        yield np.clip(_NIGHT_LIGHT * soft + 8 + noise, 0, 255).astype(np.uint8)
