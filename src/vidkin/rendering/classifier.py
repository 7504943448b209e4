"""Figures for a classifier: retrieval results, misclassified items with their nearest neighbors, and an embedding
plot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.outputs import check_free
from vidkin._base.registry import import_part
from vidkin.datasets import LabelledItem, LabelledSet, read_item
from vidkin.rendering.pictures import new_figure, set_text, short_name, write_figure
from vidkin.training import DescribedParts, nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUERIES, _RESULTS, _WRONG = 6, 5, 9
_RIGHT_COLOR, _WRONG_COLOR = "#2ca02c", "#d62728"
_SIDE = 112
# t-SNE takes minutes for more points.
_MAX_POINTS = 1000


def picture_paths(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the paths of the files that :func:`draw_classifier` writes to a folder."""
    return tuple(Path(folder) / f"{name}.png" for name in ("retrieval", "misclassified", "embedding"))


@check_arguments
def draw_classifier(
    parts: DescribedParts, folder: str | os.PathLike[str], *, seed: int = 0, source: str | None = None
) -> tuple[Path, ...]:
    """Write ``retrieval.png``, ``misclassified.png`` and ``embedding.png`` to a folder.

    ``retrieval``: evenly spaced test items and their nearest training items, framed in green if the class is the same
    and in red otherwise. ``misclassified``: misclassified test items, each next to its nearest training item.
    ``embedding``: t-SNE plot of up to 1,000 test items.

    Args:
        parts: Test and training items with the model's outputs.
        folder: An existing folder.
        seed: Seed for t-SNE.
        source: Description of the data, see :func:`vidkin._base.outputs.open_output`.

    Returns:
        Paths of the files.

    Raises:
        MediaError: A file cannot be written.
    """
    paths = picture_paths(folder)
    for path in paths:
        check_free(path, source=source)
    _draw_retrieval(parts, paths[0], source)
    _draw_wrong(parts, paths[1], source)
    _draw_map(parts, paths[2], seed, source)
    return paths


def _draw_retrieval(parts: DescribedParts, path: Path, source: str | None) -> None:
    chosen = torch.linspace(0, len(parts.test) - 1, min(_QUERIES, len(parts.test))).round().long()
    _, positions = nearest(parts.test_outputs.embeddings[chosen], parts.train_outputs.embeddings, _RESULTS)
    figure = new_figure(1.2 * (_RESULTS + 1), 1.3 * len(chosen))
    axes = figure.subplots(len(chosen), _RESULTS + 1, squeeze=False)
    for row, (query, results) in enumerate(zip(chosen.tolist(), positions.tolist(), strict=True)):
        _show(axes[row][0], parts.test.labelled, parts.test.labelled.items[query], "black")
        for column, result in enumerate(results, start=1):
            same = parts.test.labels[query, 1] == parts.train.labels[result, 1]
            color = _RIGHT_COLOR if same else _WRONG_COLOR
            _show(axes[row][column], parts.train.labelled, parts.train.labelled.items[result], color)
        for axis in axes[row][len(results) + 1 :]:
            axis.set_axis_off()
    write_figure(figure, path, source=source)


def _draw_wrong(parts: DescribedParts, path: Path, source: str | None) -> None:
    predicted = parts.test_outputs.logits.argmax(dim=1)
    wrong = (predicted != parts.test.labels[:, 1]).nonzero().squeeze(1)
    positions = torch.linspace(0, max(0, len(wrong) - 1), min(_WRONG, len(wrong))).round().long()
    rows = max(1, -(-len(positions) // 3))
    figure = new_figure(7.5, 1.5 * rows)
    axes = figure.subplots(rows, 6, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    if not len(wrong):
        figure.suptitle("All test items are classified correctly.")
    names = parts.test.labelled.subcategories()
    for position, query in enumerate(wrong[positions].tolist()):
        _, neighbors = nearest(parts.test_outputs.embeddings[query : query + 1], parts.train_outputs.embeddings, 1)
        row, column = divmod(position, 3)
        result = int(neighbors[0, 0])
        prediction = names[int(predicted[query])]
        for axis, inputs, item, title in (
            (axes[row][2 * column], parts.test, query, f"predicted {prediction}"),
            (axes[row][2 * column + 1], parts.train, result, "nearest"),
        ):
            axis.set_axis_on()
            agrees = inputs is parts.train and names[int(inputs.labels[item, 1])] == prediction
            _show(axis, inputs.labelled, inputs.labelled.items[item], _RIGHT_COLOR if agrees else "black")
            set_text(axis.set_title("", fontsize=6), short_name(title, room=24))
    write_figure(figure, path, source=source)


def _draw_map(parts: DescribedParts, path: Path, seed: int, source: str | None) -> None:
    manifold = import_part("sklearn.manifold", extra="train")
    step = -(-len(parts.test) // _MAX_POINTS)
    vectors = parts.test_outputs.embeddings[::step]
    labels: Tensor = parts.test.labels[::step, 1]
    perplexity = min(30.0, max(1.0, (len(vectors) - 1) / 3))
    points = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors.numpy())
    figure = new_figure(6.5, 5.0)
    axis = figure.subplots()
    names = parts.test.labelled.subcategories()
    shown = torch.unique(labels).tolist()
    for order, number in enumerate(shown):
        mine = (labels == number).numpy()
        label = short_name(names[number], room=24) if len(shown) <= 20 else None
        color = f"C{order % 10}"
        axis.scatter(points[mine, 0], points[mine, 1], s=8, color=color, marker="os^vDP"[order // 10 % 6], label=label)
    axis.set_xticks([])
    axis.set_yticks([])
    if len(shown) <= 20:
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    write_figure(figure, path, source=source)


def _show(axis: Axes, labeled: LabelledSet, item: LabelledItem, color: str) -> None:
    frames = read_item(item, labeled.kind, size=_SIDE, frames=None if labeled.kind == "image" else 1, fit="crop")
    axis.imshow(frames if frames.ndim == 3 else frames[0])
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set(color=color, linewidth=3)
    set_text(axis.set_xlabel("", fontsize=6), short_name(item.label, room=24))
