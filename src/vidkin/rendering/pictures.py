"""Matplotlib figures (frame maps, matching frames), with checked file names, literal text and atomic writes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.outputs import describe_source, open_output
from vidkin._base.registry import import_part
from vidkin.errors import InvalidArgumentError
from vidkin.index import Comparison
from vidkin.media import thumbnail
from vidkin.rendering.matches import FramePair, pool_map
from vidkin.rendering.text import clock, describe_box, printable
from vidkin.similarity import Box

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PathLike = str | os.PathLike[str]

_MAX_NAME = 40


def require_picture_name(path: PathLike) -> None:
    """Check the file name of a figure before any work is done.

    Raises:
        InvalidArgumentError: The extension is not an image format, or the folder does not exist.
        MissingPartError: matplotlib is not installed.
    """
    name = printable(os.fspath(path))
    formats = sorted(_matplotlib("backend_bases").FigureCanvasBase.get_supported_filetypes())
    if Path(path).suffix.lower().lstrip(".") not in formats:
        raise InvalidArgumentError(f"{name}: not an image format; choose a name that ends in .{', .'.join(formats)}")
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{printable(os.fspath(folder))}: no such folder; create it first")


def new_figure(width: float, height: float, *, dpi: int = 120) -> Figure:
    """Create an empty figure of this size in inches, without pyplot and its global state."""
    figure: Figure = _matplotlib("figure").Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    return figure


def set_text(text: Any, content: str) -> None:
    """Set a label's text literally, so that dollar signs in file names do not start formulas."""
    text.set_parse_math(False)
    text.set_text(content)


def short_name(path: PathLike, *, room: int = _MAX_NAME) -> str:
    """Shorten a file name to at most ``room`` characters, and never more than 40, by removing its middle."""
    name, room = printable(Path(path).name), min(room, _MAX_NAME)
    end = room * 3 // 8
    return name if len(name) <= room else f"{name[: room - end - 1]}…{name[-end:]}"


def write_figure(figure: Figure, path: PathLike, *, source: str | None = None) -> None:
    """Write a figure to a file; the extension determines the format.

    Args:
        figure: The figure.
        path: Output file.
        source: Description of the inputs, see :func:`vidkin._base.outputs.open_output`.

    Raises:
        InvalidArgumentError: The format requires a program that is not installed (.pgf requires TeX).
        MediaError: The file cannot be written.
    """
    try:
        with open_output(path, source=source) as partial, warnings.catch_warnings():
            # The default font lacks some scripts; matplotlib draws boxes instead and warns.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
            figure.savefig(partial)
    except (RuntimeError, ValueError) as error:
        raise InvalidArgumentError(f"{printable(os.fspath(path))}: cannot be written ({error})") from error


# Characters that fit per inch of an axis label, and next to a row of frames.
_LETTERS_AN_INCH = 12

_LETTERS_A_ROW = 22

_SEGMENT_COLOR = "#ff7f0e"


