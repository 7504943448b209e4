"""A picture of the first training batch: what the network will see, with labels."""

from __future__ import annotations

import numpy as np

from vidkin.rendering.figures import PathLike, new_figure, require_picture_name, set_text, write_figure
from vidkin.training import FirstBatch

__all__ = ["draw_first_batch"]

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
