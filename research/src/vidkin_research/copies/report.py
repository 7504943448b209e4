"""Markdown report of copy retrieval: families, edits, time errors, boxes, unrelated pairs and costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vidkin_research.copies.figures import GroupFigures
from vidkin_research.copies.study import CopyReport

__all__ = ["as_page"]


def as_page(report: CopyReport, *, title: str = "Copy retrieval on real videos", notes: Sequence[str] = ()) -> str:
    """Render the report as Markdown, with ``notes`` at the end."""
    lines = [
        f"# {title}",
        "",
        f"{report.queries} queries of {report.study.size.seconds:g} s against {report.videos} videos, "
        f"{len(report.study.edits)} edits. {report.machine}",
        "",
        "mAP and micro-AP are strict: other moments of the same recording count as wrong. A copy counts as found "
        f"if its score is at least {report.study.threshold:g}.",
    ]
    for figures in report.figures:
        lines += ["", f"## {figures.system}", ""]
        spent = figures.costs
        costs = (
            []
            if spent is None
            else [
                f"Indexed in {spent.index_seconds:.1f} s, {spent.bytes_per_hour / 1e6:.1f} MB per hour of video; "
                f"a query takes {spent.search_seconds:.2f} s. Lowest score of a video with itself: "
                f"{spent.identical:.4f}.\n"
            ]
        )
        lines += _groups((figures.everything, *figures.families))
        lines += [
            "",
            *[
                f"Unrelated pairs, {kind.which}: the highest of {kind.pairs:,} scores is {kind.highest:.3f} "
                f"({', '.join(kind.highest_pair)}); {kind.above} are at least {kind.threshold:g}.\n"
                for kind in figures.unrelated
            ],
            *costs,
            "",
            *_groups(figures.edits),
        ]
    return "\n".join([*lines, "", *report.notes, *notes, ""])


def _groups(groups: Iterable[GroupFigures]) -> list[str]:
    lines = [
        "| copies | family | found | median score | mAP | micro-AP | neutral mAP | neutral micro-AP | recall@100 | "
        "start error, s: median, 90 % | end error, s: median, 90 % | segments missed | box IoU: query, copy |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for group in groups:
        cells = [
            group.name,
            group.family or "",
            f"{group.reported} of {group.copies}",
            f"{group.median:.3f}",
            f"{group.strict.map:.3f}",
            f"{group.strict.micro_ap:.3f}",
            f"{group.neutral.map:.3f}",
            f"{group.neutral.micro_ap:.3f}",
            "" if group.recall is None else f"{group.recall:.3f}",
        ]
        times, boxes = group.times, group.boxes
        cells += (
            [
                f"{times.start_median:.2f}, {times.start_90th:.2f}",
                f"{times.end_median:.2f}, {times.end_90th:.2f}",
                f"{times.missed} of {times.stretches}",
            ]
            if times
            else ["", "", ""]
        )
        cells.append(f"{boxes.query:.2f}, {boxes.copy:.2f}" if boxes else "")
        lines.append("| " + " | ".join(cells) + " |")
    return lines
