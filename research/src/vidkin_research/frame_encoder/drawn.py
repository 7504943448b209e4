"""Synthetic training images of what photographs lack: pages, slides, menus, charts and shapes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

__all__ = ["draw_page", "draw_text_line", "random_color", "random_words"]

Image = NDArray[np.uint8]
Color = tuple[int, int, int]

_CONSONANTS, _VOWELS = "bcdfghklmnprstvwz", "aeiou"
_SIZES = ((640, 360), (480, 360), (360, 640), (400, 400), (560, 320))


def random_words(random: np.random.Generator, count: int) -> str:
    """Return random pseudo-words."""
    words = []
    for _ in range(count):
        length = int(random.integers(1, 4))
        starts, ends = random.choice(list(_CONSONANTS), length), random.choice(list(_VOWELS), length)
        words.append("".join(start + end for start, end in zip(starts, ends, strict=True)))
    return " ".join(word.capitalize() if random.random() < 0.2 else word for word in words)


def random_color(random: np.random.Generator, low: int = 0, high: int = 256) -> Color:
    """Return a random color with channels in [``low``, ``high``)."""
    red, green, blue = (int(value) for value in random.integers(low, high, size=3))
    return red, green, blue


def draw_text_line(
    pen: ImageDraw.ImageDraw, position: tuple[float, float], text: str, size: float, color: Color, *, anchor: str = "la"
) -> None:
    """Draw one line of text in Pillow's default font."""
    pen.text(position, text, font=_font(max(6, round(size))), fill=color, anchor=anchor)


@lru_cache(maxsize=128)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def draw_page(random: np.random.Generator) -> Image:
    """Draw a random page, slide, menu, chart or pattern of shapes."""
    width, height = _SIZES[int(random.integers(len(_SIZES)))]
    light = random.random() < 0.65
    ground = random_color(random, 215, 256) if light else random_color(random, 0, 70)
    ink = random_color(random, 0, 90) if light else random_color(random, 180, 256)
    picture = PILImage.new("RGB", (width, height), ground)
    pen = ImageDraw.Draw(picture)
    kinds = (_article, _slide, _chart, _shapes, _tiles, _table)
    kinds[int(random.integers(len(kinds)))](pen, random, (width, height), ink)
    return np.asarray(picture)