def draw_map(
    comparison: Comparison, path: PathLike, *, query: PathLike, target: PathLike, source: str | None = None
) -> None:
    """Plot the frame map: target time runs to the right and query time runs down, both in seconds.

    Each cell is the calibrated similarity between a query frame and a target frame, from 0 (black) to 1 (bright).
    Matching segments are drawn as lines on top, dashed if they are mirrored. Maps with more than 1,000 frames per side
    are max-pooled, so that thin diagonals stay visible.

    Args:
        comparison: Result of :meth:`vidkin.index.Index.match` or :func:`vidkin.compare`.
        path: Output image; the extension determines the format (.png, .pdf, .svg, ...).
        query: Name of the query for the axis label.
        target: Name of the target for the axis label.
        source: Description of the inputs, see :func:`vidkin._base.outputs.open_output`; default: both videos.

    Raises:
        InvalidArgumentError: The extension is not an image format, or the folder does not exist.
        MissingPartError: matplotlib is not installed.
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
            [segment.target_time(segment.query_start), segment.target_time(segment.query_end)],
            [segment.query_start, segment.query_end],
            color=_SEGMENT_COLOR,
            linestyle="--" if segment.mirrored else "-",
            linewidth=2,
            marker="o",
            markersize=3,
        )
    # A video starts at its first sample and continues beyond its last one.
    across = [columns[-1], *(segment.target_end for segment in comparison.segments)]
    down = [rows[-1], *(segment.query_end for segment in comparison.segments)]
    axes.set_xlim(max(columns[0], 0.0), max(across))
    axes.set_ylim(max(down), max(rows[0], 0.0))
    set_text(axes.set_xlabel("", size=9), f"{short_name(target)}, seconds")
    set_text(axes.set_ylabel("", size=9), f"{short_name(query, room=axis_room)}, seconds")
    set_text(axes.set_title("", size=10), f"score {comparison.score:.2f}, segments {len(comparison.segments)}")
    figure.colorbar(mesh, ax=axes, label="frame similarity")
    write_figure(figure, path, source=source or describe_source("frame map", query, target))


def draw_pairs(
    pairs: Sequence[FramePair], path: PathLike, *, query: PathLike, target: PathLike, source: str | None = None
) -> None:
    """Plot pairs of matching frames with their times: query frames above, target frames below.

    If only part of a frame matches, a box marks that part.

    Raises:
        InvalidArgumentError: There are no pairs, the extension is not an image format, or the folder does not exist.
        MediaError: A frame cannot be read.
    """
    require_picture_name(path)
    if not pairs:
        raise InvalidArgumentError("there are no matching frames to show side by side")
    figure = new_figure(2.4 * len(pairs), 4.2)
    grid = figure.subplots(2, len(pairs), squeeze=False)
    for column, pair in enumerate(pairs):
        for row, (video, time) in enumerate(((query, pair.query_time), (target, pair.target_time))):
            axes = grid[row][column]
            frame = np.asarray(thumbnail(video, time, short_side=240))
            flipped = pair.mirrored and row == 0
            axes.imshow(frame[:, ::-1] if flipped else frame)
            _draw_box(axes, pair.target_box if row else pair.query_box, frame.shape, flipped)
            axes.set_xticks([])
            axes.set_yticks([])
            set_text(axes.set_title("", size=9), clock(time) + (" (flipped)" if flipped else ""))
        words = "differs" if pair.similarity is None else f"{pair.similarity:.2f}"
        set_text(grid[1][column].set_xlabel("", size=9), words)
    set_text(grid[0][0].set_ylabel("", size=9), short_name(query, room=_LETTERS_A_ROW))
    set_text(grid[1][0].set_ylabel("", size=9), short_name(target, room=_LETTERS_A_ROW))
    write_figure(figure, path, source=source or describe_source("matching frames", query, target))


def _draw_box(axes: Any, box: Box, shape: tuple[int, ...], flipped: bool) -> None:
    if not describe_box(box):
        return
    left, top, right, bottom = box
    if flipped:
        left, right = 1 - right, 1 - left
    height, width = shape[:2]
    corner = left * width - 0.5, top * height - 0.5
    size = (right - left) * width, (bottom - top) * height
    rectangle = _matplotlib("patches").Rectangle
    axes.add_patch(rectangle(corner, *size, fill=False, edgecolor=_SEGMENT_COLOR, linewidth=2))


def _edges(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cell edges, halfway between samples; the cell of a single sample spans one second."""
    if len(times) == 1:
        return np.array([times[0] - 0.5, times[0] + 0.5])
    middles = (times[1:] + times[:-1]) / 2
    return np.concatenate([[2 * times[0] - middles[0]], middles, [2 * times[-1] - middles[-1]]])


def _matplotlib(module: str) -> Any:
    """Import a matplotlib module on first use; raise MissingPartError if matplotlib is not installed."""
    return import_part(f"matplotlib.{module}", extra="plots", purpose="drawing a figure")
