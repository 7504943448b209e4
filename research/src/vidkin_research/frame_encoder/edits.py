"""Random edits of training images: combinations of typical copy edits with random strengths.

An edit is a function of an image, a random generator and a source of other images. `edit_picture` samples one to four
kinds and applies them in a realistic order: crop or rotate the content, change its colors, overlay something, place it
on a canvas, and encode the result.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageEnhance, ImageFilter

from vidkin.media.layouts import homographies, split_parts
from vidkin.media.picture_edits import mirror, resize, to_gray, to_sepia
from vidkin_research.copies.transforms import fill_size
from vidkin_research.frame_encoder.drawn import draw_page, draw_text_line, random_color, random_words

__all__ = ["KINDS", "EditKind", "edit_picture"]

Image = NDArray[np.uint8]
Random = np.random.Generator
Others = Callable[[], Image]
Change = Callable[[Image, Random, Others], Image]

_BILINEAR = PILImage.Resampling.BILINEAR
# Maximum side in pixels of an image between edits.
_MAX_SIDE = 480
# Probabilities of one to four edits: single edits must be learned, and real copies often combine several.
_COUNT_PROBABILITIES = (0.34, 0.36, 0.2, 0.1)


@dataclass(frozen=True, slots=True)
class EditKind:
    """A kind of edit.

    Attributes:
        name: Name of the kind.
        stage: Position in the order; lower stages are applied first.
        share: Relative frequency.
        change: Function that applies the edit.
    """

    name: str
    stage: int
    share: float
    change: Change


def edit_picture(image: Image, random: Random, others: Others) -> tuple[Image, tuple[str, ...]]:
    """Edit an image at random; return it with the names of the edits in order.

    Args:
        image: Image [H, W, 3].
        random: Random generator.
        others: Function that returns another image on each call.
    """
    count = 1 + int(random.choice(len(_COUNT_PROBABILITIES), p=_COUNT_PROBABILITIES))
    chosen = random.choice(len(KINDS), size=count, replace=False, p=_PROBABILITIES)
    kinds = sorted((KINDS[number] for number in chosen), key=lambda kind: kind.stage)
    for kind in kinds:
        image = _limit_size(kind.change(image, random, others))
    return image, tuple(kind.name for kind in kinds)


def _limit_size(image: Image) -> Image:
    height, width = image.shape[:2]
    factor = _MAX_SIDE / max(height, width)
    return image if factor >= 1 else resize(image, max(8, round(width * factor)), max(8, round(height * factor)))


# Stage 0: crop and orientation.


def _crop(image: Image, random: Random, others: Others) -> Image:
    """Crop to 22 to 90 % of the area, with random position and aspect ratio."""
    height, width = image.shape[:2]
    area, stretch = random.uniform(0.22, 0.9), math.exp(random.uniform(-0.3, 0.3))
    across, down = min(1.0, math.sqrt(area) * stretch), min(1.0, math.sqrt(area) / stretch)
    wide, tall = max(8, round(across * width)), max(8, round(down * height))
    left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
    return np.ascontiguousarray(image[top : top + tall, left : left + wide])


def _reframe(image: Image, random: Random, others: Others) -> Image:
    """Crop to the largest window of the other orientation, from 9:16 to 4:5, at a random position."""
    height, width = image.shape[:2]
    ratio = random.choice((9 / 16, 9 / 16, 3 / 4, 4 / 5))
    if width >= height:
        wide = max(8, min(width, round(height * ratio)))
        left = int(random.integers(width - wide + 1))
        return np.ascontiguousarray(image[:, left : left + wide])
    tall = max(8, min(height, round(width * ratio)))
    top = int(random.integers(height - tall + 1))
    return np.ascontiguousarray(image[top : top + tall])


def _mirror(image: Image, random: Random, others: Others) -> Image:
    return mirror(image)


def _rotate_quarters(image: Image, random: Random, others: Others) -> Image:
    """Rotate by 90, 180 or 270 degrees, or flip upside down."""
    quarter = int(random.integers(1, 5))
    return np.ascontiguousarray(image[::-1] if quarter == 4 else np.rot90(image, quarter))


def _tilt(image: Image, random: Random, others: Others) -> Image:
    """Rotate by any angle, usually below 30 degrees; corners have one color or are cropped away."""
    limit = 30.0 if random.random() < 0.7 else 180.0
    angle = float(random.uniform(-limit, limit))
    picture = PILImage.fromarray(image)
    if random.random() < 0.35:
        return np.asarray(picture.rotate(angle, _BILINEAR, expand=True, fillcolor=random_color(random)))
    if abs(angle) < 30 and random.random() < 0.5:
        cos, sin = math.cos(math.radians(angle)), abs(math.sin(math.radians(angle)))
        zoom = cos + sin * max(picture.width / picture.height, picture.height / picture.width)
        turned = picture.rotate(angle, _BILINEAR)
        wide, tall = picture.width / zoom, picture.height / zoom
        left, top = (picture.width - wide) / 2, (picture.height - tall) / 2
        return np.asarray(turned.crop((round(left), round(top), round(left + wide), round(top + tall))))
    fill = (0, 0, 0) if random.random() < 0.6 else random_color(random)
    return np.asarray(picture.rotate(angle, _BILINEAR, fillcolor=fill))


def _perspective(image: Image, random: Random, others: Others) -> Image:
    """Move each corner inward by up to 36 % of the sides, over one color or another image."""
    height, width = image.shape[:2]
    depth = random.uniform(0.08, 0.36)
    inside = random.uniform(0.0, depth, (4, 2))
    edges = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=np.float64)
    corners = np.where(edges == 0, inside, 1 - inside) * (width, height)
    origins = edges * (width, height)
    if random.random() < 0.3:  # zoom in so far that parts are outside the frame
        corners = origins + (corners - origins) * random.choice((-0.6, 1.0), (4, 1))
    matrix = homographies(corners[None], origins[None])
    coefficients = tuple(float(value) for value in matrix.ravel()[:8])
    transform = PILImage.Transform.PERSPECTIVE
    picture = PILImage.fromarray(image)
    seen = picture.transform((width, height), transform, coefficients, resample=_BILINEAR)
    if random.random() < 0.45:
        return np.asarray(seen)
    mask = PILImage.new("L", (width, height), 255).transform((width, height), transform, coefficients)
    ground = _make_background(image, random, others, (width, height))
    return np.asarray(PILImage.composite(seen, PILImage.fromarray(ground), mask))


def _shift(image: Image, random: Random, others: Others) -> Image:
    """Shift the image partly out of the frame; the uncovered area has one color or shows another image."""
    height, width = image.shape[:2]
    x, y = (round(float(random.uniform(-0.45, 0.45)) * side) for side in (width, height))
    canvas = _make_background(image, random, others, (width, height)).copy()
    canvas[max(0, y) : height + min(0, y), max(0, x) : width + min(0, x)] = image[
        max(0, -y) : height - max(0, y), max(0, -x) : width - max(0, x)
    ]
    return canvas


def _squeeze(image: Image, random: Random, others: Others) -> Image:
    height, width = image.shape[:2]
    factor = math.exp(random.uniform(0.15, 0.6) * random.choice((-1, 1)))
    return resize(image, max(8, round(width * factor)), height)


# Stage 1: colors.


def _change_colors(image: Image, random: Random, others: Others) -> Image:
    """Change brightness, contrast, saturation and gamma, from slightly to extremely."""
    picture = PILImage.fromarray(image)
    far = random.random() < 0.4
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        if random.random() < 0.75:
            picture = enhance(picture).enhance(
                math.exp(random.uniform(-0.9, 0.9) if far else random.uniform(-0.4, 0.4))
            )
    gamma = math.exp(random.uniform(-0.6, 0.6)) if random.random() < 0.4 else 1.0
    curve = np.rint(255 * (np.arange(256) / 255) ** gamma).astype(np.uint8)
    curved: Image = curve[np.asarray(picture)]
    return curved


def _to_gray(image: Image, random: Random, others: Others) -> Image:
    return to_gray(image) if random.random() < 0.7 else to_sepia(image)


def _tint(image: Image, random: Random, others: Others) -> Image:
    """Add a color cast, shift the hue, or swap channels."""
    kind = random.random()
    if kind < 0.5:
        return np.clip(image * random.uniform(0.5, 1.4, 3), 0, 255).astype(np.uint8)
    if kind < 0.85:
        turned = np.array(PILImage.fromarray(image).convert("HSV"))
        turned[..., 0] += np.uint8(random.integers(20, 236))
        return np.asarray(PILImage.fromarray(turned, "HSV").convert("RGB"))
    return np.ascontiguousarray(image[..., random.permutation(3)])


def _negative(image: Image, random: Random, others: Others) -> Image:
    negative: Image = 255 - image
    return negative


def _dim(image: Image, random: Random, others: Others) -> Image:
    """Make the image nearly black or nearly white."""
    light = random.uniform(0.12, 0.4)
    dark = image * light
    dimmed: Image = np.clip(dark if random.random() < 0.7 else 255 - (255 - image) * light, 0, 255).astype(np.uint8)
    return dimmed


# Stage 2: overlays.


def _add_text(image: Image, random: Random, others: Others) -> Image:
    """Add captions, subtitles or meme text, with or without a band behind it."""
    picture = PILImage.fromarray(image)
    pen = ImageDraw.Draw(picture, "RGBA")
    width, height = picture.size
    for _ in range(int(random.integers(1, 5))):
        tall = float(random.uniform(0.05, 0.17)) * height
        y = float(random.choice((random.uniform(0, 0.15), random.uniform(0.7, 0.95), random.uniform(0, 0.95)))) * height
        if random.random() < 0.5:
            pen.rectangle((0, y, width, y + 1.25 * tall), fill=(*random_color(random), int(random.integers(90, 256))))
        color = (255, 255, 255) if random.random() < 0.5 else random_color(random)
        text = random_words(random, int(random.integers(1, 6)))
        draw_text_line(pen, (width * float(random.uniform(0, 0.5)), y), text, tall, color)
    return np.asarray(picture)


def _add_signs(image: Image, random: Random, others: Others) -> Image:
    """Add one to three stickers or logos: small images, round or square, opaque or nearly opaque."""
    picture = PILImage.fromarray(image)
    for _ in range(int(random.integers(1, 4))):
        share = float(random.uniform(0.12, 0.5 if random.random() < 0.6 else 0.68))
        size = (max(8, round(share * picture.width)), max(8, round(share * picture.height)))
        sticker = PILImage.fromarray(fill_size(_draw_sign(random, others), *size))
        mask = PILImage.new("L", size, 0)
        pen = ImageDraw.Draw(mask)
        opaque = int(random.integers(150, 256))
        (pen.ellipse if random.random() < 0.6 else pen.rectangle)((0, 0, size[0] - 1, size[1] - 1), fill=opaque)
        corner = int(random.integers(picture.width - size[0] + 1)), int(random.integers(picture.height - size[1] + 1))
        picture.paste(sticker, corner, mask)
    return np.asarray(picture)


def _draw_sign(random: Random, others: Others) -> Image:
    if random.random() < 0.6:
        return others()
    picture = PILImage.new("RGB", (96, 96), random_color(random))
    pen = ImageDraw.Draw(picture)
    for _ in range(int(random.integers(1, 4))):
        xs, ys = np.sort(random.uniform(0, 96, 2)), np.sort(random.uniform(0, 96, 2))
        pen.ellipse((float(xs[0]), float(ys[0]), float(xs[1]), float(ys[1])), fill=random_color(random))
    draw_text_line(pen, (48, 48), random_words(random, 1), 24, random_color(random), anchor="mm")
    return np.asarray(picture)


def _cover(image: Image, random: Random, others: Others) -> Image:
    """Cover up to 62 % of the area with another image or one color, in a corner, along an edge or anywhere."""
    height, width = image.shape[:2]
    area = random.uniform(0.15, 0.62)
    across = float(random.uniform(area, 1.0)) if random.random() < 0.7 else 1.0
    wide, tall = max(1, round(across * width)), max(1, min(height, round(area / across * height)))
    left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
    if random.random() < 0.6:
        left, top = (
            (0 if left < (width - wide) / 2 else width - wide),
            (0 if top < (height - tall) / 2 else height - tall),
        )
    result = image.copy()
    filled = random.random() < 0.8
    result[top : top + tall, left : left + wide] = fill_size(others(), wide, tall) if filled else random_color(random)
    return result


def _blend(image: Image, random: Random, others: Others) -> Image:
    """Blend another image over this one with a weight of 20 to 60 %."""
    height, width = image.shape[:2]
    share = random.uniform(0.2, 0.6)
    return np.rint((1 - share) * image + share * fill_size(others(), width, height)).astype(np.uint8)


# Stage 3: placement on a canvas.


def _add_borders(image: Image, random: Random, others: Others) -> Image:
    """Add bars on two or all sides: one color, an enlarged blurred copy, or another image."""
    height, width = image.shape[:2]
    wide, tall = (1 + random.exponential(0.45, 2)) * (random.random(2) < 0.6)
    canvas = max(width, min(4 * width, round(width * wide))), max(height, min(4 * height, round(height * tall)))
    if canvas == (width, height):
        canvas = (width, round(1.6 * height)) if width > height else (round(1.6 * width), height)
    result = _make_background(image, random, others, canvas).copy()
    x, y = (0.5, 0.5) if random.random() < 0.7 else random.random(2)
    left, top = round(x * (canvas[0] - width)), round(y * (canvas[1] - height))
    result[top : top + height, left : left + width] = image
    return result


def _inset(image: Image, random: Random, others: Others) -> Image:
    """Place the image as an inset in another image, at 30 to 80 % of its width and height, at a random position."""
    other = others()
    height, width = other.shape[:2]
    share = float(random.uniform(0.3, 0.8))
    wide, tall = max(8, round(share * width)), max(8, round(share * height))
    if random.random() < 0.5:  # with its own aspect ratio
        factor = min(wide / image.shape[1], tall / image.shape[0])
        wide, tall = max(8, round(image.shape[1] * factor)), max(8, round(image.shape[0] * factor))
    return _paste(other, image, (wide, tall), random)


def _split(image: Image, random: Random, others: Others) -> Image:
    """Place the image in one part of a split screen of two or three parts; the others show other images."""
    height, width = image.shape[:2]
    columns, rows = ((1, 2), (2, 1), (1, 2), (2, 1), (3, 1), (1, 3))[int(random.integers(6))]
    if random.random() < 0.5:  # cropped to its part instead of squeezed
        width, height = (width, round(0.6 * height)) if rows > 1 else (round(0.6 * width), height)
        image = fill_size(image, width, height)
    canvas = (columns * width, rows * height)
    own = int(random.integers(columns * rows))
    result = np.empty((canvas[1], canvas[0], 3), dtype=np.uint8)
    for number, (left, top, right, bottom) in enumerate(split_parts((width, height), canvas, columns, rows)):
        result[top:bottom, left:right] = image if number == own else fill_size(others(), width, height)
    return result


def _page(image: Image, random: Random, others: Others) -> Image:
    """Place the image on a synthetic page, at 35 to 85 % of its width or height."""
    page = draw_page(random).copy()
    height, width = page.shape[:2]
    share = float(random.uniform(0.35, 0.85))
    factor = min(share * width / image.shape[1], share * height / image.shape[0] * 1.2, 0.98 * height / image.shape[0])
    size = max(8, round(image.shape[1] * factor)), max(8, round(image.shape[0] * factor))
    return _paste(page, image, size, random)


def _paste(ground: Image, image: Image, size: tuple[int, int], random: Random) -> Image:
    height, width = ground.shape[:2]
    wide, tall = min(size[0], width), min(size[1], height)
    left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
    result = ground.copy()
    if random.random() < 0.3:
        edge = int(random.integers(1, 6))
        result[max(0, top - edge) : top + tall + edge, max(0, left - edge) : left + wide + edge] = random_color(random)
    result[top : top + tall, left : left + wide] = resize(image, wide, tall)
    return result


def _make_background(image: Image, random: Random, others: Others, size: tuple[int, int]) -> Image:
    """Return a background for an image: black, one color, a blurred copy of it, or another image."""
    kind = random.random()
    if kind < 0.6:
        color = (0, 0, 0) if kind < 0.3 else (255, 255, 255) if kind < 0.38 else random_color(random)
        return np.full((size[1], size[0], 3), color, dtype=np.uint8)
    if kind < 0.8:
        small = PILImage.fromarray(fill_size(image, max(8, size[0] // 8), max(8, size[1] // 8)))
        return np.array(small.filter(ImageFilter.GaussianBlur(2.0)).resize(size, _BILINEAR))
    return fill_size(others(), *size)


# Stage 4: encoding.


def _blur(image: Image, random: Random, others: Others) -> Image:
    radius = random.uniform(0.006, 0.03) * min(image.shape[:2])
    return np.asarray(PILImage.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))


def _pixelate(image: Image, random: Random, others: Others) -> Image:
    """Scale the shorter side down to 20 to 70 pixels and back up, blocky or smooth."""
    height, width = image.shape[:2]
    factor = random.uniform(20, 70) / min(height, width)
    small = PILImage.fromarray(image).resize((max(4, round(width * factor)), max(4, round(height * factor))), _BILINEAR)
    return np.asarray(
        small.resize((width, height), PILImage.Resampling.NEAREST if random.random() < 0.6 else _BILINEAR)
    )


def _compress(image: Image, random: Random, others: Others) -> Image:
    content = io.BytesIO()
    PILImage.fromarray(image).save(content, "JPEG", quality=int(random.integers(3, 35)))
    return np.asarray(PILImage.open(content).convert("RGB"))


def _noise(image: Image, random: Random, others: Others) -> Image:
    channels = 3 if random.random() < 0.7 else 1
    noise = random.standard_normal((*image.shape[:2], channels), dtype=np.float32)
    return np.clip(image + random.uniform(8, 45) * noise, 0, 255).astype(np.uint8)


KINDS = (
    EditKind("crop", 0, 2.2, _crop),
    EditKind("reframe", 0, 1.2, _reframe),
    EditKind("mirror", 0, 1.2, _mirror),
    EditKind("quarters", 0, 1.4, _rotate_quarters),
    EditKind("tilt", 0, 1.4, _tilt),
    EditKind("perspective", 0, 1.6, _perspective),
    EditKind("shift", 0, 1.0, _shift),
    EditKind("squeeze", 0, 0.6, _squeeze),
    EditKind("colors", 1, 1.6, _change_colors),
    EditKind("without color", 1, 0.8, _to_gray),
    EditKind("tint", 1, 0.8, _tint),
    EditKind("negative", 1, 0.4, _negative),
    EditKind("dim", 1, 0.6, _dim),
    EditKind("text", 2, 1.2, _add_text),
    EditKind("sign", 2, 1.6, _add_signs),
    EditKind("cover", 2, 1.8, _cover),
    EditKind("blend", 2, 2.0, _blend),
    EditKind("borders", 3, 1.4, _add_borders),
    EditKind("inset", 3, 2.2, _inset),
    EditKind("split", 3, 1.0, _split),
    EditKind("page", 3, 1.2, _page),
    EditKind("blur", 4, 0.7, _blur),
    EditKind("pixelate", 4, 0.6, _pixelate),
    EditKind("compress", 4, 0.9, _compress),
    EditKind("noise", 4, 0.7, _noise),
)
"""The kinds of edits. Kinds that were hard for a public network or for our first attempts are more frequent."""

_PROBABILITIES = np.array([kind.share for kind in KINDS]) / sum(kind.share for kind in KINDS)
