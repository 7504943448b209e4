"""Plot of a shot detector's curve: the format ``plot`` of `vidkin shots --output`."""

from __future__ import annotations

import numpy as np

from vidkin._base.arguments import check_arguments
from vidkin._base.outputs import describe_source
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.pictures import (
    PathLike,
    new_figure,
    require_picture_name,
    set_text,
    short_name,
    write_figure,
)
from vidkin.shots import ShotDetection, ShotFormat

_CUT_COLOR = "#d62728"
_CRITICAL_COLOR = "#ff7f0e"


@check_arguments
def draw_curve(detection: ShotDetection, path: PathLike) -> None:
    """Plot the detector's curve over time, with a red dot at each cut.

    Gradual transitions are light red bands around their dots; critical shots (0.5 or more) are orange bars at the
    bottom. Times are in seconds from the start of the file.

    Args:
        detection: Result of :func:`vidkin.shots.detect`.
        path: Output image; the extension determines the format (.png, .pdf, .svg, ...).

    Raises:
        InvalidArgumentError: The detector has no curve, the extension is not an image format, or the folder does not
            exist.
    """
    require_picture_name(path)
    curve = detection.curve
    if curve is None or not len(curve.times):
        raise InvalidArgumentError(f"detector {detection.detector} has no curve to draw")
    offset = detection.offset
    times, values = offset + np.asarray(curve.times), np.asarray(curve.values)
    figure = new_figure(10.0, 3.6)
    axes = figure.add_subplot()
    axes.plot(times, values, linewidth=0.8, color="#1f77b4")
    for cut in detection.cuts:
        if cut.is_gradual:
            axes.axvspan(offset + cut.start, offset + cut.end, color=_CUT_COLOR, alpha=0.15, linewidth=0)
    moments = [offset + cut.time for cut in detection.cuts]
    axes.plot(moments, np.interp(moments, times, values), "o", color=_CUT_COLOR, markersize=4)
    for shot in detection.shots:
        if shot.critical is not None and shot.critical >= 0.5:
            axes.axvspan(offset + shot.start, offset + shot.end, ymax=0.03, color=_CRITICAL_COLOR, linewidth=0)
    axes.set_xlim(offset, offset + detection.shots[-1].end)
    set_text(axes.set_xlabel("", size=9), "seconds")
    set_text(axes.set_ylabel("", size=9), curve.name)
    set_text(
        axes.set_title("", size=10),
        f"{short_name(detection.path)}: {len(detection.cuts)} cuts, {detection.detector}",
    )
    write_figure(figure, path, source=describe_source("shots as plot", detection.path))


PLOT = ShotFormat(
    ".png",
    draw_curve,
    "the curve as an image",
    "image/png",
    check=require_picture_name,
    suffixes=(".svg", ".pdf"),
)
"""The ``plot`` format, registered as an entry point in the group ``vidkin.shot_formats``."""
