"""Run rows on sets with several seeds; every finished run is stored, so that an interrupted study resumes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vidkin._base.values import check_at_least, read_json
from vidkin.rendering.machine import describe_machine
from vidkin_research.images.contract import ImageRow, ImageTask
from vidkin_research.images.figures import RowFigures, measure_row
from vidkin_research.runs import OnStudyProgress, load_or_run, run_path

__all__ = ["ImageReport", "Rankings", "read_rankings", "run_image_study"]

Rankings = dict[str, dict[int, list[int]]]
"""Row -> number of a test image -> numbers of the test images nearest to it, nearest first."""


@dataclass(frozen=True)
class ImageReport:
    """The result of a study of images.

    Attributes:
        machine: The machine it ran on.
        sets: Numbers of classes, training images and test images by set.
        runs: One entry per set, row and seed.
    """

    machine: str
    sets: dict[str, tuple[int, int, int]]
    runs: Sequence[RowFigures]


def run_image_study(
    rows: Sequence[ImageRow],
    tasks: Sequence[ImageTask],
    work: Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    on_progress: OnStudyProgress = lambda *told: None,
) -> ImageReport:
    """Fit and measure every row on every set; finished runs in ``work`` are not repeated.

    Args:
        rows: The rows to compare.
        tasks: The sets.
        work: Folder of finished runs, created if missing.
        seeds: Seeds, with one run each; rows without a seed have one run.
        on_progress: Callback that receives the runs done, the total number of runs, and the current step.

    Raises:
        MediaError: An image cannot be read.
    """
    check_at_least(1, rows=len(rows), tasks=len(tasks), seeds=len(seeds))
    plan = [(task, row, seed) for task in tasks for row in rows for seed in (seeds if row.is_seeded else seeds[:1])]
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
        runs.append(RowFigures(**{**stored, "recalls": tuple(stored["recalls"])}))
    on_progress(len(plan), len(plan), "done")
    sizes = {task.name: (task.classes, len(task.train), len(task.test)) for task in tasks}
    return ImageReport(describe_machine(), sizes, runs)


def read_rankings(rows: Sequence[ImageRow], task: ImageTask, work: Path, *, seed: int = 0) -> Rankings:
    """What finished runs rank first for a few test images, as ``draw_retrieval`` takes it.

    Args:
        rows: The rows; those whose run was stored by an earlier version, without rankings, are left out.
        task: The set.
        work: Folder of finished runs, as of :func:`run_image_study`.
        seed: The seed of the runs.
    """
    rankings: Rankings = {}
    for row in rows:
        stored = read_json(_run_file(work, task, row, seed))
        if "nearest" in stored:
            rankings[row.name] = {query: list(results) for query, results in stored["nearest"]}
    return rankings


def _run_file(work: Path, task: ImageTask, row: ImageRow, seed: int) -> Path:
    return run_path(
        work / "runs" / task.name.replace(", ", "-"),
        (row.name, row.settings, seed, task.steps, task.learning_rate, _content(task)),
    )


def _content(task: ImageTask) -> str:
    """A digest of the items of both parts and of how they are shown."""
    listed = [
        [part.size, part.fit, [(item.key(part.labelled.root), item.label) for item in part.labelled.items]]
        for part in (task.train, task.test)
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
