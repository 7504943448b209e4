"""Edits that hide more of the source than the usual ones: rotation, overlays, blending, halves, oblique views.

Functions from one iterator of frames to another, like those of `transforms`; what is random comes from the seed.
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

# Corners of a picture seen from the side lie this far inside the frame, in shares of its sides: two next to each other
# far, the other two hardly.
_FAR_CORNER, _NEAR_CORNER = (0.2, 0.32), (0.0, 0.06)
# Share by which a shaking camera moves the picture from frame to frame.
_SHAKE = 0.03
# Share of each side by which a shifted picture lies outside, and of the area that a sticker and a cover hide.
_OUTSIDE, _STICKER, _COVER = 1 / 3, 0.45, 0.6
# Standard deviation of the noise of a camera at night, in levels of 256, and what is left of the light.
_NIGHT_NOISE, _NIGHT_LIGHT = 4.0, 0.18
_HUE = "#f4c20d"


def quarter_turned(image: Image, *, quarters: int) -> Image:
    """Turned clockwise by so many quarters of a circle."""
    return np.ascontiguousarray(np.rot90(image, -quarters))


def tilted(frames: Iterator[Image], setting: EditSetting, *, degrees: float) -> Iterator[Image]:
    """Turned by an angle to either side within the frame, black in the corners."""
    angle = degrees * (1 if setting.random().random() < 0.5 else -1)
    for image in frames:
        turned = PILImage.fromarray(image).rotate(angle, resample=PILImage.Resampling.BILINEAR)
        yield np.asarray(turned)


def shifted(size: Size, setting: EditSetting, passed: float) -> Layout:
    """A third of each side outside the frame, so that black fills an L beside the picture."""
    right, bottom = (bool(value) for value in setting.random().integers(2, size=2))
    width, height = round_to_even(size[0] * (1 - _OUTSIDE)), round_to_even(size[1] * (1 - _OUTSIDE))
    left, top = (size[0] - width if right else 0), (size[1] - height if bottom else 0)
    # What leaves on one side is missing there: the picture goes to that side, black comes in from the other.
    crop_left, crop_top = (0 if right else size[0] - width), (0 if bottom else size[1] - height)
    crop = (crop_left, crop_top, crop_left + width, crop_top + height)
    return Layout(size, crop, size, (left, top, left + width, top + height))


def black(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """The edit that puts a picture of this layout on a black canvas."""
    width, height = layout.canvas
    return lambda image: np.zeros((height, width, 3), np.uint8)


def half_of(size: Size, setting: EditSetting, passed: float, *, corner: bool) -> Layout:
    """Half of each side: the center, or the corner that the seed decides, enlarged to the size of the source."""
    width, height = round_to_even(size[0] / 2), round_to_even(size[1] / 2)
    if corner:
        right, bottom = (bool(value) for value in setting.random().integers(2, size=2))
        left, top = (size[0] - width if right else 0), (size[1] - height if bottom else 0)
    else:
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return Layout(size, (left, top, left + width, top + height), size, (0, 0, *size))


def seen_from_the_side(frames: Iterator[Image], setting: EditSetting, *, shaking: bool) -> Iterator[Image]:
    """In strong perspective, black around it; with shaking, moved a little from frame to frame."""
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
    """[4, 2] corners of a picture seen from the side, clockwise from the upper left, in shares of the frame."""
    random = np.random.default_rng([setting.seed, 6])
    far = int(random.integers(4))
    inside = random.uniform(*_NEAR_CORNER, (4, 2))
    # The edge from corner `far` to the next is the distant one: it is shorter at both ends.
    along = far % 2
    for corner in (far, (far + 1) % 4):
        inside[corner, along] = random.uniform(*_FAR_CORNER)
    edges = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return np.where(edges == 0, inside, 1 - inside)


def side_boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
    """All of the source, and the smallest upright box around the picture seen from the side."""
    corners = side_corners(setting)
    left, top = corners.min(axis=0)
    right, bottom = corners.max(axis=0)
    return WHOLE, (float(left), float(top), float(right), float(bottom))


def blended(frames: Iterator[Image], setting: EditSetting, *, share: float) -> Iterator[Image]:
    """Unrelated footage blended over the picture: this share of it, and the rest of the source."""
    footage: Iterator[Image] | None = None
    for image in frames:
        if footage is None:
            footage = setting.footage(image.shape[1], image.shape[0])
        yield np.rint((1 - share) * image + share * next(footage)).astype(np.uint8)


def covered(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Unrelated footage over 60 % of the picture: in a corner, or across one half and more of it."""
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


def stickered(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """A face, drawn in one color, over 45 % of the picture, near its middle."""
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


def far_off_colors(image: Image) -> Image:
    """Half as bright, with 1.8 times the contrast and 2.5 times the saturation."""
    picture = ImageEnhance.Brightness(PILImage.fromarray(image)).enhance(0.5)
    picture = ImageEnhance.Contrast(picture).enhance(1.8)
    return np.asarray(ImageEnhance.Color(picture).enhance(2.5))


def at_night(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """As a camera trap sees it at night: gray, a fifth of the light, half the sharpness, and noise."""
    random = setting.random()
    for image in frames:
        height, width = image.shape[:2]
        plain = np.asarray(PILImage.fromarray(image).convert("L").convert("RGB"))
        soft = resize(resize(plain, max(2, width // 2), max(2, height // 2)), width, height)
        noise = _NIGHT_NOISE * random.standard_normal((height, width, 1), dtype=np.float32)
        yield np.clip(_NIGHT_LIGHT * soft + 8 + noise, 0, 255).astype(np.uint8)
