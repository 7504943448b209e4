"""Plot each comparator's maps for two pairs of clips, and the distribution of its scores."""

from __future__ import annotations

import os
from collections.abc import Sequence

from vidkin.rendering.pictures import new_figure, require_picture_name, set_text, write_figure
from vidkin_research.losses.study import LossReport

__all__ = ["draw_losses"]


def draw_losses(report: LossReport, path: str | os.PathLike[str]) -> None:
    """Plot a row for the first seed of each method: two learned maps, and the scores of test pairs.

    The first map compares a clip's weak view with a strong view, the second compares the weak view with another video;
    -1 is dark and 1 bright. Boxes span the 25th to the 75th percentile, whiskers the first to the 99th.

    Args:
        report: Result of a study.
        path: Path of the image file, ``.png`` or ``.svg``.

    Raises:
        InvalidArgumentError: The extension is not an image format, or the folder does not exist.
        MediaError: The file cannot be written.
    """
    require_picture_name(path)
    firsts = [run for run in report.runs if run.seed == report.study.seeds[0]]
    figure = new_figure(7.0, 1.1 * len(firsts) + 0.5, dpi=100)
    axes = figure.subplots(len(firsts), 3, squeeze=False, width_ratios=(1, 1, 4))
    for row, run in enumerate(firsts):
        for axis, values in zip(axes[row], (run.own_map, run.other_map), strict=False):
            axis.imshow(values, vmin=-1, vmax=1, cmap="magma")
            axis.set_xticks([])
            axis.set_yticks([])
        set_text(axes[row][0].set_ylabel("", fontsize=7), run.method)
        scores = axes[row][2]
        boxes = [_box(run.negatives), _box(run.positives)]
        scores.bxp(boxes, orientation="horizontal", showfliers=False, widths=0.6)
        scores.set_xlim(0, 1)
        scores.set_yticks([])
        scores.tick_params(labelsize=7)
    for column, title in enumerate(("same clip", "other video", "scores: same clip above, other videos below")):
        axes[0][column].set_title(title, fontsize=8)
    write_figure(figure, path)


def _box(quantiles: Sequence[float]) -> dict[str, float]:
    low, first, middle, third, high = quantiles
    return {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}
