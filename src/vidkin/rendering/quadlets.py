"""A picture of drawn quadlets: what the embedding holds for near, for farther, and for far."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vidkin.datasets import LabelledItem, LabelledSet, read_item
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import sample_quadlets
from vidkin.models import Encoder
from vidkin.training.data.inputs import OnItem
from vidkin.training.evaluation import embed_set

__all__ = ["draw_quadlets"]

_TITLES = ("query", "positive", "intermediate", "negative")
_RIGHT, _WRONG = "tab:green", "tab:red"


def draw_quadlets(
    model: Encoder,
    labelled: LabelledSet,
    path: str | os.PathLike[str],
    *,
    count: int = 6,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> float:
    """Draw quadlets from the labels and show them, a row each: query, positive, intermediate, negative.

    Below the pictures stand their subcategory and their squared distance to the query; a row is framed in green where
    the order d(q,p) < d(q,i) < d(q,n) holds, in red where it does not. Of a video its middle frame is shown.

    Args:
        model: That measures.
        labelled: A part of a collection.
        path: The picture, ``.png`` or ``.svg``.
        count: Rows.
        seed: Of the draw.
        cache: Folder of features of a frozen backbone.
        threads: Files that are decoded at a time.
        on_item: As of :func:`vidkin.training.evaluate`.

    Returns:
        The share of rows in the right order.

    Raises:
        InvalidArgumentError: The labels allow no quadlets, or the picture cannot be written.
    """
    embeddings, made = embed_set(model, labelled, cache=cache, threads=threads, on_item=on_item)
    drawn = sample_quadlets(made.labels, count, seed=seed, ineligible="skip").stacked()
    distances = (embeddings[drawn] - embeddings[drawn[:, :1]]).square().sum(dim=2)
    right = (distances[:, 1] < distances[:, 2]) & (distances[:, 2] < distances[:, 3])
    _draw(made.labelled, drawn, distances, right, Path(path), model.config.size)
    return float(right.float().mean())


def _draw(
    labelled: LabelledSet, drawn: Tensor, distances: Tensor, right: Tensor, path: Path, size: int
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.95 * len(drawn) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(drawn), 4, squeeze=False)
    for row, indices in enumerate(drawn.tolist()):
        for column, index in enumerate(indices):
            axis, item = axes[row][column], labelled.items[index]
            axis.imshow(_picture(labelled, index, max(size, 96)))
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color(_RIGHT if bool(right[row]) else _WRONG)
                spine.set_linewidth(2.5)
            below = "" if column == 0 else f"\nd = {float(distances[row, column]):.3f}"
            # A name of a stranger's folder is no formula, whatever dollar signs are in it.
            axis.set_xlabel(f"{_caption(item)}{below}", fontsize=7, parse_math=False)
            if row == 0:
                axis.set_title(_TITLES[column], fontsize=9)
    try:
        with warnings.catch_warnings():
            # A letter that no font at hand has is drawn as a box; that is no reason for lines of warnings.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(path, dpi=100)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"the picture {path} cannot be written: {error}") from error


def _caption(item: LabelledItem) -> str:
    """Both labels: where two categories have a subcategory of one name, a negative would look like a positive."""
    return f"{_short(item.category, 12)} / {_short(item.subcategory, 20)}"


def _short(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"


def _picture(labelled: LabelledSet, index: int, size: int) -> NDArray[np.uint8]:
    item = labelled.items[index]
    if labelled.kind == "image":
        return read_item(item, "image", size=size)
    # One frame at the middle of a video; of strokes the finished drawing.
    frames = read_item(item, labelled.kind, size=size, frames=1)
    picture: NDArray[np.uint8] = frames[0]
    return picture