def _article(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    pen.rectangle((0, 0, width, 0.09 * height), fill=random_color(random))
    draw_text_line(pen, (0.03 * width, 0.02 * height), random_words(random, 3), 0.05 * height, random_color(random))
    columns = int(random.integers(1, 4))
    tall = float(random.uniform(0.026, 0.05)) * height
    for column in range(columns):
        left, right = (0.04 + 0.92 * column / columns) * width, (0.02 + 0.92 * (column + 1) / columns) * width
        y = 0.13 * height
        while y < 0.95 * height:
            if random.random() < 0.08 and y < 0.7 * height:
                bottom = y + float(random.uniform(0.12, 0.3)) * height
                _block(pen, random, (left, y, right, bottom))
                y = bottom + tall
                continue
            if random.random() < 0.9:
                count = max(1, int((right - left) / tall / 2.6))
                draw_text_line(pen, (left, y), random_words(random, count), tall * 0.8, ink)
            y += tall * 1.3


def _slide(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    if random.random() < 0.6:
        pen.rectangle((0, 0, width, 0.2 * height), fill=random_color(random))
    draw_text_line(
        pen, (0.06 * width, 0.06 * height), random_words(random, int(random.integers(2, 5))), 0.09 * height, ink
    )
    half = random.random() < 0.5
    for line in range(int(random.integers(2, 7))):
        y = (0.28 + 0.11 * line) * height
        pen.ellipse((0.06 * width, y + 4, 0.06 * width + 8, y + 12), fill=ink)
        text = random_words(random, int(random.integers(2, 5 if half else 9)))
        draw_text_line(pen, (0.1 * width, y), text, 0.055 * height, ink)
    if half:
        _block(pen, random, (0.56 * width, 0.3 * height, 0.94 * width, 0.85 * height))


def _chart(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    draw_text_line(pen, (0.1 * width, 0.03 * height), random_words(random, 4), 0.06 * height, ink)
    pen.line((0.1 * width, 0.12 * height, 0.1 * width, 0.9 * height, 0.95 * width, 0.9 * height), fill=ink, width=2)
    count = int(random.integers(3, 14))
    values = random.uniform(0.05, 0.75, count)
    if random.random() < 0.5:
        step = 0.84 * width / count
        color = random_color(random)
        for number, value in enumerate(values):
            left = 0.11 * width + number * step
            fill = random_color(random) if random.random() < 0.2 else color
            pen.rectangle((left, (0.9 - value) * height, left + 0.7 * step, 0.9 * height), fill=fill)
        return
    for _ in range(int(random.integers(1, 5))):
        values = np.clip(0.4 + np.cumsum(random.normal(0, 0.07, 30)), 0.02, 0.76)
        points = [
            ((0.1 + 0.84 * number / 29) * width, (0.9 - float(value)) * height) for number, value in enumerate(values)
        ]
        pen.line(points, fill=random_color(random), width=int(random.integers(1, 5)))


def _shapes(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    for _ in range(int(random.integers(4, 40))):
        x, y = random.uniform(-0.1, 1.0, 2) * size
        across, down = random.uniform(0.03, 0.5, 2) * size
        box = (x, y, x + across, y + down)
        fill = random_color(random)
        kind = int(random.integers(4))
        if kind == 0:
            pen.rectangle(box, fill=fill)
        elif kind == 1:
            pen.ellipse(box, fill=fill)
        elif kind == 2:
            corners = [(float(a), float(b)) for a, b in random.uniform(0, 1, (int(random.integers(3, 7)), 2)) * size]
            pen.polygon([(x + a / 3, y + b / 3) for a, b in corners], fill=fill)
        else:
            pen.line([(float(a), float(b)) for a, b in random.uniform(0, 1, (4, 2)) * size], fill=fill, width=5)
    del width, height, ink


def _tiles(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    columns, rows = int(random.integers(2, 6)), int(random.integers(2, 5))
    for row in range(rows):
        for column in range(columns):
            left, top = (column + 0.08) / columns * width, (row + 0.08) / rows * height
            right, bottom = (column + 0.92) / columns * width, (row + 0.75) / rows * height
            _block(pen, random, (left, top, right, bottom))
            draw_text_line(pen, (left, bottom + 2), random_words(random, 2), 0.12 * height / rows, ink)


def _table(pen: ImageDraw.ImageDraw, random: np.random.Generator, size: tuple[int, int], ink: Color) -> None:
    width, height = size
    columns, rows = int(random.integers(2, 7)), int(random.integers(4, 14))
    shade = random_color(random)
    for row in range(rows):
        top, bottom = (0.05 + 0.9 * row / rows) * height, (0.05 + 0.9 * (row + 1) / rows) * height
        if row == 0 or (row % 2 and random.random() < 0.8):
            pen.rectangle((0.04 * width, top, 0.96 * width, bottom), fill=shade)
        for column in range(columns):
            left = (0.05 + 0.9 * column / columns) * width
            text = str(int(random.integers(1, 99999))) if random.random() < 0.5 else random_words(random, 1)
            draw_text_line(pen, (left, top + 2), text, 0.6 * (bottom - top), ink)


def _block(pen: ImageDraw.ImageDraw, random: np.random.Generator, box: tuple[float, float, float, float]) -> None:
    """Draw a placeholder for a photograph: a rectangle with some shapes inside."""
    left, top, right, bottom = box
    pen.rectangle(box, fill=random_color(random))
    for _ in range(int(random.integers(1, 5))):
        xs = np.sort(random.uniform(left, right, 2))
        ys = np.sort(random.uniform(top, bottom, 2))
        bounds = (float(xs[0]), float(ys[0]), float(xs[1]), float(ys[1]))
        if random.random() < 0.5:
            pen.ellipse(bounds, fill=random_color(random))
        else:
            pen.rectangle(bounds, fill=random_color(random))
