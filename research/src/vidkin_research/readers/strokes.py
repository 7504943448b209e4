"""Videos of pen strokes: the item kind ``strokes``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vidkin.datasets import LabelledItem, read_content, register_kind
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["STROKES", "Drawing", "draw_strokes", "parse_strokes", "read_strokes"]

STROKES = "strokes"
"""Name of the item kind."""

# Omniglot was drawn on a canvas of 105 pixels.
_FIELD = 105.0

# Lines are drawn at twice the size and averaged down, which is smooth enough; four times would cost four times as much.
_OVERSAMPLING = 2


@dataclass(frozen=True)
class Drawing:
    """The movements of a pen.

    Attributes:
        points: [P, 2] float64, x (right) and y (down) relative to the side of the paper, 0 to 1 within it.
        times: [P] float64, seconds since the first touch, non-decreasing.
        starts: Index in ``points`` at which each stroke (pen down to pen up) starts, increasing from 0.
    """

    points: NDArray[np.float64]
    times: NDArray[np.float64]
    starts: tuple[int, ...]

    @property
    def duration(self) -> float:
        """Seconds from the first touch to the last movement."""
        return float(self.times[-1])


def parse_strokes(text: str, *, name: str = "strokes") -> Drawing:
    """Read pen movements in Omniglot's format: lines ``x,y,milliseconds`` with y up, ``START`` and ``BREAK``.

    Times that run backward, as in some recordings, are replaced with the latest earlier time.

    Args:
        text: Content of the file.
        name: Name of the file for error messages.

    Raises:
        DatasetError: A line is malformed, or there is no movement.
    """
    rows: list[tuple[float, float, float]] = []
    starts: list[int] = []
    fresh = True
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if line in ("", "START"):
            continue
        if line == "BREAK":
            fresh = True
            continue
        try:
            x, y, time = (float(value) for value in line.split(","))
        except ValueError as error:
            raise DatasetError(
                f"{name}, line {number}: {line[:40]!r} must be x,y,milliseconds, START or BREAK"
            ) from error
        if fresh:
            starts.append(len(rows))
            fresh = False
        rows.append((x, y, time))
    if not rows:
        raise DatasetError(f"{name}: no pen movement; the file must have lines x,y,milliseconds")
    table = np.array(rows, dtype=np.float64)
    if not np.isfinite(table).all():
        raise DatasetError(f"{name}: numbers must be finite")
    times = np.maximum.accumulate(table[:, 2] - table[0, 2]) / 1000.0
    return Drawing(table[:, :2] * [1.0, -1.0] / _FIELD, times, tuple(starts))


def draw_strokes(drawing: Drawing, times: NDArray[np.float64], *, size: int, width: float = 4.0) -> NDArray[np.uint8]:
    """Draw the strokes at several times, as black ink on white paper.

    Args:
        drawing: The movements.
        times: [T] seconds, in order; each image shows the drawing up to its time.
        size: Side of the images in pixels.
        width: Line width for a canvas of 105 pixels; about 4 in Omniglot's own images.

    Returns:
        Images [T, size, size, 3] uint8.
    """
    if size < 1:
        raise InvalidArgumentError(f"size must be at least 1 pixel, got {size}")
    side = size * _OVERSAMPLING
    pen = max(1, round(width * side / _FIELD))
    paper = Image.new("L", (side, side), 255)
    draw = ImageDraw.Draw(paper)
    places = [(float(x) * side, float(y) * side) for x, y in drawing.points]
    begins = set(drawing.starts)
    pictures = np.empty((len(times), size, size), dtype=np.uint8)
    shown = 0
    for index, time in enumerate(times):
        count = int(np.searchsorted(drawing.times, time, side="right"))
        for number in range(shown, count):
            x, y = places[number]
            draw.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), fill=0)
            if number not in begins:
                draw.line((places[number - 1], (x, y)), fill=0, width=pen)
        if count > shown or index == 0:
            small = np.asarray(paper.reduce(_OVERSAMPLING))
            shown = max(count, shown)
        pictures[index] = small
    return np.repeat(pictures[..., None], 3, axis=-1)


def read_strokes(item: LabelledItem, size: int, frames: int | None, rate: float | None) -> NDArray[np.uint8]:
    """Render the video of an item, [T, size, size, 3], which ends with the finished drawing.

    Args:
        item: Item whose file or archive member contains movements in the format of :func:`parse_strokes`.
        size: Side of the images in pixels.
        frames: Number of frames, from the first touch to the finished drawing; with ``rate``, the maximum.
        rate: Frames per second; 10 if both are None.

    Raises:
        MediaError: The file cannot be read.
        DatasetError: The archive member is missing, or the movements are malformed.
    """
    drawing = parse_strokes(read_content(item).decode("utf-8", errors="replace"), name=item.key())
    if frames is not None and rate is None:
        times = np.linspace(0.0, drawing.duration, frames) if frames > 1 else np.array([drawing.duration])
    else:
        rate = rate or 10.0
        # The last frame shows the finished drawing.
        times = np.arange(math.ceil(drawing.duration * rate - 1e-9) + 1) / rate
        times = times[:frames]
    return draw_strokes(drawing, times, size=size)


register_kind(STROKES, read_strokes)
