"""Figures of a training: the first batch as the network sees it, and quadlets ranked by the trained model."""

from __future__ import annotations

import numpy as np

from vidkin._base.arguments import check_arguments
from vidkin.datasets import LabelledSet, read_item
from vidkin.metric.sampling import sample_quadlets
from vidkin.models import Encoder
from vidkin.rendering.pictures import PathLike, new_figure, require_picture_name, set_text, write_figure
from vidkin.training import FirstBatch
from vidkin.training.evaluation import embed_set
from vidkin.training.inputs import OnItem

_MAX_ROWS = 8

# Items a row if the batch has no tuples.
_COLUMNS = 6

# Frames shown of a clip: the first, the middle and the last.
_FRAMES = 3

_GAP = ((0, 0), (0, 0), (0, 2), (0, 0))


@check_arguments
def draw_first_batch(batch: FirstBatch, path: PathLike, *, source: str | None = None) -> int:
    """Draw up to eight rows of items, one tuple a row if the objective draws tuples. A clip is shown as three frames.

    Args:
        batch: The batch.
        path: The image, ``.png`` or ``.svg``.
        source: Description of the data drawn, see :func:`vidkin._base.outputs.open_output`.

    Returns:
        Number of items drawn.

    Raises:
        InvalidArgumentError: The extension is not an image format, or the folder does not exist.
        MediaError: The image cannot be written.
    """
    require_picture_name(path)
    count, columns = len(batch.items), len(batch.members) or _COLUMNS
    tuples = count // columns
    if batch.members:
        # Stored member by member: all queries, all positives, ...
        lines = [[member * tuples + row for member in range(columns)] for row in range(tuples)]
    else:
        lines = [list(range(start, min(start + columns, count))) for start in range(0, count, columns)]
    lines = lines[:_MAX_ROWS]
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
    write_figure(figure, path, source=source)
    return sum(map(len, lines))


_TITLES = ("query", "positive", "intermediate", "negative")

_RIGHT, _WRONG = "tab:green", "tab:red"


@check_arguments
def draw_quadlets(
    model: Encoder,
    labeled: LabelledSet,
    path: PathLike,
    *,
    count: int = 6,
    seed: int = 0,
    cache: PathLike | None = None,
    threads: int = 1,
    source: str | None = None,
    on_item: OnItem | None = None,
) -> float:
    """Sample quadlets from the labels and draw one row for each: query, positive, intermediate, negative.

    Below each image are its labels and its squared distance to the query. A row is framed green if the order d(q,p) <
    d(q,i) < d(q,n) holds, and red otherwise. Videos are shown by their middle frame.

    Args:
        model: Computes the embeddings.
        labeled: A part of a collection.
        path: The image, ``.png`` or ``.svg``.
        count: Number of rows.
        seed: Seed of the sample.
        cache: Folder with cached features of a frozen backbone.
        threads: Number of files decoded at a time.
        source: Description of the data drawn, see :func:`vidkin._base.outputs.open_output`.
        on_item: Callback as in :func:`vidkin.training.evaluate`.

    Returns:
        The share of rows in the right order, in [0, 1].

    Raises:
        InvalidArgumentError: The labels have no quadlets, the extension is not an image format, or the folder does not
            exist.
        MediaError: The image cannot be written.
    """
    require_picture_name(path)
    embeddings, made = embed_set(model, labeled, cache=cache, threads=threads, on_item=on_item)
    drawn = sample_quadlets(made.labels, count, seed=seed, ineligible="skip").stacked()
    distances = (embeddings[drawn] - embeddings[drawn[:, :1]]).square().sum(dim=2)
    right = (distances[:, 1] < distances[:, 2]) & (distances[:, 2] < distances[:, 3])
    size = max(model.config.size, 96)
    figure = new_figure(7.0, 1.95 * len(drawn) + 0.4, dpi=100)
    axes = figure.subplots(len(drawn), 4, squeeze=False)
    for row, indices in enumerate(drawn.tolist()):
        for column, index in enumerate(indices):
            axis, item = axes[row][column], made.labelled.items[index]
            # The middle frame of a video.
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
    write_figure(figure, path, source=source)
    return float(right.float().mean())


def _shorten(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"
