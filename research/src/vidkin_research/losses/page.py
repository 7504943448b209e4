"""Format a loss study as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from vidkin_research.losses.methods import ABLATION, LOSSES, SPACE, LossMethod
from vidkin_research.losses.study import LossFigures, LossReport
from vidkin_research.spread import spread

__all__ = ["as_page"]


# Rows of the k_t table.
_SWEPT = ("Chamfer alone", "base", "base, top 2", "+ video AP", "+ video AP, top 2", "+ frame AP")
_LOSSES = "One loss in addition to the base objective"


def as_page(report: LossReport, *, notes: Sequence[str] = ()) -> str:
    """Return tables of the losses (best first), the ablation of the full objective and k, followed by ``notes``."""
    study = report.study
    clips = study.clips
    labels = f"`{clips.teacher}`" if clips.teacher else "the same extractor"
    lines = [
        "# Losses for a comparator trained without labels",
        "",
        f"Trained on {report.train[1]} clips from {report.train[0]} videos and evaluated on {report.test[1]} clips "
        f"from {report.test[0]} other videos: each weak view is a query for the strong views of its clip, among the "
        f"strong views of all clips. Extractor `{study.extractor}`, frame labels from {labels}; windows of "
        f"{clips.length} frames at {clips.rate:g} per second.  {study.steps} steps of {study.pairs} clips, seeds "
        f"{', '.join(map(str, study.seeds))}.",
    ]
    groups: dict[str, Sequence[LossMethod]] = {
        _LOSSES: LOSSES,
        "Ablation of the full objective": ABLATION,
        "k over regions": SPACE,
    }
    grouped = {method.name for methods in groups.values() for method in methods}
    groups["Settings"] = [method for method in study.methods if method.name not in grouped]
    for title, methods in groups.items():
        rows = [(method.name, _runs(report, method.name)) for method in methods]
        rows = [(name, own) for name, own in rows if own]
        if title == _LOSSES:
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
            low, middle = (spread([run.positives[column] for run in own])["mean"] for column in (0, 2))
            usual, high = (spread([run.negatives[column] for run in own])["mean"] for column in (2, 4))
            cells += [f"{low:.2f}, {middle:.2f}", f"{usual:.2f}, {high:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *_k_table(report), "", *notes, ""])


def _runs(report: LossReport, name: str) -> list[LossFigures]:
    return [run for run in report.runs if run.method == name]


def _k_table(report: LossReport) -> list[str]:
    """Return the k_t table, if the runs were scored with several values."""
    rows = [(name, own) for name in _SWEPT if (own := _runs(report, name)) and own[0].by_times]
    if not rows:
        return []
    shares = list(rows[0][1][0].by_times)
    lines = [
        "",
        "## k over frames",
        "",
        "mAP / micro-AP of the same models scored with other k_t, as a fraction of the frames.",
    ]
    lines += ["", f"| k_t | {' | '.join(shares)} |", "|---|" + "---|" * len(shares)]
    for name, own in rows:
        means = [
            [spread([run.by_times[share][column] for run in own])["mean"] for column in (0, 1)] for share in shares
        ]
        lines.append(f"| {name} | {' | '.join(f'{value:.3f} / {micro:.3f}' for value, micro in means)} |")
    return lines
