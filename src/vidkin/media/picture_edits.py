"""Image edits that copies typically undergo, used to fit whitenings and to make the copies for the demo.

Each edit takes an iterator of frames and a seed, and returns an iterator of frames that depends only on both.
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

# Function from frames and a seed to frames.
PictureEdit = Callable[[Iterator[Image], int], Iterator[Image]]

# Rotation angle in radians, applied in either direction.
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


def edit_each(function: Callable[[Image], Image]) -> PictureEdit:
    """Create an edit that applies the same function to each frame."""

    def edit(frames: Iterator[Image], seed: int) -> Iterator[Image]:
        return (function(image) for image in frames)

    return edit


def edit_values(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> PictureEdit:
    """Create an edit that maps each sample through a curve over 0..255."""
    curve = np.rint(np.clip(function(np.arange(256, dtype=np.float64)), 0, 255)).astype(np.uint8)
    return edit_each(lambda image: curve[image])


def keep_frames(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Return the frames unchanged, for copies that are only re-encoded."""
    return frames


def resize(image: Image, width: int, height: int) -> Image:
    """Resize to this width and height, ignoring the aspect ratio; bilinear."""
    return np.asarray(PILImage.fromarray(image).resize((width, height), PILImage.Resampling.BILINEAR))


def round_to_even(value: float) -> int:
    """Round to the nearest even number of pixels, at least 2."""
    return max(2, 2 * round(value / 2))


def off_center_window(size: tuple[int, int], random: np.random.Generator, share: float) -> tuple[int, int, int, int]:
    """Choose a window (left, top, right, bottom) in pixels with this fraction of the width and height of an image; on
    each axis, its offset is in one of the outer thirds of the possible range."""
    x, y = (float(random.choice([random.uniform(0, 1 / 3), random.uniform(2 / 3, 1)])) for _ in range(2))
    width, height = round_to_even(size[0] * share), round_to_even(size[1] * share)
    left, top = round(x * (size[0] - width)), round(y * (size[1] - height))
    return (left, top, left + width, top + height)


