"""Run rows on sets with several seeds; every finished run is saved, so that an interrupted study can be resumed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vidkin._base.values import check_at_least, read_json
from vidkin.rendering.machine import describe_machine
from vidkin_research.images.contract import BACKBONE, ImageRow, ImageTask
from vidkin_research.images.figures import RowFigures, measure_row
from vidkin_research.runs import OnStudyProgress, load_or_run, run_path

__all__ = ["ImageReport", "Rankings", "choose_rates", "read_rankings", "run_image_study"]

Rankings = dict[str, dict[int, list[int]]]
"""Row -> index of a test image -> indices of its nearest test images, nearest first."""


@dataclass(frozen=True)
class ImageReport:
    """Result of an image study.

    Attributes:
        machine: Description of the machine.
        sets: Number of classes, training images and test images, by set.
        runs: One entry per set, row and seed.
        rates: Learning rates tried on the validation split; empty if only one was given.
    """

    machine: str
    sets: dict[str, tuple[int, int, int]]
    runs: Sequence[RowFigures]
    rates: Sequence[float] = ()


def run_image_study(
    rows: Sequence[ImageRow],
    tasks: Sequence[ImageTask],
    work: Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    rates: Mapping[tuple[str, str], float] | None = None,
    on_progress: OnStudyProgress = lambda *told: None,
) -> ImageReport:
    """Fit and evaluate every row on every set; finished runs in ``work`` are not repeated.

    Args:
        rows: The rows to compare.
        tasks: The sets.
        work: Folder of finished runs; created if it does not exist.
        seeds: Seeds, with one run each; rows that do not use a seed are run once.
        rates: Learning rate by (set, row), from :func:`choose_rates`; default: the set's rate.
        on_progress: Callback that receives the runs done, the total number of runs, and the current step.

    Raises:
        MediaError: An image cannot be read.
    """
    check_at_least(1, rows=len(rows), tasks=len(tasks), seeds=len(seeds))
    chosen = rates or {}
    plan = [
        (replace(task, learning_rate=chosen.get((task.name, row.name), task.learning_rate)), row, seed)
        for task in tasks
        for row in rows
        for seed in (seeds if row.is_seeded else seeds[:1])
    ]
    runs = []
    for done, (task, row, seed) in enumerate(plan):
        on_progress(done, len(plan), f"{task.name}: {row.name}, seed {seed}")

        def fit_and_measure(task: ImageTask = task, row: ImageRow = row, seed: int = seed) -> object:
            began = time.perf_counter()
            fitted = row.fit(task, seed)
            spent = time.perf_counter() - began
            measured = measure_row(fitted, task, row=row.name, group=row.group, seed=seed, seconds_to_fit=spent)
            return {**asdict(measured.figures), "nearest": measured.nearest}

        stored = load_or_run(_run_file(work, task, row, seed), fit_and_measure)
        stored.pop("nearest", None)
        layers = {name: tuple(values) for name, values in stored.get("layers", {}).items()}
        runs.append(RowFigures(**{**stored, "recalls": tuple(stored["recalls"]), "layers": layers}))
    on_progress(len(plan), len(plan), "done")
    sizes = {task.name: (task.classes, len(task.train), len(task.test)) for task in tasks}
    return ImageReport(describe_machine(), sizes, runs)


def choose_rates(
    rows: Sequence[ImageRow],
    tasks: Mapping[str, ImageTask],
    work: Path,
    *,
    rates: Sequence[float],
    on_progress: OnStudyProgress = lambda *told: None,
) -> dict[tuple[str, str], float]:
    """Choose the learning rate of each (set, row) with the highest top-1 on validation images, with one seed.

    On a tie, the first rate is chosen.

    Args:
        rows: Rows that fine-tune a network.
        tasks: Tasks by set name, opened with ``validation=True`` (:func:`open_task`).
        work: Folder of finished runs.
        rates: The learning rates to try.
        on_progress: As in :func:`run_image_study`.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for rate in rates:
        tried = [replace(task, learning_rate=rate) for task in tasks.values()]
        report = run_image_study(rows, tried, work, seeds=(0,), on_progress=on_progress)
        by_name = {(run.set, run.row): run.top_1 for run in report.runs}
        for name, task in tasks.items():
            for row in rows:
                found.setdefault((name, row.name), []).append(by_name[task.name, row.name])
    return {key: rates[max(range(len(rates)), key=values.__getitem__)] for key, values in found.items()}


def read_rankings(
    rows: Sequence[ImageRow],
    task: ImageTask,
    work: Path,
    *,
    seed: int = 0,
    rates: Mapping[tuple[str, str], float] | None = None,
) -> Rankings:
    """Read the top results of finished runs for a few test images, in the format ``draw_retrieval`` takes.

    Args:
        rows: The rows; runs stored by an earlier version without rankings are left out.
        task: The set.
        work: Folder of finished runs, as in :func:`run_image_study`.
        seed: The seed of the runs.
        rates: As in :func:`run_image_study`.
    """
    rankings: Rankings = {}
    for row in rows:
        rate = (rates or {}).get((task.name, row.name), task.learning_rate)
        stored = read_json(_run_file(work, replace(task, learning_rate=rate), row, seed))
        if "nearest" in stored:
            rankings[row.name] = {query: list(results) for query, results in stored["nearest"]}
    return rankings


def _run_file(work: Path, task: ImageTask, row: ImageRow, seed: int) -> Path:
    settings: tuple[object, ...] = (row.name, row.settings, seed, task.steps, task.learning_rate, _content(task))
    if (task.backbone, task.frozen_batch_norm) != (BACKBONE, True):
        settings += (task.backbone, task.frozen_batch_norm)
    return run_path(work / "runs" / task.name.replace(", ", "-"), settings)


def _content(task: ImageTask) -> str:
    """Return a digest of the items in both splits and their input settings."""
    listed = [
        [part.size, part.fit, [(item.key(part.labelled.root), item.label) for item in part.labelled.items]]
        for part in (task.train, task.test)
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
