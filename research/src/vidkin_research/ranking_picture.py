"""Retrieval image: queries on the left, each method's top results next to them, framed by relevance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from PIL import Image, ImageDraw

from vidkin.datasets import LabelledItem, LabelledSet, read_item

__all__ = ["FRAME_COLORS", "draw_retrieval"]

FRAME_COLORS = {2: "#2ca02c", 1: "#1f77b4", 0: "#d62728"}

"""Frame color of results by relevance: green for the same subcategory, blue for the same category, red otherwise."""

_SIDE = 56

_FRAME = 4

_SPACE = 3

_LABEL = 190

_QUERY_SPACE = 14

_COLORS = 256

_CELL = _SIDE + 2 * _FRAME + _SPACE


def draw_retrieval(
    labeled: LabelledSet,
    ranked: Mapping[str, Mapping[int, Sequence[int]]],
    path: str | os.PathLike[str],
    *,
    gallery_split: str = "train",
) -> None:
    """Draw the rankings as a PNG image.

    Args:
        labeled: A collection with the splits ``test`` (queries) and ``gallery_split`` (results).
        ranked: Method title -> index of a query in the test split -> indices of results in ``gallery_split``, best
            first. All methods must have the same queries.
        path: Path of the image file.
        gallery_split: Split that the results come from.
    """
    queries, gallery = labeled.part("test").items, labeled.part(gallery_split).items
    shown = list(next(iter(ranked.values())))
    results = max(len(row) for rows in ranked.values() for row in rows.values())
    block = len(ranked) * _CELL
    size = (_CELL + _LABEL + results * _CELL, len(shown) * (block + _QUERY_SPACE) - _QUERY_SPACE)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    for row, number in enumerate(shown):
        top = row * (block + _QUERY_SPACE)
        query = queries[number]
        middle = top + (block - _CELL) // 2
        sheet.paste(_thumbnail(labeled, query), (_FRAME, middle + _FRAME))
        for line, (title, rows) in enumerate(ranked.items()):
            row_top = top + line * _CELL
            draw.text((_CELL + 6, row_top + _SIDE // 2), title, fill="black")
            for column, result in enumerate(rows[number]):
                left = _CELL + _LABEL + column * _CELL
                item = gallery[result]
                corner = (left, row_top, left + _SIDE + 2 * _FRAME - 1, row_top + _SIDE + 2 * _FRAME - 1)
                relevance = 0 if query.category != item.category else 1 + (query.subcategory == item.subcategory)
                draw.rectangle(corner, fill=FRAME_COLORS[relevance])
                sheet.paste(_thumbnail(labeled, item), (left + _FRAME, row_top + _FRAME))
    # A palette reduces the file size to a third without a visible difference.
    sheet.quantize(_COLORS).save(path, format="PNG", optimize=True)


def _thumbnail(labeled: LabelledSet, item: LabelledItem) -> Image.Image:
    """Return a thumbnail of an image, the middle frame of a video, or a finished drawing."""
    frames = read_item(item, labeled.kind, size=_SIDE, frames=None if labeled.kind == "image" else 1, fit="crop")
    return Image.fromarray(frames if frames.ndim == 3 else frames[0])
