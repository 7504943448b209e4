"""The one training loop of all recipes."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vidkin.errors import InvalidArgumentError, VidkinError
from vidkin.training.recipe import Recipe, load_recipe, show_recipe
from vidkin.training.report import OnProgress, TrainingInterrupted, TrainingProgress, TrainingReport
from vidkin.training.run.checkpoint import CHECKPOINT_FILE
from vidkin.training.run.interrupt import deferred_interrupt
from vidkin.training.run.log import RunLog
from vidkin.training.run.output import output_folder
from vidkin.training.run.randomness import seeded
from vidkin.training.run.state import TrainingRun

__all__ = ["RECIPE_FILE", "REPORT_FILE", "train"]

logger = logging.getLogger(__name__)

RECIPE_FILE = "recipe.toml"
REPORT_FILE = "report.json"
LOCK_FILE = ".training.lock"

_LAST = 20


def train(
    recipe: str | os.PathLike[str] | Mapping[str, Any] | Recipe,
    *,
    output: str | os.PathLike[str] | None = None,
    resume: bool = True,
    on_progress: OnProgress | None = None,
) -> TrainingReport:
    """Train an encoder by a recipe.

    The folder gets ``model.safetensors`` and ``config.toml`` (the model), ``recipe.toml`` with every default,
    ``run.jsonl``, ``report.json``, ``checkpoint.safetensors``, ``features/`` of a frozen backbone and, where it was
    made here, ``split.json``. Deterministic: on one machine with one number of threads, the same recipe and data give
    the same weights, bit for bit, also when the run was killed in between and called again.

    Args:
        recipe: A recipe, its TOML file, its content, or the name of one that comes with the package.
        output: Folder of the run, made if missing; None: ``<name of the recipe>-model`` in the current folder.
        resume: Go on from the folder's checkpoint; False starts over.
        on_progress: Called after items, steps and validations.

    Returns:
        What came of it; a run that is complete already is only reported.

    Raises:
        InvalidArgumentError: A setting is not allowed, the folder holds another run, or another process trains in it.
        DatasetError: The data are not as the reader needs them, or not one item can be read.
        TrainingError: The loss is no number any more.
        TrainingInterrupted: Ctrl-C, after the state was stored.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder = output_folder(Path(output or f"{recipe.name}-model").expanduser())
    tell = on_progress or (lambda progress: None)
    began = time.monotonic()
    last: deque[dict[str, float]] = deque(maxlen=_LAST)

    with _alone(folder), deferred_interrupt() as interrupt, seeded(recipe.schedule.seed):

        def on_item(done: int, total: int) -> None:
            if interrupt:
                raise TrainingInterrupted(TrainingReport(output=folder, steps=0, planned=planned))
            tell(TrainingProgress(phase="reading", done=done, total=total))

        planned = recipe.schedule.steps
        run = TrainingRun.prepare(recipe, folder, on_item=on_item)
        # Only now is anything of an earlier run replaced: a refusal or a wrong setting costs nothing.
        resumed = resume and run.restore()
        _begin(run, resumed=resumed)
        first = run.step
        log = RunLog(folder, resume_after=first if resumed else None, tensorboard=recipe.schedule.tensorboard)
        try:
            for batch in run.batches():
                if run.stopped_early:
                    break
                terms = run.take_step(batch)
                last.append(terms)
                warning = _watch(run, terms, log)
                if run.step % recipe.schedule.log_every == 0 or run.step == planned:
                    log.write(run.step, "step", {**terms, "learning_rate": run.learning_rate})
                tell(
                    TrainingProgress(
                        phase="training",
                        done=run.step,
                        total=planned,
                        terms=terms,
                        learning_rate=run.learning_rate,
                        warning=warning,
                    )
                )
                if recipe.validation.every and run.step % recipe.validation.every == 0:
                    _validate(run, log, tell)
                if interrupt:
                    run.checkpoint()
                    raise TrainingInterrupted(_report(run, last, first, began))
                if run.step % recipe.schedule.checkpoint_every == 0:
                    run.checkpoint()
            run.checkpoint()
            run.save()
        finally:
            log.close()
        report = _report(run, last, first, began)
        # A call that found nothing left to do knows less than the one that did it.
        if run.step > first or not (folder / REPORT_FILE).is_file():
            _write_report(report)
    return report


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One training at a time in a folder; the system's lock is gone the moment its process is, however that ended."""
    lock = FileLock(folder / LOCK_FILE, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InvalidArgumentError(
            f"another training is writing to {folder}; wait until it has finished, or give another output folder"
        ) from None
    except OSError as error:
        raise InvalidArgumentError(
            f"the output {folder} is no folder that can be written: {error.strerror or error}"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _begin(run: TrainingRun, *, resumed: bool) -> None:
    """Write what is known before the first step, and drop the checkpoint of a run that this one replaces."""
    try:
        if not resumed:
            (run.folder / CHECKPOINT_FILE).unlink(missing_ok=True)
        run.store_split()
        (run.folder / RECIPE_FILE).write_text(show_recipe(run.recipe), encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the output {run.folder} cannot be written: {error.strerror or error}"
        ) from error


def _watch(run: TrainingRun, terms: dict[str, float], log: RunLog) -> str:
    """What to warn about after a step; nothing, as a rule."""
    if "distance" not in terms or not run.watch.add(terms["distance"], run.step):
        return ""
    warning = (
        f"the embeddings collapse: at step {run.step} their mean distance is {run.watch.now:.3f}, at the start it "
        f"was {run.watch.start:.3f}; lower the learning rate, or take an objective that holds the negatives "
        "(radial_detached instead of radial)"
    )
    logger.warning("%s", warning)
    log.write(run.step, "warning", {"text": warning})
    return warning


def _validate(run: TrainingRun, log: RunLog, tell: OnProgress) -> None:
    measure = run.recipe.validation.measure
    found: dict[str, float] = {measure: run.validate()}
    log.write(run.step, "validation", found)
    tell(TrainingProgress(phase="validating", done=run.step, total=run.recipe.schedule.steps, terms=found))


def _report(run: TrainingRun, last: deque[dict[str, float]], first: int, began: float) -> TrainingReport:
    terms = {name: sum(step[name] for step in last) / len(last) for name in last[-1]} if last else {}
    broken = run.train.broken + (run.validation.broken if run.validation is not None else ())
    return TrainingReport(
        output=run.folder,
        steps=run.step,
        planned=run.recipe.schedule.steps,
        resumed_from=first,
        stopped_early=run.stopped_early,
        terms=terms,
        measure=run.recipe.validation.measure if run.best is not None else "",
        best=run.best,
        best_step=run.best_step,
        distance_start=run.watch.start,
        distance_end=run.watch.now,
        collapsed_at=run.watch.collapsed_at,
        recovered=run.watch.collapsed_at is not None and not run.watch.is_collapsed,
        broken=tuple((error.path, error.cause) for error in broken),
        seconds=time.monotonic() - began,
    )


def _write_report(report: TrainingReport) -> None:
    told = {**asdict(report), "output": os.fspath(report.output), "collapsed": report.collapsed}
    path = report.output / REPORT_FILE
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise VidkinError(f"{path} cannot be written: {error.strerror or error}") from error
