"""Run a comparison on labeled collections: every method, several seeds, each run stored when it is done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import nn

from vidkin._base.files import create_output_folder
from vidkin._base.values import read_json
from vidkin.datasets import LabelledSet
from vidkin.errors import MediaError
from vidkin_research.retrieval.methods import Method, method_named
from vidkin_research.retrieval.plan import ComparisonPlan, ComparisonRun
from vidkin_research.retrieval.prepared import PreparedSet
from vidkin_research.retrieval.scores import nearest_items, score_retrieval, score_validation
from vidkin_research.retrieval.sets import PathLike, comparison_set, open_set
from vidkin_research.retrieval.training import embed_inputs, train_method
from vidkin_research.runs import load_or_run

__all__ = ["choose_rate", "picture_queries", "read_runs", "run_comparison"]

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
    """All runs of a plan. Stored runs are not repeated, so an interrupted comparison resumes where it stopped.

    Args:
        plan: Settings of the comparison.
        data: Folder of the collections.
        weights: Safetensors file with the weights of the frozen network; None takes those from the hub.
        output: Folder of features and runs; processes that work on different sets can share it.
        on_progress: Callback that receives the current step and the share done, in [0, 1].
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
    """The stored runs of a plan, in the order of its sets and methods; fewer if it is not finished.

    If the data of a set changed in between, only the runs on the data that were used last.
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
    order = {name: place for place, name in enumerate(plan.methods)}
    return sorted(runs, key=lambda run: (plan.sets.index(run.set), order[run.method]))


def choose_rate(runs: Sequence[ComparisonRun], plan: ComparisonPlan) -> float:
    """The learning rate with the best QP of the first seed on the validation split; the earlier one on a tie."""
    order = {rate: place for place, rate in enumerate(plan.learning_rates)}
    trials = [run for run in runs if run.seed == plan.seeds[0]]
    best = max(trials, key=lambda run: (run.choice, -order.get(run.learning_rate, 0)))
    return best.learning_rate


def picture_queries(labelled: LabelledSet) -> list[int]:
    """Numbers of the test items that the picture shows: spread evenly instead of picked."""
    count = len(labelled.part("test"))
    step = count / _PICTURE_QUERIES
    return sorted({int((place + 0.5) * step) for place in range(_PICTURE_QUERIES)})


def _run_method(prepared: PreparedSet, method: Method) -> Iterator[ComparisonRun]:
    plan = prepared.plan
    if not method.objectives:
        for seed in plan.seeds if method.name == "untrained" else plan.seeds[:1]:
            yield _stored_or_run(prepared, method, seed, 0.0)
        return
    first = [_stored_or_run(prepared, method, plan.seeds[0], rate) for rate in plan.learning_rates]
    yield from first
    # The common rate for everyone, and the one that the validation split chose: often the same.
    for rate in dict.fromkeys((plan.learning_rates[0], choose_rate(first, plan))):
        for seed in plan.seeds[1:]:
            yield _stored_or_run(prepared, method, seed, rate)


def _stored_or_run(prepared: PreparedSet, method: Method, seed: int, rate: float) -> ComparisonRun:
    protocol = prepared.plan.protocol()

    def is_current(stored: dict[str, Any]) -> bool:
        data = stored.get("data")
        # For a while, runs on public collections were stored without a key of their data.
        same = data == prepared.key or (data is None and prepared.chosen.folder)
        return bool(stored["protocol"] == protocol and same)

    def run() -> dict[str, Any]:
        return {"protocol": protocol, "data": prepared.key, **asdict(_run(prepared, method, seed, rate))}

    path = prepared.folder / "runs" / prepared.chosen.name / f"{method.name}-{rate:g}-{seed}.json"
    return _parse_run(load_or_run(path, run, is_current=is_current))[2]


def _parse_run(stored: dict[str, Any]) -> tuple[str, str | None, ComparisonRun]:
    """(protocol, key of the data, run) of a stored run."""
    fields = dict(stored)
    return fields.pop("protocol"), fields.pop("data", None), ComparisonRun(**fields)


def _run(prepared: PreparedSet, method: Method, seed: int, rate: float) -> ComparisonRun:
    schedule = replace(prepared.plan.schedule, learning_rate=rate)
    parts = prepared.parts(pixels=method.input == "pixels")
    model = prepared.new_encoder(method, seed)
    what = f"{method.title}, seed {seed}" + (f", rate {rate:g}" if rate else "")
    prepared.report(what, 0.0)
    training = train_method(
        model,
        method,
        parts["train"],
        schedule,
        seed=seed,
        on_step=lambda step, _: prepared.report(what, step / schedule.steps),
    )
    is_frozen = method.input == "frozen"
    if training.collapsed and not is_frozen:
        _LOG.warning(
            "%s: %s collapsed: the mean distance of embeddings fell from %.2f to %.2f",
            prepared.chosen.name,
            what,
            training.distance_before,
            training.distance,
        )
    if is_frozen:
        embeddings = {
            split: nn.functional.normalize(
                part.inputs.mean(dim=1) if part.inputs.ndim == 3 else part.inputs, dim=-1
            )
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
