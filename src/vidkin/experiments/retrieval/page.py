"""From the runs of a comparison to tables, to the published order beside the found one, and to a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from vidkin.experiments.retrieval.methods import METHODS, Method, method_named
from vidkin.experiments.retrieval.runs import Run
from vidkin.experiments.retrieval.sets import comparison_set
from vidkin.experiments.retrieval.study import ComparisonPlan, chosen_rate

__all__ = ["Row", "Summary", "Verdict", "as_page", "summarise"]

MEASURES = ("qp", "qp_sampled", "qp_inside", "ndcg", "tp", "map", "map_subcategory", "recall_at_1")
GEOMETRY = (
    "order_inside",
    "order_across",
    "distance_positive",
    "distance_intermediate",
    "distance_negative",
    "unreachable",
)
_HEADINGS = ("QP", "QP 15,000", "QP inside", "NDCG", "TP", "MAP", "MAP subcategory", "R@1")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one collection, over the seeds.

    Attributes:
        method: Its name.
        title: Its title.
        learning_rate: It was trained with; 0 for what is not trained.
        seeds: How many runs.
        mean: Of every measure on the test part, percent.
        deviation: Standard deviation over the seeds (n - 1), 0 where there is one.
        validation: Mean QP on the validation part.
        collapsed: How many runs ended with nearly all embeddings at one place.
        distance: Mean distance of two embeddings at the end.
        seconds: Mean processor time of a training.
    """

    method: str
    title: str
    learning_rate: float
    seeds: int
    mean: dict[str, float]
    deviation: dict[str, float]
    validation: float
    collapsed: int
    distance: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was to be shown, in points of QP.

    Attributes:
        radial_over_triplet: Radial without gradient through R minus Triplet.
        needed: Two standard deviations of that difference.
        ours: The method of ours with the best QP on the validation part.
        ours_over_radial: Its QP on the test part minus that of Radial without gradient through R.
        order: Spearman's correlation of QP here with the published QP, over the methods that have both; None where
            there are fewer than three.
        reversed_pairs: (better here, better in the source) of such pairs further apart here than two standard
            deviations.
    """

    radial_over_triplet: float | None
    needed: float | None
    ours: str | None
    ours_over_radial: float | None
    order: float | None
    reversed_pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All about one collection.

    Attributes:
        set: Its name.
        about: What it is.
        video: Its items are videos.
        common: Every method at the first learning rate.
        chosen: Every method at the rate that the validation part chose; empty where only one was tried.
        verdict: About ``chosen``, or about ``common`` where that is empty.
    """

    set: str
    about: str
    video: bool
    common: tuple[Row, ...]
    chosen: tuple[Row, ...]
    verdict: Verdict


def summarise(runs: Sequence[Run], plan: ComparisonPlan) -> list[Summary]:
    """Means and deviations over the seeds of every collection that has runs."""
    found = []
    for name in plan.sets:
        own = [run for run in runs if run.set == name]
        if not own:
            continue
        groups = [
            [run for run in own if run.method == method.name]
            for method in METHODS
            if any(run.method == method.name for run in own)
        ]
        first = plan.learning_rates[0]
        common = tuple(_row([run for run in group if run.learning_rate in (0.0, first)]) for group in groups)
        chosen: tuple[Row, ...] = ()
        if len(plan.learning_rates) > 1:
            chosen = tuple(
                _row([run for run in group if run.learning_rate == chosen_rate(group, plan)])
                for group in groups
            )
        known = comparison_set(name)
        verdict = _verdict(chosen or common, video=known.video)
        found.append(
            Summary(
                set=name,
                about=known.about,
                video=known.video,
                common=common,
                chosen=chosen,
                verdict=verdict,
            )
        )
    return found


def as_page(summaries: Sequence[Summary], plan: ComparisonPlan, *, title: str, machine: str) -> str:
    """The report as Markdown."""
    rates = ", ".join(f"{rate:g}" for rate in plan.learning_rates)
    lines = [
        f"# {title}",
        "",
        f"Mean +- standard deviation over {len(plan.seeds)} seeds, percent. {plan.schedule.steps} steps of "
        f"{plan.schedule.quadlets} quadlets (methods on batches see as many items), AdamW, weight decay "
        f"{plan.schedule.weight_decay:g}, gradient clipped at {plan.schedule.clip:g}; margins as published, for "
        f"all. Learning rates tried for every method: {rates}. Frozen `{plan.backbone}`, fully connected "
        f"{plan.hidden}, then {plan.units} units (LSTM over {plan.frames} frames; of pictures a second layer), L2.",
        "",
        "Queries are the test part, p, i and n the train part, which shows other recordings. QP and TP count every "
        "such quadlet; QP 15,000 draws that many, QP inside takes all four from the "
        "test part. MAP takes positives and intermediates as relevant, MAP subcategory and "
        f"R@1 positives only. {machine}",
        "",
    ]
    for summary in summaries:
        lines += [f"## {summary.set}", "", f"{summary.about[0].upper()}{summary.about[1:]}.", ""]
        lines += [f"Every method at learning rate {plan.learning_rates[0]:g}:", ""]
        lines += _table(summary.common)
        if summary.chosen:
            lines += ["", "Every method at the learning rate with the best QP on the validation part:", ""]
            lines += _table(summary.chosen)
        lines += ["", *_sentences(summary), "", *_geometry(summary.chosen or summary.common), ""]
    return "\n".join(lines)


