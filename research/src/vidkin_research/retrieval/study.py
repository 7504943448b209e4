"""Run a comparison on labeled collections: every method with several seeds, each run saved when it finishes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vidkin._base.files import create_output_folder
from vidkin._base.values import read_json
from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.metric import measures
from vidkin.metric.sampling import sample_quadlets
from vidkin.training.embedding_measures import measure_embeddings, measure_one, measure_scores
from vidkin_research.retrieval.methods import Method, method_named
from vidkin_research.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin_research.retrieval.prepared import PreparedSet
from vidkin_research.retrieval.sets import PathLike, comparison_set, open_set
from vidkin_research.retrieval.training import embed_inputs, train_method
from vidkin_research.runs import load_or_run

__all__ = [
    "choose_rate",
    "nearest_items",
    "order_and_distances",
    "read_runs",
    "run_comparison",
    "score_retrieval",
    "score_validation",
]

_LOG = logging.getLogger(__name__)

_PICTURE_QUERIES = 4

_PICTURE_RESULTS = 10


def run_comparison(
    plan: ComparisonPlan,
    data: PathLike,
    *,
    weights: PathLike | None = None,
    output: PathLike,
    on_progress: Callable[[str, float], None] | None = None,
    on_broken: Callable[[MediaError], None] | None = None,
) -> list[ComparisonRun]:
    """Run everything in a plan. Stored runs are not repeated, so an interrupted comparison resumes where it stopped.

    Args:
        plan: Settings of the comparison.
        data: Folder of the collections.
        weights: Safetensors file with the weights of the frozen network; None downloads them from the hub.
        output: Folder for features and runs; processes that work on different sets can share it.
        on_progress: Callback that receives the current step and its progress in [0, 1].
        on_broken: Callback that receives the error of each item of your own collection that is left out.

    Raises:
        InvalidArgumentError: The output folder cannot be written.
        DatasetError: A collection is missing or incomplete.
    """
    folder = create_output_folder(output)
    runs: list[ComparisonRun] = []
    for chosen in map(comparison_set, plan.sets):
        labelled = open_set(chosen, data, on_broken=on_broken)
        prepared = PreparedSet(plan, chosen, labelled, weights, folder, on_progress)
        for method in map(method_named, plan.methods):
            if method.input != "pixels" or chosen.video:
                runs += _run_method(prepared, method)
    return runs


def read_runs(plan: ComparisonPlan, output: PathLike) -> list[ComparisonRun]:
    """Read the finished runs of a plan, in the order of its sets and methods.

    If the data of a set has changed, only runs on the latest data are returned.
    """
    runs = []
    for name in plan.sets:
        paths = sorted((Path(output) / "runs" / name).glob("*.json"))
        stored = [
            (path.stat().st_mtime_ns, data, run)
            for path in paths
            for protocol, data, run in [_parse_run(read_json(path))]
            if protocol == plan.protocol() and run.method in plan.methods
        ]
        last = max(stored, key=lambda entry: entry[0])[1] if stored else None
        runs += [run for _, data, run in stored if data == last]
    order = {name: number for number, name in enumerate(plan.methods)}
    return sorted(runs, key=lambda run: (plan.sets.index(run.set), order[run.method]))


def choose_rate(runs: Sequence[ComparisonRun], plan: ComparisonPlan) -> float:
    """Return the learning rate with the best validation QP for the first seed; the earlier one on a tie."""
    order = {rate: position for position, rate in enumerate(plan.learning_rates)}
    trials = [run for run in runs if run.seed == plan.seeds[0]]
    best = max(trials, key=lambda run: (run.choice, -order.get(run.learning_rate, 0)))
    return best.learning_rate


def picture_queries(labelled: LabelledSet) -> list[int]:
    """Return the indices of the test items shown in the image, evenly sampled to avoid cherry-picking."""
    count = len(labelled.part("test"))
    step = count / _PICTURE_QUERIES
    return sorted({int((number + 0.5) * step) for number in range(_PICTURE_QUERIES)})


def _run_method(prepared: PreparedSet, method: Method) -> Iterator[ComparisonRun]:
    plan = prepared.plan
    if not method.objectives:
        for seed in plan.seeds if method.name == "untrained" else plan.seeds[:1]:
            yield _stored_or_run(prepared, method, seed, 0.0)
        return
    first = [_stored_or_run(prepared, method, plan.seeds[0], rate) for rate in plan.learning_rates]
    yield from first
    # Run the common rate and the rate chosen on the validation split, which is often the same.
    for rate in dict.fromkeys((plan.learning_rates[0], choose_rate(first, plan))):
        for seed in plan.seeds[1:]:
            yield _stored_or_run(prepared, method, seed, rate)


def _stored_or_run(prepared: PreparedSet, method: Method, seed: int, rate: float) -> ComparisonRun:
    protocol = prepared.plan.protocol()

    def is_current(stored: dict[str, Any]) -> bool:
        data = stored.get("data")
        # Older runs on public collections were stored without a data key.
        same = data == prepared.key or (data is None and prepared.chosen.folder)
        return bool(stored["protocol"] == protocol and same)

    def run() -> dict[str, Any]:
        return {"protocol": protocol, "data": prepared.key, **asdict(_run(prepared, method, seed, rate))}

    path = prepared.folder / "runs" / prepared.chosen.name / f"{method.name}-{rate:g}-{seed}.json"
    return _parse_run(load_or_run(path, run, is_current=is_current))[2]


def _parse_run(stored: dict[str, Any]) -> tuple[str, str | None, ComparisonRun]:
    """Parse a stored run into (protocol, data key, run)."""
    fields = dict(stored)
    return fields.pop("protocol"), fields.pop("data", None), ComparisonRun(**fields)


def _run(prepared: PreparedSet, method: Method, seed: int, rate: float) -> ComparisonRun:
    schedule = replace(prepared.plan.schedule, learning_rate=rate)
    parts = prepared.parts(method)
    model = prepared.new_encoder(method, seed)
    what = f"{method.title}, seed {seed}" + (f", rate {rate:g}" if rate else "")
    prepared.report(what, 0.0)
    training = train_method(
        model,
        method,
        parts["train"],
        schedule,
        seed=seed,
        items=prepared.plan.volume.items(schedule) if method.input == "pixels" else None,
        on_step=lambda step, _: prepared.report(what, step / schedule.steps),
    )
    is_frozen = method.input == "frozen"
    if training.collapsed and not is_frozen:
        _LOG.warning(
            "%s: %s collapsed: the mean pairwise distance of embeddings fell from %.2f to %.2f",
            prepared.chosen.name,
            what,
            training.distance_before,
            training.distance,
        )
    if is_frozen:
        embeddings = {
            split: nn.functional.normalize(part.inputs.mean(dim=1) if part.inputs.ndim == 3 else part.inputs, dim=-1)
            for split, part in parts.items()
        }
    else:
        embeddings = {split: embed_inputs(model, part.inputs) for split, part in parts.items()}
    gallery = embeddings["train"], parts["train"].labels
    shown = picture_queries(prepared.labelled)
    nearest = nearest_items(embeddings["test"][shown], embeddings["train"], count=_PICTURE_RESULTS)
    return ComparisonRun(
        set=prepared.chosen.name,
        method=method.name,
        seed=seed,
        learning_rate=rate,
        validation=score_validation(embeddings["validation"], parts["validation"].labels, *gallery),
        test=score_retrieval(embeddings["test"], parts["test"].labels, *gallery),
        training=asdict(training),
        collapsed=training.collapsed and not is_frozen,
        ranked={str(number): row for number, row in zip(shown, nearest, strict=True)},
    )


# Metrics of embeddings: the measures of `vidkin evaluate` in percent, and the nearest items of each query.


_RANKED = ("ndcg", "map", "map_subcategory", "recall_at_1")


def score_retrieval(queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor) -> dict[str, float]:
    """Compute the measures of `vidkin.training.Evaluation` in percent, and the result of `order_and_distances`.

    Args:
        queries: Unit vectors [Q, D].
        query_labels: [Q, 2] (category, subcategory).
        gallery: Unit vectors [G, D].
        labels: [G, 2] labels of the gallery.

    Returns:
        ``qp``, ``tp`` and their sampled versions over test quadlets, ``qp_gallery`` and ``tp_gallery`` over gallery
        quadlets (`vidkin.training.embedding_measures`), and the ranking measures ``ndcg``, ``map``,
        ``map_subcategory`` and ``recall_at_1``. The distances and ``quadlets`` are not percentages. Undefined values
        are NaN.
    """
    figures = measure_embeddings(queries, query_labels, gallery, labels, ranked=_RANKED)
    quadlets = figures.pop("quadlets")
    percent = {name: 100.0 * value for name, value in figures.items()}
    return percent | {"quadlets": quadlets} | order_and_distances(queries, query_labels, gallery, labels)


def score_validation(queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor) -> dict[str, float]:
    """Compute ``qp`` and ``qp_gallery`` in percent for choosing learning rates; arguments as in `score_retrieval`."""
    inside = measure_one("qp", queries, query_labels, gallery, labels)
    relevance = measures.graded_relevance(query_labels, labels)
    crossed = measure_scores(queries @ gallery.T, relevance, names=["qp"])["qp"]
    return {"qp": 100.0 * inside, "qp_gallery": 100.0 * crossed}


def nearest_items(queries: Tensor, gallery: Tensor, *, count: int) -> list[list[int]]:
    """Return the indices of the ``count`` nearest gallery items [G, D] for each query [Q, D], nearest first."""
    nearest = torch.cdist(queries, gallery).topk(min(count, len(gallery)), largest=False, sorted=True)
    return [[int(number) for number in row] for row in nearest.indices]


# Details of QP: how often each of its two orderings holds, and the distances between embeddings.


# c of the Radial loss in the source: the negative must be c times as far from the center as q, p and i are.
_RADIAL = 3.0

_QUADLETS = 5_000


def order_and_distances(queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor) -> dict[str, float]:
    """Compute both orderings of QP and squared distances over queries [Q, D], and reachability over a gallery [G, D].

    Returns:
        ``order_inside``: percentage of (q, p, i) with d(q, p) < d(q, i). ``order_across``: percentage of (q, i, n) with
        d(q, i) < d(q, n). ``distance_positive``, ``distance_intermediate``, ``distance_negative``: mean squared
        distance from q to p, i and n, in [0, 4]; all of them are queries. ``unreachable``: percentage of 5,000 sampled
        (q, p, i) from the gallery for which no unit vector n satisfies the constraint of the Radial loss,
        ``(3R)^2 <= ||n - X||^2 <= (1 + ||X||)^2``; NaN if the gallery has no such triplets.
    """
    squared = torch.cdist(queries, queries).square()
    relevance = measures.graded_relevance(query_labels, query_labels)
    others = ~torch.eye(len(queries), dtype=torch.bool)
    kinds = {
        "positive": others & (relevance == 2),
        "intermediate": relevance == 1,
        "negative": relevance == 0,
    }
    inside = measures.triplet_precision(
        -squared, 2 * kinds["positive"].long(), weighting="triplets", valid=others & ~kinds["negative"]
    )
    across = measures.triplet_precision(
        -squared, 2 * kinds["intermediate"].long(), weighting="triplets", valid=others & ~kinds["positive"]
    )
    figures = {"order_inside": 100.0 * float(inside), "order_across": 100.0 * float(across)}
    for name, kind in kinds.items():
        figures[f"distance_{name}"] = float(squared[kind].double().mean())
    try:
        drawn = sample_quadlets(labels, _QUADLETS, seed=0, ineligible="skip")
    except InvalidArgumentError:
        return figures | {"unreachable": math.nan}
    members = torch.stack([gallery[part] for part in (drawn.query, drawn.positive, drawn.intermediate)])
    center = members.mean(dim=0)
    radius = (members - center).norm(dim=-1).amax(dim=0)
    unreachable = float((_RADIAL * radius > 1.0 + center.norm(dim=-1)).double().mean())
    return figures | {"unreachable": 100.0 * unreachable}
