"""Arrangement of the source in a copy's frame: crops, borders, split screens, insets and perspective.

An `Arrangement` returns the position in pixels, which determines both the transform and the ground truth. The
augmentations of training clips share `center_box`, `split_parts` and `homographies` with these edits, but not their
random choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from PIL import Image as PILImage
from PIL import ImageFilter

from vidkin.media.layouts import Rectangle, Size, center_box, split_parts
from vidkin.media.picture_edits import (
    ROTATION,
    Image,
    bar_width,
    off_center_window,
    resize,
    rotation_zoom,
    round_to_even,
)
from vidkin_research.copies.transforms import EditSetting, Transform, fill_size

Box = tuple[float, float, float, float]  # left, top, right, bottom, as fractions of the frame size


WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


# Offset in frames between the footage of the other parts of a split screen.
_FILLER_STEP = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """A part of the source frame and its position in the copy, in pixels.

    Attributes:
        size: Width and height of the source frame.
        crop: The visible part of the source frame.
        canvas: Width and height of the copy's frame.
        place: Box in the copy's frame to which the crop is scaled.
    """

    size: Size
    crop: Rectangle
    canvas: Size
    place: Rectangle

    @property
    def source_box(self) -> Box:
        """The crop as fractions of the source frame size."""
        return _to_fractions(self.crop, self.size)

    @property
    def edited_box(self) -> Box:
        """The position as fractions of the copy's frame size."""
        return _to_fractions(self.place, self.canvas)


# (source frame size, setting, fraction of the video that has passed, 0 to 1) -> layout
Arrangement = Callable[[Size, EditSetting, float], Layout]


# (source frame size, setting) -> boxes in the source and the copy
BoxPair = Callable[[Size, EditSetting], tuple[Box, Box]]


# (layout, setting) -> function that returns the canvas for each source frame
Background = Callable[[Layout, EditSetting], Callable[[Image], Image]]