def _row(runs: list[Run]) -> Row:
    method = method_named(runs[0].method)
    values = {name: [run.test[name] for run in runs] for name in (*MEASURES, *GEOMETRY)}
    return Row(
        method=method.name,
        title=method.title,
        learning_rate=runs[0].learning_rate,
        seeds=len(runs),
        mean={name: mean(found) for name, found in values.items()},
        deviation={name: stdev(found) if len(found) > 1 else 0.0 for name, found in values.items()},
        validation=mean(run.validation["qp"] for run in runs),
        collapsed=sum(run.collapsed for run in runs),
        distance=mean(run.training["distance"] or 0.0 for run in runs),
        seconds=mean(run.training["seconds"] or 0.0 for run in runs),
    )


def _verdict(rows: Sequence[Row], *, video: bool) -> Verdict:
    by_name = {row.method: row for row in rows}
    radial, triplet = by_name.get("radial_detached"), by_name.get("triplet")
    ours = max(
        (row for row in rows if method_named(row.method).ours), key=lambda row: row.validation, default=None
    )
    # The source has one Radial: here the form that does not collapse stands for it.
    known = [row for row in rows if _published(row, video) is not None and row.method != "radial"]
    reversed_pairs = [
        (better.title, worse.title)
        for better in known
        for worse in known
        if (_published(better, video) or 0.0) < (_published(worse, video) or 0.0)
        and better.mean["qp"] - worse.mean["qp"] > _two_deviations(better, worse)
    ]
    return Verdict(
        radial_over_triplet=radial.mean["qp"] - triplet.mean["qp"] if radial and triplet else None,
        needed=_two_deviations(radial, triplet) if radial and triplet else None,
        ours=ours.method if ours else None,
        ours_over_radial=ours.mean["qp"] - radial.mean["qp"] if ours and radial else None,
        order=_rank_correlation(
            [row.mean["qp"] for row in known], [_published(row, video) or 0.0 for row in known]
        ),
        reversed_pairs=tuple(reversed_pairs),
    )


def _sentences(summary: Summary) -> list[str]:
    verdict = summary.verdict
    found = []
    if verdict.radial_over_triplet is not None and verdict.needed is not None:
        word = "more" if verdict.radial_over_triplet > verdict.needed else "not more"
        found.append(
            f"* Radial (no gradient through R) minus Triplet: {verdict.radial_over_triplet:+.1f} points of QP, {word} "
            f"than two standard deviations of the difference ({verdict.needed:.1f})."
        )
    if verdict.ours is not None and verdict.ours_over_radial is not None:
        found.append(
            f"* Ours, chosen on the validation part: {method_named(verdict.ours).title}; "
            f"{verdict.ours_over_radial:+.1f} points of QP against Radial (no gradient through R)."
        )
    if verdict.order is not None:
        pairs = "; ".join(f"{better} above {worse}" for better, worse in verdict.reversed_pairs) or "none"
        found.append(
            f"* Order against the published one: Spearman {verdict.order:+.2f}; pairs the other way round by more "
            f"than two standard deviations: {pairs}."
        )
    for row in summary.common:
        if row.collapsed:
            found.append(
                f"* Collapse warning: {row.title} at rate {row.learning_rate:g}, {row.collapsed} of {row.seeds} runs; "
                f"mean distance of two embeddings at the end {row.distance:.2f}."
            )
    return found


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| method | " + " | ".join(_HEADINGS) + " | validation QP | rate | collapsed | seconds |",
        "|---" * (len(_HEADINGS) + 5) + "|",
    ]
    best = max(row.mean["qp"] for row in rows)
    for row in rows:
        cells = [
            f"{row.mean[name]:.1f} +- {row.deviation[name]:.1f}" if row.seeds > 1 else f"{row.mean[name]:.1f}"
            for name in MEASURES
        ]
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
        "What lies behind QP (test part; the same runs as the last table): how often each of its two orders holds, "
        "the mean squared distances, and the share of (q, p, i) of the train part for which no n on the unit sphere "
        "can satisfy Radial's (3R)^2 <= d(n, X).",
        "",
        "| method | QP | d(q,p) < d(q,i) | d(q,i) < d(q,n) | d(q,p) | d(q,i) | d(q,n) | unreachable |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        orders = f"{row.mean['order_inside']:.1f} | {row.mean['order_across']:.1f}"
        distances = " | ".join(f"{row.mean[name]:.2f}" for name in GEOMETRY if name.startswith("distance"))
        lines.append(
            f"| {row.title} | {row.mean['qp']:.1f} | {orders} | {distances} | {row.mean['unreachable']:.0f} |"
        )
    return lines


def _published(row: Row, video: bool) -> float | None:
    method: Method = method_named(row.method)
    return method.published[0 if video else 1]


def _two_deviations(one: Row, other: Row) -> float:
    variance: float = one.deviation["qp"] ** 2 + other.deviation["qp"] ** 2
    return float(2.0 * variance**0.5)


def _rank_correlation(one: list[float], other: list[float]) -> float | None:
    """Spearman's; ranks of ties are their mean."""
    if len(one) < 3:
        return None
    first, second = _ranks(one), _ranks(other)
    middle = (len(one) - 1) / 2
    products = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    squares = [sum((a - middle) ** 2 for a in ranks) for ranks in (first, second)]
    return float(products / (squares[0] * squares[1]) ** 0.5) if all(squares) else None


def _ranks(values: list[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]
