"""Pictures that explain results: the frame map with its segments, matching frames side by side, the curve of shots."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.outputs import open_output
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import clock, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vidkin.index import Comparison
    from vidkin.shots import ShotDetection
    from vidkin.similarity import Segment

__all__ = ["FramePair", "draw_curve", "draw_map", "draw_pairs", "frame_pairs", "require_picture_name"]

PathLike = str | os.PathLike[str]

# No screen shows more; hour-long videos are pooled to this many cells a side.
_MOST_CELLS = 1000
# A segment's line runs between frames: the best partner of a frame is looked for so many seconds around it.
_NEAR_LINE = 1.0
# Of a label along an axis, at its size; and of one beside a row of pictures.
_LETTERS_AN_INCH = 12
_LETTERS_A_ROW = 22
_SEGMENT_COLOUR = "#ff7f0e"
_CUT_COLOUR = "#d62728"


@dataclass(frozen=True, slots=True)
class FramePair:
    """Two moments that show the same.

    Attributes:
        query_time: Seconds in the query.
        target_time: Seconds in the target.
        similarity: Calibrated similarity of the two frames, in [0, 1].
        mirrored: The query's frame is to be flipped.
    """

    query_time: float
    target_time: float
    similarity: float
    mirrored: bool


def require_picture_name(path: PathLike) -> None:
    """Raise InvalidArgumentError unless matplotlib can write a file of this name into an existing folder."""
    from matplotlib.backend_bases import FigureCanvasBase

    allowed = sorted(FigureCanvasBase.get_supported_filetypes())
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in allowed:
        raise InvalidArgumentError(
            f"a picture cannot be written as {printable(os.fspath(path))!r}; "
            f"end its name in one of .{', .'.join(allowed)}"
        )
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidArgumentError(
            f"there is no folder {printable(os.fspath(folder))!r} to write a picture to; make it first"
        )


def draw_map(comparison: Comparison, path: PathLike, *, query: PathLike, target: PathLike) -> None:
    """Write the frame map as a picture: target time to the right, query time downwards, both in seconds.

    Each cell is the calibrated similarity of a frame of the query with a frame of the target, from 0
    (black) to 1 (bright). Matching segments are drawn as lines over it; dashed ones match mirrored. Maps of
    more than 1,000 frames a side are pooled by their largest values, so that thin diagonals stay visible.

    Args:
        comparison: From :meth:`vidkin.index.Index.match` or :func:`vidkin.compare`.
        path: The picture; its ending chooses the format (.png, .pdf, .svg, ...).
        query: Name of the query, for the axis.
        target: Name of the target, for the axis.

    Raises:
        InvalidArgumentError: The ending names no format, or there is no such folder.
    """
    require_picture_name(path)
    values, query_times, target_times = _pool(
        comparison.map.detach().float().cpu().numpy(),
        comparison.query_times.detach().double().cpu().numpy(),
        comparison.target_times.detach().double().cpu().numpy(),
    )
    rows, columns = _edges(query_times), _edges(target_times)
    height = float(np.clip(8.0 * (rows[-1] - rows[0]) / (columns[-1] - columns[0]), 2.5, 8.0))
    figure, axis_room = _figure(8.0, height), int(height * _LETTERS_AN_INCH) - len(", seconds")
    axes = figure.add_subplot()
    mesh = axes.pcolormesh(columns, rows, values, cmap="magma", vmin=0.0, vmax=1.0, rasterized=True)
    for segment in comparison.segments:
        axes.plot(
            [segment.target_start, segment.target_end],
            [segment.query_start, segment.query_end],
            color=_SEGMENT_COLOUR,
            linestyle="--" if segment.mirrored else "-",
            linewidth=2,
            marker="o",
            markersize=3,
        )
    # Videos go on for a while after their last sample, and begin with their first.
    across = [columns[-1], *(segment.target_end for segment in comparison.segments)]
    down = [rows[-1], *(segment.query_end for segment in comparison.segments)]
    axes.set_xlim(max(columns[0], 0.0), max(across))
    axes.set_ylim(max(down), max(rows[0], 0.0))
    _label(axes.set_xlabel("", size=9), f"{_name(target)}, seconds")
    _label(axes.set_ylabel("", size=9), f"{_name(query, room=axis_room)}, seconds")
    _label(axes.set_title("", size=10), f"score {comparison.score:.2f}, segments {len(comparison.segments)}")
    figure.colorbar(mesh, ax=axes, label="frame similarity")
    _save(figure, path)


def frame_pairs(comparison: Comparison, *, count: int = 6) -> tuple[FramePair, ...]:
    """Frames that were compared, spread evenly over the matching segments, in the order of the query.

    Each segment gets a share of ``count`` by its length, and at least one pair while the count lasts; there are
    fewer pairs where fewer frames were compared.
    """
    segments = comparison.segments[:count]
    if not segments:
        return ()
    lengths = np.array([max(segment.query_end - segment.query_start, 1e-6) for segment in segments])
    shares = np.maximum(1, np.floor(lengths / lengths.sum() * count)).astype(int)
    while shares.sum() > count:
        shares[int(np.argmax(shares))] -= 1
    pairs = {
        pair
        for segment, share in zip(segments, shares.tolist(), strict=True)
        for step in range(share)
        if (pair := _pair(comparison, segment, (step + 0.5) / share)) is not None
    }
    return tuple(sorted(pairs, key=lambda pair: (pair.query_time, pair.target_time)))


def draw_pairs(pairs: Sequence[FramePair], path: PathLike, *, query: PathLike, target: PathLike) -> None:
    """Write pairs of matching frames as a picture: the query above, the target below, times on each.

    Raises:
        InvalidArgumentError: There is no pair, the ending names no format, or there is no such folder.
        MediaError: A frame cannot be read.
    """
    from vidkin.media import thumbnail

    require_picture_name(path)
    if not pairs:
        raise InvalidArgumentError("no segment matches, so there are no frames to show side by side")
    figure = _figure(2.4 * len(pairs), 4.2)
    grid = figure.subplots(2, len(pairs), squeeze=False)
    for column, pair in enumerate(pairs):
        for row, (source, time) in enumerate(((query, pair.query_time), (target, pair.target_time))):
            axes = grid[row][column]
            picture = np.asarray(thumbnail(source, time, short_side=240))
            flipped = pair.mirrored and row == 0
            axes.imshow(picture[:, ::-1] if flipped else picture)
            axes.set_xticks([])
            axes.set_yticks([])
            _label(axes.set_title("", size=9), clock(time) + (" (flipped)" if flipped else ""))
        _label(grid[1][column].set_xlabel("", size=9), f"{pair.similarity:.2f}")
    _label(grid[0][0].set_ylabel("", size=9), _name(query, room=_LETTERS_A_ROW))
    _label(grid[1][0].set_ylabel("", size=9), _name(target, room=_LETTERS_A_ROW))
    _save(figure, path)


def draw_curve(detection: ShotDetection, path: PathLike) -> None:
    """Write the detector's curve over time as a picture, the cuts as red dots on it.

    Gradual transitions are bands of light red around their dot; shots judged critical (0.5 or more) are orange at
    the foot of the picture.

    Args:
        detection: From :func:`vidkin.shots.detect`.
        path: The picture; its ending chooses the format (.png, .pdf, .svg, ...).

    Raises:
        InvalidArgumentError: The detector draws no curve, the ending names no format, or there is no such folder.
    """
    require_picture_name(path)
    curve = detection.curve
    if curve is None or not len(curve.times):
        raise InvalidArgumentError(f"the detector {detection.detector!r} makes no curve to draw")
    times, values = np.asarray(curve.times), np.asarray(curve.values)
    figure = _figure(10.0, 3.6)
    axes = figure.add_subplot()
    axes.plot(times, values, linewidth=0.8, color="#1f77b4")
    for cut in detection.cuts:
        if cut.kind == "gradual":
            axes.axvspan(cut.start, cut.end, color=_CUT_COLOUR, alpha=0.15, linewidth=0)
    moments = [cut.time for cut in detection.cuts]
    axes.plot(moments, np.interp(moments, times, values), "o", color=_CUT_COLOUR, markersize=4)
    for shot in detection.shots:
        if shot.critical is not None and shot.critical >= 0.5:
            axes.axvspan(shot.start, shot.end, ymax=0.03, color=_SEGMENT_COLOUR, linewidth=0)
    axes.set_xlim(0.0, detection.shots[-1].end)
    _label(axes.set_xlabel("", size=9), "seconds")
    _label(axes.set_ylabel("", size=9), curve.name)
    _label(
        axes.set_title("", size=10),
        f"{_name(detection.path)}: {len(detection.cuts)} cuts, {detection.detector}",
    )
    _save(figure, path)


def _pair(comparison: Comparison, segment: Segment, share: float) -> FramePair | None:
    """The compared frames nearest to a point of a segment: a frame of the query inside it, and of the frames
    of the target around the segment's line the one most like it."""
    wanted = segment.query_start + share * (segment.query_end - segment.query_start)
    times, target_times = comparison.query_times, comparison.target_times
    inside = ((times >= segment.query_start) & (times <= segment.query_end)).nonzero()[:, 0]
    if len(inside) == 0:
        return None
    row = int(inside[(times[inside] - wanted).abs().argmin()])
    along = (float(times[row]) - segment.query_start) / max(segment.query_end - segment.query_start, 1e-6)
    line = segment.target_start + along * (segment.target_end - segment.target_start)
    distance = (target_times - line).abs()
    near = distance <= max(_NEAR_LINE, float(distance.min()))
    column = int(comparison.map[row].masked_fill(~near, -1.0).argmax())
    similarity = float(comparison.map[row, column].clamp(0, 1))
    return FramePair(float(times[row]), float(target_times[column]), similarity, segment.mirrored)


