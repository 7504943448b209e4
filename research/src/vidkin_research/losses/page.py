"""A study of losses as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from vidkin_research.losses.methods import LOSSES
from vidkin_research.losses.study import LossReport
from vidkin_research.spread import spread

__all__ = ["as_page"]


def as_page(report: LossReport, *, notes: Sequence[str] = ()) -> str:
    """Tables of the losses, best first, and of the parts of the full objective, in their order, with these
    sentences."""
    study = report.study
    lines = [
        "# Losses for a comparator trained without labels",
        "",
        f"Trained on {report.train[1]} stretches of {report.train[0]} videos, measured on {report.test[1]} stretches "
        f"of {report.test[0]} others: each weak view looks for strong views of its stretch among those of all. "
        f"Extractor `{study.extractor}`, {study.steps} steps of {study.pairs} clips, seeds "
        f"{', '.join(map(str, study.seeds))}.",
    ]
    of_losses = {method.name for method in LOSSES}
    groups = {
        "One loss of scores": [run for run in report.runs if run.method in of_losses],
        "Parts of the full objective": [run for run in report.runs if run.method not in of_losses],
    }
    for title, runs in groups.items():
        names = list(dict.fromkeys(run.method for run in runs))
        rows = [(name, [run for run in runs if run.method == name]) for name in names]
        if title == "One loss of scores":
            rows.sort(key=lambda row: -spread([run.micro_ap for run in row[1]])["mean"])
        if rows:
            head = "| | mAP | micro-AP | positives: 1 %, median | negatives: median, 99 % |"
            lines += ["", f"## {title}", "", head, "|---|---|---|---|---|"]
        for name, own in rows:
            cells = [name]
            for values in ([run.map for run in own], [run.micro_ap for run in own]):
                figure = spread(values)
                more = "" if figure["deviation"] is None else f" ± {figure['deviation']:.3f}"
                cells.append(f"{figure['mean']:.3f}{more}")
            low, middle = (spread([run.positives[place] for run in own])["mean"] for place in (0, 2))
            usual, high = (spread([run.negatives[place] for run in own])["mean"] for place in (2, 4))
            cells += [f"{low:.2f}, {middle:.2f}", f"{usual:.2f}, {high:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *notes, ""])
