"""Summarize the runs of a comparison: means over seeds, and the ranking compared with the published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from vidkin_research.retrieval.methods import METHODS, method_named
from vidkin_research.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin_research.retrieval.sets import comparison_set
from vidkin_research.retrieval.study import choose_rate

__all__ = ["CLAIMED", "CLAIMED_METHOD", "GEOMETRY", "MEASURES", "Claim", "Conclusion", "Row", "Summary", "summarize"]

CLAIMED_METHOD, CLAIMED = "quadlets_and_ap", 3.0
"""Our claim: all quadlets with hierarchical AP exceeds every published loss by at least this many points of QP."""

MEASURES = (
    *("qp", "qp_sampled", "tp", "ndcg", "map", "map_subcategory", "recall_at_1"),
    *("qp_gallery", "tp_gallery"),
)
"""Measures in percent, in table order; see `vidkin.training.Evaluation`."""
GEOMETRY = (
    "order_inside",
    "order_across",
    "distance_positive",
    "distance_intermediate",
    "distance_negative",
    "unreachable",
)
"""Details of QP, see `order_and_distances`."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Results of one method on one collection, over the seeds.

    Attributes:
        method: Name of the method.
        title: Title of the method.
        learning_rate: Learning rate of the runs; 0 for a method that is not trained.
        seeds: Number of runs.
        mean: Mean of every measure on the test split, in percent.
        deviation: Standard deviation over the seeds (n - 1); 0 for one run.
        validation: Mean of `ComparisonRun.choice`, QP on the validation split.
        collapsed: Number of runs in which nearly all embeddings collapsed to one point.
        distance: Mean pairwise distance of embeddings at the end.
        seconds: Mean CPU time per run.
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
class Claim:
    """`CLAIMED_METHOD` compared with the best published loss, on the test split.

    Attributes:
        best: The published loss with the highest measured QP.
        gain: QP of the method minus QP of that loss, in points.
        needed: Two standard deviations of this difference.
        missing: Published losses that did not run; if there are any, the claim is not tested.
    """

    best: str
    gain: float
    needed: float
    missing: tuple[str, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the gain is at least `CLAIMED` points over every published loss; None if some did not run."""
        return None if self.missing else self.gain >= CLAIMED


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """Comparison of the methods, in points of QP.

    Attributes:
        radial_over_triplet: QP of Radial without gradient through R minus that of Triplet.
        needed: Two standard deviations of this difference.
        ours: Our method with the best QP on the validation split.
        ours_over_radial: Its QP on the test split minus that of Radial without gradient through R.
        order: Spearman correlation between measured and published QP, over the methods that have both; None for fewer
            than three.
        reversed_pairs: (better here, better in the source) for pairs that are more than two standard deviations apart
            here.
        claim: Result of our claim; None if its method or all published losses did not run.
    """

    radial_over_triplet: float | None
    needed: float | None
    ours: str | None
    ours_over_radial: float | None
    order: float | None
    reversed_pairs: tuple[tuple[str, str], ...]
    claim: Claim | None = None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Results on one collection.

    Attributes:
        set: Name of the collection.
        about: Description of the collection.
        video: Whether its items are videos.
        common: Rows of all methods at the first learning rate.
        chosen: Rows of all methods at the rate chosen on the validation split; empty if only one rate was tried.
        verdict: Conclusion about ``chosen``, or about ``common`` if that is empty.
    """

    set: str
    about: str
    video: bool
    common: tuple[Row, ...]
    chosen: tuple[Row, ...]
    verdict: Conclusion


def summarize(runs: Sequence[ComparisonRun], plan: ComparisonPlan) -> list[Summary]:
    """Compute means and standard deviations over the seeds; return one summary per collection that has runs."""
    summaries = []
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
                _row([run for run in group if run.learning_rate == choose_rate(group, plan)]) for group in groups
            )
        known = comparison_set(name)
        verdict = _verdict(chosen or common, video=known.video)
        summaries.append(
            Summary(
                set=name,
                about=known.about,
                video=known.video,
                common=common,
                chosen=chosen,
                verdict=verdict,
            )
        )
    return summaries


def _row(runs: list[ComparisonRun]) -> Row:
    method = method_named(runs[0].method)
    values = {name: [run.test[name] for run in runs] for name in (*MEASURES, *GEOMETRY)}
    return Row(
        method=method.name,
        title=method.title,
        learning_rate=runs[0].learning_rate,
        seeds=len(runs),
        mean={name: mean(column) for name, column in values.items()},
        deviation={name: stdev(column) if len(column) > 1 else 0.0 for name, column in values.items()},
        validation=mean(run.choice for run in runs),
        collapsed=sum(run.collapsed for run in runs),
        distance=mean(run.training["distance"] or 0.0 for run in runs),
        seconds=mean(run.training["seconds"] or 0.0 for run in runs),
    )


def _verdict(rows: Sequence[Row], *, video: bool) -> Conclusion:
    by_name = {row.method: row for row in rows}
    radial, triplet = by_name.get("radial_detached"), by_name.get("triplet")
    ours = max((row for row in rows if method_named(row.method).ours), key=lambda row: row.validation, default=None)
    # The source has one Radial loss; it is compared with our version that does not collapse.
    known = [row for row in rows if _published(row, video) is not None and row.method != "radial"]
    reversed_pairs = [
        (better.title, worse.title)
        for better in known
        for worse in known
        if (_published(better, video) or 0.0) < (_published(worse, video) or 0.0)
        and better.mean["qp"] - worse.mean["qp"] > _two_deviations(better, worse)
    ]
    return Conclusion(
        radial_over_triplet=radial.mean["qp"] - triplet.mean["qp"] if radial and triplet else None,
        needed=_two_deviations(radial, triplet) if radial and triplet else None,
        ours=ours.method if ours else None,
        ours_over_radial=ours.mean["qp"] - radial.mean["qp"] if ours and radial else None,
        order=_rank_correlation([row.mean["qp"] for row in known], [_published(row, video) or 0.0 for row in known]),
        reversed_pairs=tuple(reversed_pairs),
        claim=_claim(by_name),
    )


def _claim(rows: Mapping[str, Row]) -> Claim | None:
    # The source's losses with the same training data as ours, including Angular in its quadlet form.
    published = [method for method in METHODS if method.objectives and not method.ours and method.input == "features"]
    run = [rows[method.name] for method in published if method.name in rows]
    ours = rows.get(CLAIMED_METHOD)
    if ours is None or not run:
        return None
    best = max(run, key=lambda row: row.mean["qp"])
    missing = tuple(method.title for method in published if method.name not in rows)
    gain = ours.mean["qp"] - best.mean["qp"]
    return Claim(best=best.title, gain=gain, needed=_two_deviations(ours, best), missing=missing)


def _published(row: Row, video: bool) -> float | None:
    return method_named(row.method).published[0 if video else 1]


def _two_deviations(one: Row, other: Row) -> float:
    variance: float = one.deviation["qp"] ** 2 + other.deviation["qp"] ** 2
    return float(2.0 * variance**0.5)


def _rank_correlation(one: list[float], other: list[float]) -> float | None:
    """Compute the Spearman correlation; ties get the mean of their ranks."""
    if len(one) < 3:
        return None
    first, second = _ranks(one), _ranks(other)
    middle = (len(one) - 1) / 2
    products = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    squares = [sum((a - middle) ** 2 for a in ranks) for ranks in (first, second)]
    return float(products / (squares[0] * squares[1]) ** 0.5) if all(squares) else None


def _ranks(values: list[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]