def _pool(
    values: NDArray[Any], rows: NDArray[np.float64], columns: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    """The map in at most 1,000 cells a side, by maxima; with the times at which the cells start."""
    row_starts = np.arange(0, len(rows), -(-len(rows) // _MOST_CELLS))
    column_starts = np.arange(0, len(columns), -(-len(columns) // _MOST_CELLS))
    pooled = np.maximum.reduceat(np.maximum.reduceat(values, row_starts, axis=0), column_starts, axis=1)
    return pooled, rows[row_starts], columns[column_starts]


def _edges(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders of the cells: half-way between samples; one sample is taken to last a second."""
    if len(times) == 1:
        return np.array([times[0] - 0.5, times[0] + 0.5])
    middles = (times[1:] + times[:-1]) / 2
    return np.concatenate([[2 * times[0] - middles[0]], middles, [2 * times[-1] - middles[-1]]])


def _figure(width: float, height: float) -> Figure:
    # Made without pyplot: no global state, no display, and nothing to close.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=120, layout="constrained")


def _name(path: PathLike, *, room: int = 40) -> str:
    """The name of the file in at most ``room`` letters: both its ends say more than its middle."""
    name, room = printable(Path(path).name), min(room, 40)
    end = room * 3 // 8
    return name if len(name) <= room else f"{name[: room - end - 1]}…{name[-end:]}"


def _label(text: Any, content: str) -> None:
    """File names may hold dollar signs, which are no formulas."""
    text.set_parse_math(False)
    text.set_text(content)


def _save(figure: Figure, path: PathLike) -> None:
    try:
        with open_output(path) as partial, warnings.catch_warnings():
            # The font that comes with matplotlib lacks some scripts; it draws boxes for them and says so.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
            figure.savefig(partial)
    except RuntimeError as error:  # where a format needs a program, as .pgf needs TeX
        raise InvalidArgumentError(
            f"the picture {printable(os.fspath(path))!r} cannot be written: {error}"
        ) from error
