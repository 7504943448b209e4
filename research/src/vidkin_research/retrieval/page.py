"""Page of a comparison: tables, their interpretation, and images of each method's top results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vidkin._base.files import write_text
from vidkin._base.values import as_json
from vidkin.errors import MediaError
from vidkin.rendering.machine import describe_machine
from vidkin_research.ranking_picture import draw_retrieval
from vidkin_research.retrieval.methods import method_named
from vidkin_research.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin_research.retrieval.sets import comparison_set, open_set
from vidkin_research.retrieval.summary import CLAIMED, CLAIMED_METHOD, GEOMETRY, MEASURES, Row, Summary

__all__ = ["as_page", "write_report"]

_HEADINGS = (
    *("QP", "QP 15,000", "TP", "NDCG", "MAP", "MAP subcategory", "R@1"),
    *("QP gallery", "TP gallery"),
)
# Methods shown in the image, in addition to our method chosen on the validation split.
_SHOWN_METHODS = ("triplet", "quadlet", "radial_detached")


def write_report(
    name: str,
    plan: ComparisonPlan,
    data: Path,
    runs: Sequence[ComparisonRun],
    summaries: Sequence[Summary],
    output: Path,
    *,
    title: str,
    broken: Sequence[MediaError] = (),
) -> dict[str, Any]:
    """Write ``name.json``, ``name.md`` and one image per collection; return the content of the JSON file.

    Args:
        name: Name of the files.
        plan: Settings of the comparison.
        data: Folder of the collections.
        runs: All runs.
        summaries: Means of the runs, from `summarize`.
        output: Output folder.
        title: Title of the page.
        broken: Errors of the items that were left out.
    """
    machine = describe_machine()
    report = {
        "command": name,
        "machine": machine,
        "plan": plan,
        "sets": summaries,
        "broken": [(error.path, error.cause) for error in broken],
    }
    figures: dict[str, Any] = as_json(report)
    write_text(output / f"{name}.json", json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    page = as_page(summaries, plan, title=title, machine=machine)
    # Draw one image per collection, and collect the lines that show them on the page.
    lines = []
    for summary in summaries:
        pictured = [*_SHOWN_METHODS, *([summary.verdict.ours] if summary.verdict.ours else [])]
        rates = {row.method: row.learning_rate for row in summary.chosen or summary.common}
        ranked = {
            method_named(run.method).title: {int(number): row for number, row in run.ranked.items()}
            for method in pictured
            for run in runs
            if run.set == summary.set
            and run.method == method
            and run.seed == plan.seeds[0]
            and run.learning_rate == rates[method]
        }
        if not ranked:
            continue
        picture = output / f"{name}-{summary.set}.png"
        draw_retrieval(open_set(comparison_set(summary.set), data), ranked, picture)
        lines += [
            "",
            f"Retrieval on {summary.set}: queries on the left (evenly sampled test items, not hand-picked), results of "
            "the first seed on the right. Green: same subcategory; blue: same category; red: another category.",
            "",
            f"![Retrieval on {summary.set}]({picture.name})",
        ]
    page += "\n".join(lines)
    write_text(output / f"{name}.md", page.rstrip() + "\n")
    return figures


def as_page(summaries: Sequence[Summary], plan: ComparisonPlan, *, title: str, machine: str) -> str:
    """Format the tables and their interpretation as Markdown.

    Args:
        summaries: From `summarize`.
        plan: Settings of the comparison.
        title: Title of the page.
        machine: Description of the machine.
    """
    rates = ", ".join(f"{rate:g}" for rate in plan.learning_rates)
    has_volume = any(method_named(name).input == "pixels" for name in plan.methods)
    volume, schedule = plan.volume, plan.schedule
    size = (
        f"{volume.width:g} of the published width, {volume.size} x {volume.size} pixels, {volume.items(schedule)} "
        f"items per step (other methods: {4 * schedule.quadlets}). It learns from pixels, with random initial weights."
    )
    reduced = [
        "",
        f"3D-CNN: {size}"
        if volume.width >= 1
        else "3D-CNN is reduced so that it can train on a CPU, so its row does not represent the published network: "
        + size,
    ]
    network = f"Frozen `{plan.backbone}`"
    if plan.trainable == "all":
        network = f"`{plan.backbone}` also trained, with {schedule.head_factor:g} times its rate for the later layers"
    optimizer = {"adamw": "AdamW", "adam": "Adam"}[schedule.optimizer]
    clipped = f"gradient clipped at {schedule.clip:g}" if schedule.clip else "gradient not clipped"
    lines = [
        f"# {title}",
        "",
        f"Mean +- standard deviation over {len(plan.seeds)} seeds, percent. {schedule.steps} steps of "
        f"{schedule.quadlets} quadlets (batch methods see the same number of items), {optimizer}, weight decay "
        f"{schedule.weight_decay:g}, {clipped}; published margins for "
        f"all. Learning rates tried for every method: {rates}. {network}, fully connected "
        f"{plan.hidden}, then {plan.units} units (LSTM over {plan.frames} frames; for images a second layer), L2.",
        "",
        "Two protocols for quadlets, named as in `vidkin evaluate`. *Test quadlets*, the protocol of the paper: all "
        "four items are from the test split; QP and TP use all quadlets, QP 15,000 samples that many, as in the paper. "
        "*Gallery quadlets* (columns QP gallery and TP gallery): q is from the test split; p, i and n are from the "
        "training split, which contains other recordings. NDCG, MAP and R@1 rank the training split for every item of "
        "the test split. For MAP, positives and intermediates are relevant; for MAP subcategory and R@1, only "
        "positives are. "
        f"{machine}",
        *(reduced if has_volume and any(summary.video for summary in summaries) else []),
        "",
    ]
    for summary in summaries:
        lines += [f"## {summary.set}", "", f"{summary.about[0].upper()}{summary.about[1:]}.", ""]
        rate = comparison_set(summary.set).rate
        if rate is not None:
            lines += [
                f"Training clips are sampled anew: each step uses {plan.frames} consecutive frames at {rate:g} per "
                "second, from a random position in the video. Evaluation clips are fixed.",
                "",
            ]
        lines += [f"Every method at learning rate {plan.learning_rates[0]:g}:", ""]
        lines += _table(summary.common)
        if summary.chosen:
            lines += ["", "Every method at the learning rate with the best QP on the validation split:", ""]
            lines += _table(summary.chosen)
        lines += ["", *_sentences(summary), "", *_geometry(summary.chosen or summary.common), ""]
    return "\n".join(lines)


def _sentences(summary: Summary) -> list[str]:
    verdict = summary.verdict
    sentences = []
    if verdict.radial_over_triplet is not None and verdict.needed is not None:
        word = "more" if verdict.radial_over_triplet > verdict.needed else "not more"
        sentences.append(
            f"* Radial (no gradient through R) minus Triplet: {verdict.radial_over_triplet:+.1f} points of QP, {word} "
            f"than two standard deviations of the difference ({verdict.needed:.1f})."
        )
    if verdict.ours is not None and verdict.ours_over_radial is not None:
        sentences.append(
            f"* Our best method on the validation split: {method_named(verdict.ours).title}; "
            f"{verdict.ours_over_radial:+.1f} points of QP compared with Radial (no gradient through R)."
        )
    if verdict.claim is not None:
        claim = verdict.claim
        missing = f"not tested, because some losses did not run ({'; '.join(claim.missing)})"
        outcome = {True: "holds", False: "does not hold", None: missing}[claim.holds]
        sentences.append(
            f"* Claim: {method_named(CLAIMED_METHOD).title} is at least {CLAIMED:g} points of QP above every published "
            f"loss. {claim.gain:+.1f} points compared with {claim.best}; two standard deviations of the difference are "
            f"{claim.needed:.1f}: {outcome}."
        )
    if verdict.order is not None:
        pairs = "; ".join(f"{better} above {worse}" for better, worse in verdict.reversed_pairs) or "none"
        sentences.append(
            f"* Rank correlation with the published results: Spearman {verdict.order:+.2f}; pairs in the opposite "
            f"order by more than two standard deviations: {pairs}."
        )
    for row in summary.common:
        if row.collapsed:
            sentences.append(
                f"* Collapse warning: {row.title} at rate {row.learning_rate:g}, {row.collapsed} of {row.seeds} runs; "
                f"mean pairwise distance of embeddings at the end: {row.distance:.2f}."
            )
    return sentences


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| method | " + " | ".join(_HEADINGS) + " | validation QP | rate | collapsed | seconds |",
        "|---" * (len(_HEADINGS) + 5) + "|",
    ]
    best = max(row.mean["qp"] for row in rows)
    for row in rows:
        cells = []
        for name in MEASURES:
            spread = f" +- {row.deviation[name]:.1f}" if row.seeds > 1 else ""
            has_value = not math.isnan(row.mean[name])
            cells.append(f"{row.mean[name]:.1f}{spread}" if has_value else "")
        if row.mean["qp"] == best:
            cells[0] = f"**{cells[0]}**"
        rate = f"{row.learning_rate:g}" if row.learning_rate else ""
        collapsed = f"{row.collapsed} of {row.seeds}" if row.collapsed else ""
        lines.append(
            f"| {row.title} | "
            + " | ".join(cells)
            + f" | {row.validation:.1f} | {rate} | {collapsed} | {row.seconds:.0f} |"
        )
    return lines


def _geometry(rows: Sequence[Row]) -> list[str]:
    lines = [
        "Details of QP (test quadlets; same runs as in the last table): how often each of its two orderings holds, "
        "mean squared distances, and the percentage of (q, p, i) in the training split for which no n on the unit "
        "sphere can satisfy Radial's (3R)^2 <= d(n, X).",
        "",
        "| method | QP | d(q,p) < d(q,i) | d(q,i) < d(q,n) | d(q,p) | d(q,i) | d(q,n) | unreachable |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        orders = f"{row.mean['order_inside']:.1f} | {row.mean['order_across']:.1f}"
        distances = " | ".join(f"{row.mean[name]:.2f}" for name in GEOMETRY if name.startswith("distance"))
        lines.append(f"| {row.title} | {row.mean['qp']:.1f} | {orders} | {distances} | {row.mean['unreachable']:.0f} |")
    return lines
