"""Format an image study as Markdown, with one table per set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vidkin_research.images.figures import RECALLS, RowFigures
from vidkin_research.images.study import ImageReport
from vidkin_research.spread import spread

__all__ = ["as_page"]

_COLUMNS: dict[str, Callable[[RowFigures], float]] = {
    "top-1": lambda run: 100 * run.top_1,
    "macro": lambda run: 100 * run.macro,
    "triplet precision": lambda run: 100 * run.triplet_precision,
    **{f"R@{k}": lambda run, column=column: 100 * run.recalls[column] for column, k in enumerate(RECALLS)},  # type: ignore[misc]
    "ms per image": lambda run: run.milliseconds,
    "s to fit": lambda run: run.seconds_to_fit,
}


def as_page(report: ImageReport, *, notes: Sequence[str] = ()) -> str:
    """Return the tables as Markdown, with rows in order and ``notes`` at the end."""
    lines = [
        "# Images: classical features, networks, trained models",
        "",
        f"{report.machine}. Percent, mean ± sample standard deviation over the seeds. top-1 and macro: accuracy "
        "of the row's own classifier, or else of the nearest training image. Triplet precision and Recall@K (R@K): "
        "among the test images.",
    ]
    if report.rates:
        lines += [
            "",
            "The two-head rows use the learning rate out of "
            f"{', '.join(f'{rate:g}' for rate in report.rates)} with the highest top-1 on the validation split in one "
            "run (for a set without a validation split, on a fifth of its training images).",
        ]
    for name, (classes, train, test) in report.sets.items():
        lines += [
            "",
            f"## {name}",
            "",
            f"{classes} classes, {train:,} training and {test:,} test images.",
            "",
        ]
        lines += [f"| | {' | '.join(_COLUMNS)} |", "|---|" + "---|" * len(_COLUMNS)]
        runs = [run for run in report.runs if run.set == name]
        for row in dict.fromkeys(run.row for run in runs):
            cells = []
            for figure in _COLUMNS.values():
                figures = spread([figure(run) for run in runs if run.row == row])
                more = "" if figures["deviation"] is None else f" ± {figures['deviation']:.1f}"
                cells.append(f"{figures['mean']:.1f}{more}")
            lines.append(f"| {row} | {' | '.join(cells)} |")
        lines += _layers(runs)
    return "\n".join([*lines, "", *notes, ""])


def _layers(runs: Sequence[RowFigures]) -> list[str]:
    """Return the table of retrieval results for each layer of the two-head rows."""
    with_layers = [run for run in runs if run.layers]
    if not with_layers:
        return []
    names = list(with_layers[0].layers)
    columns = [f"{name} {figure}" for name in names for figure in (*(f"R@{k}" for k in RECALLS), "NMI")]
    lines = [
        "",
        "Results of each layer, with the normalized mutual information (NMI) of classes and k-means clusters:",
        "",
    ]
    lines += [f"| | rate | {' | '.join(columns)} |", "|---|" + "---|" * (len(columns) + 1)]
    for row in dict.fromkeys(run.row for run in with_layers):
        own = [run for run in with_layers if run.row == row]
        cells = [" ".join(dict.fromkeys(f"{run.learning_rate:g}" for run in own if run.learning_rate))]
        for name in names:
            for column in range(len(RECALLS) + 1):
                figures = spread([100 * run.layers[name][column] for run in own])
                more = "" if figures["deviation"] is None else f" ± {figures['deviation']:.1f}"
                cells.append(f"{figures['mean']:.1f}{more}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines
