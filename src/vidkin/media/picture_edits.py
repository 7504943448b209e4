"""Edits of pictures as copies have them: a whitening is fitted on them, and the demonstration makes copies by them.

Each takes an iterator of frames and a seed, and returns an iterator of frames; what is random comes from the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFilter, ImageFont

Image = NDArray[np.uint8]

# Frames and a seed in, frames out.
PictureEdit = Callable[[Iterator[Image], int], Iterator[Image]]

# Angle of turned pictures in radians, either way.
ROTATION = math.radians(5.0)


SENTENCES = (
    "Breaking: nobody saw it coming",
    "Wait until the very end",
    "Follow us for more clips like this",
    "What happened next surprised everyone",
    "Filmed last summer near the harbour",
    "Turn the sound on for this one",
    "Part two is in the comments",
    "Shared by a friend of a friend",
)


def each(function: Callable[[Image], Image]) -> PictureEdit:
    """An edit that applies the same function to every picture."""

    def edit(frames: Iterator[Image], seed: int) -> Iterator[Image]:
        return (function(image) for image in frames)

    return edit


def values(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> PictureEdit:
    """An edit that maps every sample through a curve over 0..255."""
    curve = np.rint(np.clip(function(np.arange(256, dtype=np.float64)), 0, 255)).astype(np.uint8)
    return each(lambda image: curve[image])


def unchanged(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """The frames themselves: only the encoding differs."""
    return frames


def scaled(image: Image, width: int, height: int) -> Image:
    """The picture in another size, pixels, whatever its shape was; bilinear."""
    return np.asarray(PILImage.fromarray(image).resize((width, height), PILImage.Resampling.BILINEAR))


def even(value: float) -> int:
    """The nearest even number of pixels, at least 2."""
    return max(2, 2 * round(value / 2))


def off_center_window(size: tuple[int, int], random: np.random.Generator, share: float) -> tuple[int, int, int, int]:
    """The window (left, top, right, bottom), in pixels, with this share of each side of a picture of this width and
    height; along each side it lies in one of the outer thirds of the room it has."""
    x, y = (float(random.choice([random.uniform(0, 1 / 3), random.uniform(2 / 3, 1)])) for _ in range(2))
    width, height = even(size[0] * share), even(size[1] * share)
    left, top = round(x * (size[0] - width)), round(y * (size[1] - height))
    return (left, top, left + width, top + height)


def cropped(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """70 % of the area, off the center."""
    for image in frames:
        size = (image.shape[1], image.shape[0])
        left, top, right, bottom = off_center_window(size, np.random.default_rng(seed), math.sqrt(0.7))
        yield image[top:bottom, left:right]


def smaller(image: Image) -> Image:
    """A short side of 360, or half the size if that would not be smaller."""
    height, width = image.shape[:2]
    short = min(width, height)
    factor = 360 / short if short > 360 else 0.5
    return scaled(image, even(width * factor), even(height * factor))


def squeezed(image: Image) -> Image:
    """Squeeze to 4:3 (upright: 3:4); video that already is 4:3 goes to 16:9."""
    height, width = image.shape[:2]
    wide = max(width, height) / min(width, height)
    target = 16 / 9 if abs(wide - 4 / 3) < 0.05 else 4 / 3
    if width >= height:
        return scaled(image, even(height * target), height)
    return scaled(image, width, even(width * target))


def bar_width(side: int) -> int:
    """Pixels of each of two bars beside a picture of this side: 12 % of the new side."""
    return round(side / 0.76 * 0.12)


def barred(image: Image, *, across: bool) -> Image:
    """Black bars, each 12 % of the new height (or width)."""
    bar = bar_width(image.shape[0 if across else 1])
    padding = ((bar, bar), (0, 0), (0, 0)) if across else ((0, 0), (bar, bar), (0, 0))
    return np.pad(image, padding)


def gray(image: Image) -> Image:
    """The luma (ITU-R 601) in all three channels."""
    return np.asarray(PILImage.fromarray(image).convert("L").convert("RGB"))


def sepia(image: Image) -> Image:
    """The brown tone of old photographs, by the usual matrix of the three channels."""
    matrix = (0.393, 0.769, 0.189, 0, 0.349, 0.686, 0.168, 0, 0.272, 0.534, 0.131, 0)
    return np.asarray(PILImage.fromarray(image).convert("RGB", matrix))


def blurred(image: Image) -> Image:
    """Blurred by a Gaussian of 1.2 % of the shorter side, at least one pixel."""
    radius = max(1.0, 0.012 * min(image.shape[:2]))
    return np.asarray(PILImage.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))


def noisy(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Gaussian noise, standard deviation 20."""
    random = np.random.default_rng(seed)
    for image in frames:
        noise = random.standard_normal(image.shape, dtype=np.float32)
        yield np.clip(image + 20 * noise, 0, 255).astype(np.uint8)