def arrange_frames(arrange: Arrangement, background: Background | None = None) -> Transform:
    """Create a transform that crops, scales and places every frame according to the arrangement.

    Args:
        arrange: The arrangement; its canvas must not change during the video.
        background: Function that draws the canvas around the source; None if the source fills it.
    """

    def transform(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
        canvas_for: Callable[[Image], Image] | None = None
        for index, image in enumerate(frames):
            size = (image.shape[1], image.shape[0])
            layout = arrange(size, setting, index / max(1, setting.count - 1))
            left, top, right, bottom = layout.crop
            part = image[top:bottom, left:right]
            left, top, right, bottom = layout.place
            if part.shape[:2] != (bottom - top, right - left):
                part = resize(part, right - left, bottom - top)
            if background is None:
                yield part
                continue
            canvas_for = canvas_for or background(layout, setting)
            canvas = canvas_for(image)
            canvas[top:bottom, left:right] = part
            yield canvas

    return transform


def boxes_of(arrange: Arrangement) -> BoxPair:
    """Return the boxes of an arrangement; if it moves, at constant speed, their means over time."""

    def boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
        first, last = (arrange(size, setting, part) for part in (0.0, 1.0))
        return _mean_box(first.source_box, last.source_box), _mean_box(first.edited_box, last.edited_box)

    return boxes


def off_center(size: Size, setting: EditSetting, passed: float, *, share: float) -> Layout:
    """Crop to this fraction of each side; the offset on each axis is in one of the outer thirds of its range."""
    return _crop_layout(size, off_center_window(size, setting.random(), share))


def turned_center(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Crop to the largest centered 9:16 window; for portrait video, the largest 16:9 window."""
    return _crop_layout(size, _reoriented_window(size, 0.5))


def turned_pan(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Crop to a window as in `turned_center` that pans from one side to the other at constant speed."""
    random = setting.random()
    ends = [float(random.uniform(0, 0.3)), float(random.uniform(0.7, 1))]
    first, last = ends if random.random() < 0.5 else ends[::-1]
    return _crop_layout(size, _reoriented_window(size, first + passed * (last - first)))


def turned_borders(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Center the full frame in a 9:16 frame of its width; for portrait video, in a 16:9 frame of its height."""
    short = round_to_even(min(size))
    long = round_to_even(short * 16 / 9)
    canvas = (short, long) if size[0] >= size[1] else (long, short)
    return _center_layout(size, canvas, 1.0)


def square_borders(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Center the full frame in a square, with margins of at least 4 %."""
    side = round_to_even(min(size))
    return _center_layout(size, (side, side), 0.92)


def part_of(size: Size, setting: EditSetting, passed: float, *, columns: int, rows: int) -> Layout:
    """Place the full frame in one part of a split screen with this many columns and rows, chosen by the seed."""
    random = setting.random()
    column, row = int(random.integers(columns)), int(random.integers(rows))
    # Keep the copy's shorter side no longer than the source's.
    factor = min(size) / min(size[0] * columns, size[1] * rows)
    width, height = round_to_even(size[0] * factor), round_to_even(size[1] * factor)
    canvas = (columns * width, rows * height)
    box = split_parts((width, height), canvas, columns, rows)[row * columns + column]
    return Layout(size, (0, 0, *size), canvas, box)


def corner_inset(size: Size, setting: EditSetting, passed: float) -> Layout:
    """Place the full frame in a corner at 45 % of the width and height, 4 % away from the edges."""
    right, bottom = setting.random().integers(2, size=2)
    width, height = round_to_even(0.45 * size[0]), round_to_even(0.45 * size[1])
    gap_x, gap_y = round(0.04 * size[0]), round(0.04 * size[1])
    left = size[0] - gap_x - width if right else gap_x
    top = size[1] - gap_y - height if bottom else gap_y
    return Layout(size, (0, 0, *size), size, (left, top, left + width, top + height))


def inset(size: Size, setting: EditSetting, passed: float, *, share: float) -> Layout:
    """Place the full frame at a random position, scaled to this fraction of the width and height."""
    random = setting.random()
    width, height = round_to_even(share * size[0]), round_to_even(share * size[1])
    left = int(random.integers(size[0] - width + 1))
    top = int(random.integers(size[1] - height + 1))
    return Layout(size, (0, 0, *size), size, (left, top, left + width, top + height))


def one_color(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """Fill the background with one color, chosen by the seed."""
    color = np.random.default_rng([setting.seed, 2]).integers(256, size=3).astype(np.uint8)
    width, height = layout.canvas
    return lambda image: np.tile(color, (height, width, 1))


def blurred_copy(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """Fill the background with the frame itself, enlarged and blurred."""
    width, height = layout.canvas
    # Blurring a small image looks the same and takes a fraction of the time.
    small = (max(8, width // 8), max(8, height // 8))

    def canvas(image: Image) -> Image:
        picture = PILImage.fromarray(fill_size(image, *small)).filter(ImageFilter.GaussianBlur(2.5))
        return np.array(picture.resize((width, height), PILImage.Resampling.BILINEAR))

    return canvas


def other_footage(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """Fill the background with unrelated footage."""
    footage = setting.footage(*layout.canvas)
    return lambda image: next(footage).copy()


def other_parts(layout: Layout, setting: EditSetting) -> Callable[[Image], Image]:
    """Fill each other part of a split screen with unrelated footage."""
    left, top, right, bottom = layout.place
    width, height = right - left, bottom - top
    columns, rows = layout.canvas[0] // width, layout.canvas[1] // height
    others = split_parts((width, height), layout.canvas, columns, rows)
    others.remove(layout.place)
    streams = [islice(setting.footage(width, height), number * _FILLER_STEP, None) for number in range(len(others))]

    def canvas(image: Image) -> Image:
        result = np.empty((layout.canvas[1], layout.canvas[0], 3), dtype=np.uint8)
        for (left, top, right, bottom), stream in zip(others, streams, strict=True):
            result[top:bottom, left:right] = next(stream)
        return result

    return canvas


def whole_boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
    """Return the boxes of a source that fills the copy."""
    return WHOLE, WHOLE


def barred_boxes(size: Size, setting: EditSetting, *, across: bool) -> tuple[Box, Box]:
    """Return the boxes of `barred`: bars of 12 % on two sides, rounded to pixels."""
    side = size[1 if across else 0]
    bar = bar_width(side)
    share = bar / (side + 2 * bar)
    return WHOLE, (0.0, share, 1.0, 1.0 - share) if across else (share, 0.0, 1.0 - share, 1.0)


def rotated_boxes(size: Size, setting: EditSetting) -> tuple[Box, Box]:
    """Return the boxes of `rotated`: the smallest upright box around the part that remains in the frame."""
    cos, sin = math.cos(ROTATION), math.sin(ROTATION)
    wide, high = size[0] / size[1], size[1] / size[0]
    zoom = rotation_zoom(*size)
    across, down = (cos + sin * high) / zoom / 2, (cos + sin * wide) / zoom / 2
    return (0.5 - across, 0.5 - down, 0.5 + across, 0.5 + down), WHOLE


def _reoriented_window(size: Size, position: float) -> Rectangle:
    """Return the largest window of the other orientation, at this fraction of its range."""
    width, height = size
    if width >= height:
        side = min(width, round_to_even(height * 9 / 16))
        left = round(position * (width - side))
        return (left, 0, left + side, height)
    side = min(height, round_to_even(width * 9 / 16))
    top = round(position * (height - side))
    return (0, top, width, top + side)


def _crop_layout(size: Size, window: Rectangle) -> Layout:
    left, top, right, bottom = window
    canvas = (right - left, bottom - top)
    return Layout(size, window, canvas, (0, 0, *canvas))


def _center_layout(size: Size, canvas: Size, share: float) -> Layout:
    """Center the full frame, as large as fits in this fraction of the canvas."""
    factor = share * min(canvas[0] / size[0], canvas[1] / size[1])
    width, height = (min(side, round_to_even(own * factor)) for own, side in zip(size, canvas, strict=True))
    return Layout(size, (0, 0, *size), canvas, center_box((width, height), canvas))


def _to_fractions(box: Rectangle, size: Size) -> Box:
    width, height = size
    return (box[0] / width, box[1] / height, box[2] / width, box[3] / height)


def _mean_box(first: Box, second: Box) -> Box:
    left, top, right, bottom = ((a + b) / 2 for a, b in zip(first, second, strict=True))
    return (left, top, right, bottom)
