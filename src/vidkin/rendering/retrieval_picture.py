"""The picture of a retrieval: queries at the left, what each method ranks first beside them, framed by relevance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from vidkin.datasets import LabelledItem, LabelledSet

__all__ = ["FRAME_COLOURS", "draw_retrieval"]

FRAME_COLOURS = {2: "#2ca02c", 1: "#1f77b4", 0: "#d62728"}
"""Frames of results: green for the query's subcategory, blue for its category, red for anything else."""

_SIDE = 56
_FRAME = 4
_GAP = 3
_LABEL = 190
_QUERY_GAP = 14
_COLOURS = 256
_CELL = _SIDE + 2 * _FRAME + _GAP


def draw_retrieval(
    labelled: LabelledSet,
    ranked: Mapping[str, Mapping[int, Sequence[int]]],
    path: str | os.PathLike[str],
) -> None:
    """Write the picture as PNG.

    Args:
        labelled: With the parts ``test`` (queries) and ``train`` (results).
        ranked: Title of a method -> number of a query in the test part -> numbers in the train part, best first.
            All methods have the same queries.
        path: The file.
    """
    from PIL import Image, ImageDraw

    queries, gallery = labelled.part("test").items, labelled.part("train").items
    shown = list(next(iter(ranked.values())))
    results = max(len(row) for rows in ranked.values() for row in rows.values())
    block = len(ranked) * _CELL
    size = (_CELL + _LABEL + results * _CELL, len(shown) * (block + _QUERY_GAP) - _QUERY_GAP)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    for place, number in enumerate(shown):
        top = place * (block + _QUERY_GAP)
        query = queries[number]
        middle = top + (block - _CELL) // 2
        sheet.paste(_picture(labelled, query), (_FRAME, middle + _FRAME))
        for line, (title, rows) in enumerate(ranked.items()):
            row_top = top + line * _CELL
            draw.text((_CELL + 6, row_top + _SIDE // 2), title, fill="black")
            for column, found in enumerate(rows[number]):
                left = _CELL + _LABEL + column * _CELL
                item = gallery[found]
                corner = (left, row_top, left + _SIDE + 2 * _FRAME - 1, row_top + _SIDE + 2 * _FRAME - 1)
                draw.rectangle(corner, fill=FRAME_COLOURS[_relevance(query, item)])
                sheet.paste(_picture(labelled, item), (left + _FRAME, row_top + _FRAME))
    # A palette makes the file a third as large and costs nothing that can be seen at this size.
    sheet.quantize(_COLOURS).save(path, format="PNG", optimize=True)


def _picture(labelled: LabelledSet, item: LabelledItem) -> Image:
    """An image, the middle of a video, or a finished drawing."""
    from PIL import Image

    from vidkin.datasets import read_item

    pictures = read_item(
        item, labelled.kind, size=_SIDE, frames=None if labelled.kind == "image" else 1, fit="crop"
    )
    return Image.fromarray(pictures if pictures.ndim == 3 else pictures[0])


def _relevance(query: LabelledItem, item: LabelledItem) -> int:
    if query.category != item.category:
        return 0
    return 2 if query.subcategory == item.subcategory else 1
