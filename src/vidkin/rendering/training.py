"""A picture of the first training batch: what the network will see, with labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw

from vidkin.datasets import LabelledItem, LabelledSet, read_item
from vidkin.metric.sampling import sample_quadlets
from vidkin.models import Encoder
from vidkin.rendering.pictures import PathLike, new_figure, require_picture_name, set_text, write_figure
from vidkin.training import FirstBatch
from vidkin.training.evaluation import embed_set
from vidkin.training.inputs import OnItem

__all__ = ["FRAME_COLORS", "draw_first_batch", "draw_quadlets", "draw_retrieval"]

_MOST_ROWS = 8

# Of a batch that has no tuples.
_COLUMNS = 6

# Of a clip: the first, the middle and the last.
_FRAMES = 3

_GAP = ((0, 0), (0, 0), (0, 2), (0, 0))


def draw_first_batch(batch: FirstBatch, path: PathLike) -> int:
    """Draw up to eight rows of items, one tuple a row if the objective draws tuples. A clip is shown as three frames.

    Args:
        batch: The batch.
        path: The picture, ``.png`` or ``.svg``.

    Returns:
        Number of items drawn.

    Raises:
        InvalidArgumentError: The extension is not a picture format, or the folder does not exist.
        MediaError: The picture cannot be written.
    """
    require_picture_name(path)
    count, columns = len(batch.items), len(batch.members) or _COLUMNS
    tuples = count // columns
    if batch.members:
        # Stored member by member: all queries, all positives, ...
        lines = [[member * tuples + row for member in range(columns)] for row in range(tuples)]
    else:
        lines = [list(range(start, min(start + columns, count))) for start in range(0, count, columns)]
    lines = lines[:_MOST_ROWS]
    frames = batch.images.shape[1]
    shown = sorted({0, frames // 2, frames - 1}) if frames >= _FRAMES else list(range(frames))
    figure = new_figure(1.2 * columns * (0.5 + 0.5 * len(shown)), 1.15 * len(lines) + 0.5, dpi=100)
    axes = figure.subplots(len(lines), columns, squeeze=False)
    for row, line in enumerate(lines):
        for column, axis in enumerate(axes[row]):
            if column >= len(line):
                axis.set_axis_off()
                continue
            item = batch.items[line[column]]
            # White lines between the frames of a clip.
            strip = np.pad(batch.images[line[column]][shown], _GAP, constant_values=255)
            axis.imshow(np.concatenate(list(strip), axis=1)[:, : -_GAP[2][1]])
            axis.set_xticks([])
            axis.set_yticks([])
            set_text(
                axis.set_xlabel("", fontsize=6),
                " / ".join(filter(None, (item.category[:18], item.subcategory[:24]))),
            )
            if batch.members and row == 0:
                axis.set_title(batch.members[column], fontsize=8)
    write_figure(figure, path)
    return sum(map(len, lines))


# A picture of sampled quadlets: what the model ranks as near, farther and far from the query.


_TITLES = ("query", "positive", "intermediate", "negative")

_RIGHT, _WRONG = "tab:green", "tab:red"


def draw_quadlets(
    model: Encoder,
    labelled: LabelledSet,
    path: PathLike,
    *,
    count: int = 6,
    seed: int = 0,
    cache: PathLike | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> float:
    """Sample quadlets from the labels and draw one row for each: query, positive, intermediate, negative.

    Below each image are its labels and its squared distance to the query. A row has a green frame if the order
    d(q,p) < d(q,i) < d(q,n) holds, a red one if it does not. Videos are shown by their middle frame.

    Args:
        model: Computes the embeddings.
        labelled: A part of a collection.
        path: The picture, ``.png`` or ``.svg``.
        count: Number of rows.
        seed: Seed of the sample.
        cache: Folder with cached features of a frozen backbone.
        threads: Number of files decoded at a time.
        on_item: Callback as in :func:`vidkin.training.evaluate`.

    Returns:
        The share of rows in the right order, in [0, 1].

    Raises:
        InvalidArgumentError: The labels have no quadlets, the extension is not a picture format, or the folder does
            not exist.
        MediaError: The picture cannot be written.
    """
    require_picture_name(path)
    embeddings, made = embed_set(model, labelled, cache=cache, threads=threads, on_item=on_item)
    drawn = sample_quadlets(made.labels, count, seed=seed, ineligible="skip").stacked()
    distances = (embeddings[drawn] - embeddings[drawn[:, :1]]).square().sum(dim=2)
    right = (distances[:, 1] < distances[:, 2]) & (distances[:, 2] < distances[:, 3])
    size = max(model.config.size, 96)
    figure = new_figure(7.0, 1.95 * len(drawn) + 0.4, dpi=100)
    axes = figure.subplots(len(drawn), 4, squeeze=False)
    for row, indices in enumerate(drawn.tolist()):
        for column, index in enumerate(indices):
            axis, item = axes[row][column], made.labelled.items[index]
            # The middle frame of a video, the finished drawing of strokes.
            frames = None if made.labelled.kind == "image" else 1
            image = read_item(item, made.labelled.kind, size=size, frames=frames)
            axis.imshow(image if frames is None else image[0])
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color(_RIGHT if bool(right[row]) else _WRONG)
                spine.set_linewidth(2.5)
            # Both labels, because two categories can have subcategories of the same name.
            caption = f"{_shorten(item.category, 12)} / {_shorten(item.subcategory, 20)}"
            below = "" if column == 0 else f"\nd = {float(distances[row, column]):.3f}"
            set_text(axis.set_xlabel("", fontsize=7), f"{caption}{below}")
            if row == 0:
                axis.set_title(_TITLES[column], fontsize=9)
    write_figure(figure, path)
    return float(right.float().mean())


def _shorten(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"


# A picture of retrieval: queries on the left, the top results of each method beside them, framed by relevance.


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
    labelled: LabelledSet,
    ranked: Mapping[str, Mapping[int, Sequence[int]]],
    path: str | os.PathLike[str],
    *,
    gallery_split: str = "train",
) -> None:
    """Write the picture as PNG.

    Args:
        labelled: A collection with the parts ``test`` (queries) and ``gallery_split`` (results).
        ranked: Title of a method -> number of a query in the test split -> numbers in ``gallery_split``, best first.
            All methods have the same queries.
        path: The file to write.
        gallery_split: The split that the results are from.
    """
    queries, gallery = labelled.part("test").items, labelled.part(gallery_split).items
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
        sheet.paste(_thumbnail(labelled, query), (_FRAME, middle + _FRAME))
        for line, (title, rows) in enumerate(ranked.items()):
            row_top = top + line * _CELL
            draw.text((_CELL + 6, row_top + _SIDE // 2), title, fill="black")
            for column, result in enumerate(rows[number]):
                left = _CELL + _LABEL + column * _CELL
                item = gallery[result]
                corner = (left, row_top, left + _SIDE + 2 * _FRAME - 1, row_top + _SIDE + 2 * _FRAME - 1)
                relevance = (
                    0 if query.category != item.category else 1 + (query.subcategory == item.subcategory)
                )
                draw.rectangle(corner, fill=FRAME_COLORS[relevance])
                sheet.paste(_thumbnail(labelled, item), (left + _FRAME, row_top + _FRAME))
    # A palette cuts the file to a third of its size with no visible difference.
    sheet.quantize(_COLORS).save(path, format="PNG", optimize=True)


def _thumbnail(labelled: LabelledSet, item: LabelledItem) -> Image.Image:
    """Thumbnail of an image, of the middle frame of a video, or of a finished drawing."""
    frames = read_item(
        item, labelled.kind, size=_SIDE, frames=None if labelled.kind == "image" else 1, fit="crop"
    )
    return Image.fromarray(frames if frames.ndim == 3 else frames[0])
