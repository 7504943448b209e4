"""The page of copy retrieval: systems side by side, errors in time, and every edit by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vidkin.experiments.copies.material import CopyMaterial

__all__ = ["as_page"]


def as_page(
    results: Mapping[str, Mapping[str, Any]], material: CopyMaterial, notes: Sequence[str], *, machine: str
) -> str:
    """The report as Markdown.

    Args:
        results: Name of a system -> its figures, from `summarize_copies` or `summarize_search`.
        material: What was searched.
        notes: Sentences at the end.
        machine: What it ran on.
    """
    lines = [
        "# Copy retrieval on real videos",
        "",
        "Made by `python benchmarks/copy_retrieval.py`; its docstring is the protocol.",
        "",
        f"{len(material.queries)} queries against {len(material.gallery)} videos. {machine}",
        "",
        "| system | strict mAP | strict micro-AP | neutral mAP | neutral micro-AP | unrelated 99th | copies median |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, figures in results.items():
        strict, neutral = figures["strict"], figures["neutral"]
        lines.append(
            f"| {name} | {strict['mAP']:.3f} | {strict['micro_AP']:.3f} | {neutral['mAP']:.3f} | "
            f"{neutral['micro_AP']:.3f} | {figures['unrelated_99th']:.3f} | {figures['copies_quantiles']['0.5']:.3f} |"
        )
    lines += ["", *_localization(results), "", *_edits(results)]
    return "\n".join([*lines, "", *notes, ""])


def _localization(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
        "Localization, seconds in the copy, and identical videos:",
        "",
        "| system | start median | end median | start 90th | end 90th | not found | identical | recall@100 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, figures in results.items():
        if "localisation" in figures:
            errors = figures["localisation"]
            lines.append(
                f"| {name} | {errors['start_median']:.2f} | {errors['end_median']:.2f} | "
                f"{errors['start_90th']:.2f} | {errors['end_90th']:.2f} | {errors['missed']} of {errors['pairs']} | "
                f"{figures['identical_min']:.4f} | {figures['recall_at_100']:.3f} |"
            )
    return lines


def _edits(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
        "mAP / micro-AP of each edit alone (neutral):",
        "",
        "| edit | " + " | ".join(results) + " |",
        "|---" * (len(results) + 1) + "|",
    ]
    for edit in next(iter(results.values()))["edits"]:
        cells = [
            f"{figures['edits'][edit]['mAP']:.2f} / {figures['edits'][edit]['micro_AP']:.2f}"
            for figures in results.values()
        ]
        lines.append(f"| {edit} | " + " | ".join(cells) + " |")
    return lines
