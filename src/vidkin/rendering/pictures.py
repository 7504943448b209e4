"""Pictures that explain results: the frame map with its segments, and matching frames side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.index import Comparison
from vidkin.media import thumbnail
from vidkin.rendering.boxes import describe_box
from vidkin.rendering.figures import (
    PathLike,
    new_figure,
    require_picture_name,
    set_text,
    short_name,
    write_figure,
)
from vidkin.rendering.frame_pairs import FramePair
from vidkin.rendering.text import clock
from vidkin.similarity import Box

__all__ = ["draw_map", "draw_pairs", "pool_map"]

# No screen shows more cells; maps of hour-long videos are pooled to this many per side.
_MOST_CELLS = 1000
# Room for a label along an axis, and beside a row of frames.
_LETTERS_AN_INCH = 12
_LETTERS_A_ROW = 22
_SEGMENT_COLOR = "#ff7f0e"


def draw_map(comparison: Comparison, path: PathLike, *, query: PathLike, target: PathLike) -> None:
    """Write the frame map as a picture: target time runs to the right, query time down, both in seconds.

    Each cell is the calibrated similarity of a frame of the query with a frame of the target, from 0
    (black) to 1 (bright). Matching segments are drawn as lines over it; dashed ones match mirrored. Maps of
    more than 1,000 frames a side are pooled by their largest values, so that thin diagonals stay visible.

    Args:
        comparison: Result of :meth:`vidkin.index.Index.match` or :func:`vidkin.compare`.
        path: The picture; its extension chooses the format (.png, .pdf, .svg, ...).
        query: Name of the query, for the axis.
        target: Name of the target, for the axis.

    Raises:
        InvalidArgumentError: The extension is not a picture format, or the folder does not exist.
    """
    require_picture_name(path)
    values, query_times, target_times = pool_map(comparison)
    rows, columns = _edges(query_times), _edges(target_times)
    height = float(np.clip(8.0 * (rows[-1] - rows[0]) / (columns[-1] - columns[0]), 2.5, 8.0))
    figure, axis_room = new_figure(8.0, height), int(height * _LETTERS_AN_INCH) - len(", seconds")
    axes = figure.add_subplot()
    mesh = axes.pcolormesh(columns, rows, values, cmap="magma", vmin=0.0, vmax=1.0, rasterized=True)
    for segment in comparison.segments:
        axes.plot(
            [segment.target_start, segment.target_end],
            [segment.query_start, segment.query_end],
            color=_SEGMENT_COLOR,
            linestyle="--" if segment.mirrored else "-",
            linewidth=2,
            marker="o",
            markersize=3,
        )
    # A video starts at its first sample and continues for a while after its last.
    across = [columns[-1], *(segment.target_end for segment in comparison.segments)]
    down = [rows[-1], *(segment.query_end for segment in comparison.segments)]
    axes.set_xlim(max(columns[0], 0.0), max(across))
    axes.set_ylim(max(down), max(rows[0], 0.0))
    set_text(axes.set_xlabel("", size=9), f"{short_name(target)}, seconds")
    set_text(axes.set_ylabel("", size=9), f"{short_name(query, room=axis_room)}, seconds")
    set_text(
        axes.set_title("", size=10), f"score {comparison.score:.2f}, segments {len(comparison.segments)}"
    )
    figure.colorbar(mesh, ax=axes, label="frame similarity")
    write_figure(figure, path)


def pool_map(
    comparison: Comparison,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """The frame map with at most 1,000 cells a side, pooled by maxima, so that thin diagonals stay visible.

    Returns:
        The cells [rows, columns] in [0, 1], and the times at which rows (query) and columns (target) start, seconds.
    """
    values = comparison.map.detach().float().cpu().numpy()
    rows = comparison.query_times.detach().double().cpu().numpy()
    columns = comparison.target_times.detach().double().cpu().numpy()
    row_starts = np.arange(0, len(rows), -(-len(rows) // _MOST_CELLS))
    column_starts = np.arange(0, len(columns), -(-len(columns) // _MOST_CELLS))
    pooled = np.maximum.reduceat(np.maximum.reduceat(values, row_starts, axis=0), column_starts, axis=1)
    return pooled, rows[row_starts], columns[column_starts]


def draw_pairs(pairs: Sequence[FramePair], path: PathLike, *, query: PathLike, target: PathLike) -> None:
    """Write pairs of matching frames as a picture: the query above, the target below, times on each.

    Where only part of a picture matches, a box is drawn around it.

    Raises:
        InvalidArgumentError: There are no pairs, the extension is not a picture format, or the folder does not exist.
        MediaError: A frame cannot be read.
    """
    require_picture_name(path)
    if not pairs:
        raise InvalidArgumentError("there are no matching frames to show side by side")
    figure = new_figure(2.4 * len(pairs), 4.2)
    grid = figure.subplots(2, len(pairs), squeeze=False)
    for column, pair in enumerate(pairs):
        for row, (source, time) in enumerate(((query, pair.query_time), (target, pair.target_time))):
            axes = grid[row][column]
            frame = np.asarray(thumbnail(source, time, short_side=240))
            flipped = pair.mirrored and row == 0
            axes.imshow(frame[:, ::-1] if flipped else frame)
            _draw_box(axes, pair.target_box if row else pair.query_box, frame.shape, flipped)
            axes.set_xticks([])
            axes.set_yticks([])
            set_text(axes.set_title("", size=9), clock(time) + (" (flipped)" if flipped else ""))
        set_text(grid[1][column].set_xlabel("", size=9), f"{pair.similarity:.2f}")
    set_text(grid[0][0].set_ylabel("", size=9), short_name(query, room=_LETTERS_A_ROW))
    set_text(grid[1][0].set_ylabel("", size=9), short_name(target, room=_LETTERS_A_ROW))
    write_figure(figure, path)


def _draw_box(axes: Any, box: Box, shape: tuple[int, ...], flipped: bool) -> None:
    from matplotlib.patches import Rectangle

    if not describe_box(box):
        return
    left, top, right, bottom = box
    if flipped:
        left, right = 1 - right, 1 - left
    height, width = shape[:2]
    corner = left * width - 0.5, top * height - 0.5
    size = (right - left) * width, (bottom - top) * height
    axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=_SEGMENT_COLOR, linewidth=2))


def _edges(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders of the cells: halfway between samples; a single sample lasts one second."""
    if len(times) == 1:
        return np.array([times[0] - 0.5, times[0] + 0.5])
    middles = (times[1:] + times[:-1]) / 2
    return np.concatenate([[2 * times[0] - middles[0]], middles, [2 * times[-1] - middles[-1]]])