def mirrored(image: Image) -> Image:
    """The picture flipped left to right."""
    return np.ascontiguousarray(image[:, ::-1])


def rotation_zoom(width: int, height: int) -> float:
    """How much a picture turned by `ROTATION` is enlarged so that no corner is empty."""
    return math.cos(ROTATION) + math.sin(ROTATION) * max(width / height, height / width)


def rotated(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Rotate by 5 degrees to either side, enlarged so that no corner is empty."""
    angle = ROTATION * (1 if np.random.default_rng(seed).random() < 0.5 else -1)
    cos, sin = math.cos(angle), math.sin(angle)
    for image in frames:
        height, width = image.shape[:2]
        zoom = rotation_zoom(width, height)
        a, b, x, y = cos / zoom, sin / zoom, (width - 1) / 2, (height - 1) / 2
        turn = (a, b, x - a * x - b * y, -b, a, y + b * x - a * y)
        picture = PILImage.fromarray(image)
        yield np.asarray(
            picture.transform(picture.size, PILImage.Transform.AFFINE, turn, resample=PILImage.Resampling.BILINEAR)
        )


def captioned(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Two lines of text on a dark band at the bottom, 22 % of the height."""
    lines = np.random.default_rng(seed).choice(len(SENTENCES), 2, replace=False)
    return _overlaid(frames, lambda size: _caption(size, [SENTENCES[line] for line in lines]))


def branded(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """A large opaque logo in a corner, and text in the corner across from it."""
    corner = int(np.random.default_rng(seed).integers(4))
    return _overlaid(frames, lambda size: _logo(size, corner))


def _overlaid(frames: Iterator[Image], draw: Callable[[tuple[int, int]], PILImage.Image]) -> Iterator[Image]:
    overlay: PILImage.Image | None = None
    for image in frames:
        picture = PILImage.fromarray(image)
        if overlay is None or overlay.size != picture.size:
            overlay = draw(picture.size)
        picture.paste(overlay, mask=overlay)
        yield np.asarray(picture)


def _caption(size: tuple[int, int], lines: list[str]) -> PILImage.Image:
    width, height = size
    overlay = PILImage.new("RGBA", size)
    pen = ImageDraw.Draw(overlay)
    top = round(0.78 * height)
    pen.rectangle((0, top, width, height), fill=(0, 0, 0, 200))
    step = (height - top) / 2
    for index, line in enumerate(lines):
        place = (width / 2, top + step * (index + 0.5))
        pen.text(place, line, font=_font(line, 0.94 * width, 0.7 * step), fill=(255, 255, 255, 255), anchor="mm")
    return overlay


def _logo(size: tuple[int, int], corner: int) -> PILImage.Image:
    width, height = size
    overlay = PILImage.new("RGBA", size)
    pen = ImageDraw.Draw(overlay)
    side = 0.38 * min(size)
    left = width - side if corner % 2 else 0.0
    top = height - side if corner // 2 else 0.0
    pen.rectangle((left, top, left + side, top + side), fill=(210, 30, 60, 255))
    inset = 0.12 * side
    pen.ellipse((left + inset, top + inset, left + side - inset, top + side - inset), fill=(250, 210, 40, 255))
    font = _font("KINO", 0.6 * side, 0.4 * side)
    pen.text((left + side / 2, top + side / 2), "KINO", font=font, fill=(20, 20, 90, 255), anchor="mm")
    text = "watch more at kino.example"
    across = (
        width - 0.03 * width if not corner % 2 else 0.03 * width,
        0.03 * height if corner // 2 else 0.97 * height,
    )
    anchor = ("l" if corner % 2 else "r") + ("t" if corner // 2 else "b")
    font = _font(text, 0.55 * width, 0.08 * height)
    pen.text(
        across,
        text,
        font=font,
        fill=(255, 255, 255, 255),
        stroke_width=1,
        stroke_fill=(0, 0, 0, 255),
        anchor=anchor,
    )
    return overlay


def _font(text: str, width: float, height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font that comes with Pillow, as large as the text can be."""
    size = max(6.0, height)
    while size > 6 and ImageFont.load_default(size).getlength(text) > width:
        size *= 0.9
    return ImageFont.load_default(size)


PICTURE_EDITS: Mapping[str, PictureEdit] = {
    "reencode": unchanged,
    "resize": each(smaller),
    "crop": cropped,
    "letterbox": each(partial(barred, across=True)),
    "pillarbox": each(partial(barred, across=False)),
    "logo": branded,
    "caption": captioned,
    "grey": each(gray),
    "sepia": each(sepia),
    "brighter": values(lambda v: v + 50),
    "darker": values(lambda v: 0.6 * v),
    "contrast": values(lambda v: 1.6 * (v - 128) + 128),
    "blur": each(blurred),
    "noise": noisy,
    "mirror": each(mirrored),
    "rotate5": rotated,
    "aspect": each(squeezed),
}
"""All edits by name."""