def crop(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Crop to 70 % of the area, off center."""
    for image in frames:
        size = (image.shape[1], image.shape[0])
        left, top, right, bottom = off_center_window(size, np.random.default_rng(seed), math.sqrt(0.7))
        yield image[top:bottom, left:right]


def shrink(image: Image) -> Image:
    """Downscale to a short side of 360 pixels, or to half the size if the short side is not longer than that."""
    height, width = image.shape[:2]
    short = min(width, height)
    factor = 360 / short if short > 360 else 0.5
    return resize(image, round_to_even(width * factor), round_to_even(height * factor))


def squeeze(image: Image) -> Image:
    """Squeeze to 4:3 (portrait: 3:4), or stretch from 4:3 to 16:9."""
    height, width = image.shape[:2]
    wide = max(width, height) / min(width, height)
    target = 16 / 9 if abs(wide - 4 / 3) < 0.05 else 4 / 3
    if width >= height:
        return resize(image, round_to_even(height * target), height)
    return resize(image, width, round_to_even(width * target))


def bar_width(side: int) -> int:
    """Return the width in pixels of each of two bars added to this side: 12 % of the new side."""
    return round(side / 0.76 * 0.12)


def add_bars(image: Image, *, across: bool) -> Image:
    """Add two black bars, each 12 % of the new height (or width)."""
    bar = bar_width(image.shape[0 if across else 1])
    padding = ((bar, bar), (0, 0), (0, 0)) if across else ((0, 0), (bar, bar), (0, 0))
    return np.pad(image, padding)


def to_gray(image: Image) -> Image:
    """Convert to luma (ITU-R BT.601) in all three channels."""
    return np.asarray(PILImage.fromarray(image).convert("L").convert("RGB"))


def to_sepia(image: Image) -> Image:
    """Convert to the brown tone of old photographs, with the usual matrix."""
    matrix = (0.393, 0.769, 0.189, 0, 0.349, 0.686, 0.168, 0, 0.272, 0.534, 0.131, 0)
    return np.asarray(PILImage.fromarray(image).convert("RGB", matrix))


def blur(image: Image) -> Image:
    """Apply a Gaussian blur whose radius is 1.2 % of the shorter side, at least one pixel."""
    radius = max(1.0, 0.012 * min(image.shape[:2]))
    return np.asarray(PILImage.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))


def add_noise(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Add Gaussian noise with a standard deviation of 20."""
    random = np.random.default_rng(seed)
    for image in frames:
        noise = random.standard_normal(image.shape, dtype=np.float32)
        yield np.clip(image + 20 * noise, 0, 255).astype(np.uint8)


def mirror(image: Image) -> Image:
    """Flip left to right."""
    return np.ascontiguousarray(image[:, ::-1])


def rotation_zoom(width: int, height: int) -> float:
    """Return the zoom at which an image rotated by `ROTATION` has no empty corners."""
    return math.cos(ROTATION) + math.sin(ROTATION) * max(width / height, height / width)


def rotate(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Rotate by 5 degrees in either direction, zoomed in so that no corner is empty."""
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


def add_caption(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Add two lines of text on a dark band at the bottom that covers 22 % of the height."""
    lines = np.random.default_rng(seed).choice(len(SENTENCES), 2, replace=False)
    return _add_overlay(frames, lambda size: _draw_caption(size, [SENTENCES[line] for line in lines]))


def add_logo(frames: Iterator[Image], seed: int) -> Iterator[Image]:
    """Add a large opaque logo in a corner, and text in the opposite corner."""
    corner = int(np.random.default_rng(seed).integers(4))
    return _add_overlay(frames, lambda size: _draw_logo(size, corner))


def _add_overlay(frames: Iterator[Image], draw: Callable[[tuple[int, int]], PILImage.Image]) -> Iterator[Image]:
    overlay: PILImage.Image | None = None
    for image in frames:
        picture = PILImage.fromarray(image)
        if overlay is None or overlay.size != picture.size:
            overlay = draw(picture.size)
        picture.paste(overlay, mask=overlay)
        yield np.asarray(picture)


def _draw_caption(size: tuple[int, int], lines: list[str]) -> PILImage.Image:
    width, height = size
    overlay = PILImage.new("RGBA", size)
    pen = ImageDraw.Draw(overlay)
    top = round(0.78 * height)
    pen.rectangle((0, top, width, height), fill=(0, 0, 0, 200))
    step = (height - top) / 2
    for index, line in enumerate(lines):
        center = (width / 2, top + step * (index + 0.5))
        pen.text(center, line, font=_fit_font(line, 0.94 * width, 0.7 * step), fill=(255, 255, 255, 255), anchor="mm")
    return overlay


def _draw_logo(size: tuple[int, int], corner: int) -> PILImage.Image:
    width, height = size
    overlay = PILImage.new("RGBA", size)
    pen = ImageDraw.Draw(overlay)
    side = 0.38 * min(size)
    left = width - side if corner % 2 else 0.0
    top = height - side if corner // 2 else 0.0
    pen.rectangle((left, top, left + side, top + side), fill=(210, 30, 60, 255))
    inset = 0.12 * side
    pen.ellipse((left + inset, top + inset, left + side - inset, top + side - inset), fill=(250, 210, 40, 255))
    font = _fit_font("KINO", 0.6 * side, 0.4 * side)
    pen.text((left + side / 2, top + side / 2), "KINO", font=font, fill=(20, 20, 90, 255), anchor="mm")
    text = "watch more at kino.example"
    across = (
        width - 0.03 * width if not corner % 2 else 0.03 * width,
        0.03 * height if corner // 2 else 0.97 * height,
    )
    anchor = ("l" if corner % 2 else "r") + ("t" if corner // 2 else "b")
    font = _fit_font(text, 0.55 * width, 0.08 * height)
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


def _fit_font(text: str, width: float, height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Load Pillow's default font at the largest size that fits the text."""
    size = max(6.0, height)
    while size > 6 and ImageFont.load_default(size).getlength(text) > width:
        size *= 0.9
    return ImageFont.load_default(size)


PICTURE_EDITS: Mapping[str, PictureEdit] = {
    "reencode": keep_frames,
    "resize": edit_each(shrink),
    "crop": crop,
    "letterbox": edit_each(partial(add_bars, across=True)),
    "pillarbox": edit_each(partial(add_bars, across=False)),
    "logo": add_logo,
    "caption": add_caption,
    "grey": edit_each(to_gray),
    "sepia": edit_each(to_sepia),
    "brighter": edit_values(lambda v: v + 50),
    "darker": edit_values(lambda v: 0.6 * v),
    "contrast": edit_values(lambda v: 1.6 * (v - 128) + 128),
    "blur": edit_each(blur),
    "noise": add_noise,
    "mirror": edit_each(mirror),
    "rotate5": rotate,
    "aspect": edit_each(squeeze),
}
"""All edits by name."""
