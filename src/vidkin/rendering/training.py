"""Figures for a training run: the first batch as the network sees it, and quadlets ranked by the trained model."""

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

# Items per row if the batch has no tuples.
_COLUMNS = 6

# Number of frames shown per clip: the first, middle and last.
_FRAMES = 3

_GAP = ((0, 0), (0, 0), (0, 2), (0, 0))


@check_arguments
def draw_first_batch(batch: FirstBatch, path: PathLike, *, source: str | None = None) -> int:
    """Draw up to eight rows of items, with one tuple per row if the objective samples tuples; clips are shown as three
    frames.

    Args:
        batch: The batch.
        path: Output image, ``.png`` or ``.svg``.
        source: Description of the data, see :func:`vidkin._base.outputs.open_output`.

    Returns:
        Number of items shown.

    Raises:
        InvalidArgumentError: The extension is not an image format, or the folder does not exist.
        MediaError: The image cannot be written.
    """
    require_picture_name(path)
    count, columns = len(batch.items), len(batch.members) or _COLUMNS
    tuples = count // columns
    if batch.members:
        # Items are grouped by member: all queries, all positives, ...
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
            # Separate the frames of a clip by white lines.
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
    """Sample quadlets from the labels and draw a row for each: query, positive, intermediate, negative.

    Each image is captioned with its labels and its squared distance to the query. A row is framed in green if d(q,p) <
    d(q,i) < d(q,n), and in red otherwise. Videos are represented by their middle frame.

    Args:
        model: Model that computes the embeddings.
        labeled: A split of a labeled dataset.
        path: Output image, ``.png`` or ``.svg``.
        count: Number of rows.
        seed: Seed for sampling.
        cache: Folder with cached features of a frozen backbone.
        threads: Number of files to decode in parallel.
        source: Description of the data, see :func:`vidkin._base.outputs.open_output`.
        on_item: Callback as in :func:`vidkin.training.evaluate`.

    Returns:
        Fraction of rows that are ranked correctly, in [0, 1].

    Raises:
        InvalidArgumentError: The labels have no quadlets, the extension is not an image format, or the folder does not
            exist.
        MediaError: The image cannot be written.
    """
    require_picture_name(path)
    embeddings, inputs = embed_set(model, labeled, cache=cache, threads=threads, on_item=on_item)
    quadlets = sample_quadlets(inputs.labels, count, seed=seed, ineligible="skip").stacked()
    distances = (embeddings[quadlets] - embeddings[quadlets[:, :1]]).square().sum(dim=2)
    right = (distances[:, 1] < distances[:, 2]) & (distances[:, 2] < distances[:, 3])
    size = max(model.config.size, 96)
    figure = new_figure(7.0, 1.95 * len(quadlets) + 0.4, dpi=100)
    axes = figure.subplots(len(quadlets), 4, squeeze=False)
    for row, indices in enumerate(quadlets.tolist()):
        for column, index in enumerate(indices):
            axis, item = axes[row][column], inputs.labelled.items[index]
            # With frames=1, a video is read as its middle frame.
            frames = None if inputs.labelled.kind == "image" else 1
            image = read_item(item, inputs.labelled.kind, size=size, frames=frames)
            axis.imshow(image if frames is None else image[0])
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color(_RIGHT if bool(right[row]) else _WRONG)
                spine.set_linewidth(2.5)
            # Show both labels, because two categories can have subcategories with the same name.
            caption = f"{_shorten(item.category, 12)} / {_shorten(item.subcategory, 20)}"
            below = "" if column == 0 else f"\nd = {float(distances[row, column]):.3f}"
            set_text(axis.set_xlabel("", fontsize=7), f"{caption}{below}")
            if row == 0:
                axis.set_title(_TITLES[column], fontsize=9)
    write_figure(figure, path, source=source)
    return float(right.float().mean())


def _shorten(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"
