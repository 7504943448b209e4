"""Train a model from a recipe: read the data, take the steps, log progress, and write the model's folder."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from vidkin._base import disk
from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import create_output_folder, read_regular_file, write_text
from vidkin._base.install import install_command
from vidkin._base.values import Result, parse_json
from vidkin.errors import InvalidArgumentError, MissingPartError, VidkinError
from vidkin.models.randomness import seeded
from vidkin.training.engine import Step
from vidkin.training.prepare import prepare_run
from vidkin.training.processes import any_process, is_first, join_processes, read_in_turn
from vidkin.training.recipe import Recipe
from vidkin.training.recipe_file import load_recipe, show_recipe
from vidkin.training.runner import (
    CHECKPOINT_FILE,
    Interrupt,
    defer_interrupt,
    follow_steps,
    hold_training_folder,
)
from vidkin.training.state import TrainingRun


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """Progress of a training run.

    Attributes:
        phase: ``reading``: an item was read; ``training``: a step was taken; ``validating``: validation has finished.
        done: Number of items read or steps taken.
        total: Total number of items or steps.
        terms: Terms of the step, or the validation measure.
        learning_rate: Learning rate of the first parameter group.
        warning: A problem to report; usually empty.
    """

    phase: Literal["reading", "training", "validating"]
    done: int
    total: int
    terms: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 0.0
    warning: str = ""


OnTrainingProgress = Callable[[TrainingProgress], None]


@dataclass(frozen=True, kw_only=True)
class TrainingReport(Result):
    """The result of a training run.

    Attributes:
        output: Folder of the model.
        steps: Number of steps taken.
        planned: Number of steps in the recipe.
        resumed_from: Step of the checkpoint from which the run was resumed; 0 if there was none.
        stopped_early: Whether training stopped early after ``validation.patience`` validations without improvement.
        terms: Means of the loss terms over the last steps.
        measure: Name of the validation measure; empty without validation.
        best: Highest value of the validation measure; None without validation.
        best_step: Step with the highest value.
        distance_start: Mean distance between embeddings at the start, in [0, 2].
        distance_end: Mean distance between embeddings at the end.
        collapsed_at: Step at which the mean distance fell below the threshold; None if it did not.
        recovered: Whether the mean distance rose above the threshold again.
        notes: Choices that differ from the recipe, such as the split, with reasons.
        broken: (file, cause) for each item that could not be read and was skipped.
        seconds: Wall-clock time of this call in seconds.
    """

    derived: ClassVar = ("collapsed",)

    output: Path
    steps: int
    planned: int
    resumed_from: int = 0
    stopped_early: bool = False
    terms: Mapping[str, float] = field(default_factory=dict)
    measure: str = ""
    best: float | None = None
    best_step: int | None = None
    distance_start: float | None = None
    distance_end: float | None = None
    collapsed_at: int | None = None
    recovered: bool = False
    notes: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def collapsed(self) -> bool:
        """Whether the embeddings collapsed, that is, became nearly equal, and did not recover."""
        return self.collapsed_at is not None and not self.recovered

    def __str__(self) -> str:
        return f"step {self.steps} of {self.planned}"


class TrainingInterrupted(KeyboardInterrupt):
    """Training was interrupted with Ctrl-C after saving its state.

    Attributes:
        report: Report of the steps taken.
    """

    def __init__(self, report: TrainingReport) -> None:
        super().__init__(str(report))
        self.report = report


LOG_FILE = "run.jsonl"


@check_constructor
class RunLog:
    """The log ``run.jsonl`` in the folder of a run, with one object per line: the step and its values.

    Args:
        folder: Folder of the run; None disables writing, for all processes except the first.
        resume_after: Keep the lines up to this step, and remove lines that a killed run wrote after its last
            checkpoint; None starts over.
        tensorboard: Also write events to ``tensorboard/``.

    Raises:
        MissingPartError: TensorBoard is requested but not installed.
    """

    def __init__(self, folder: Path | None, *, resume_after: int | None = None, tensorboard: bool = False) -> None:
        self.path = Path(os.devnull) if folder is None else folder / LOG_FILE
        kept = "" if resume_after is None else _read_lines_up_to(self.path, resume_after)
        self._writer: Any = None
        if tensorboard and folder is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MissingPartError(
                    f"the TensorBoard log needs tensorboard; install it with: {install_command('tensorboard')}"
                ) from error
            purge = None if resume_after is None else resume_after + 1
            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)
        try:
            if folder is not None:
                write_text(self.path, kept)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def write(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Append a line; NaN and infinity become null."""
        finite = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        self._file.write(json.dumps({"step": step, "kind": kind, **finite}) + "\n")
        self._file.flush()
        if self._writer is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Close the log files."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()


_MAX_LOG_BYTES = 1 << 30


def _read_lines_up_to(path: Path, step: int) -> str:
    """Read the log lines up to a step, except for a last line that is incomplete because the run was killed."""
    if not path.is_file():
        return ""
    kept = []
    for line in read_regular_file(path, _MAX_LOG_BYTES).decode("utf-8", "replace").splitlines():
        try:
            values = parse_json(line)
        except ValueError:
            continue
        if values["step"] <= step:
            kept.append(line + "\n")
    return "".join(kept)


logger = logging.getLogger(__name__)

RECIPE_FILE = "recipe.toml"

REPORT_FILE = "report.json"

# Number of steps at the end of the run to average over for the terms in the report.
_REPORTED_STEPS = 20


@check_arguments
def train(
    recipe: str | os.PathLike[str] | Mapping[str, Any] | Recipe,
    *,
    output: str | os.PathLike[str] | None = None,
    resume: bool = True,
    on_progress: OnTrainingProgress | None = None,
) -> TrainingReport:
    """Train a model from a recipe.

    Writes ``model.safetensors`` and ``config.toml`` (the model), ``recipe.toml`` with all defaults, ``run.jsonl``,
    ``report.json``, ``checkpoint.safetensors``, ``features/`` of a frozen backbone and, if a new split was created,
    ``split.json``. Training is deterministic: on the same machine with the same number of threads, the same recipe and
    data give bit-identical weights, even if the run was killed and resumed.

    If called in several processes started by `torchrun`, they train a single model together: each process computes part
    of every batch, and the losses use the whole batch. Only the first process writes files and reports progress; all
    return the report. The folder must be accessible to every process.

    Args:
        recipe: A recipe, its TOML file, its content, or the name of an included recipe.
        output: Folder of the run, created if missing; None: ``<name of the recipe>-model`` in the current folder.
        resume: Continue from the checkpoint in the folder; False starts over.
        on_progress: Callback called after items, steps and validations; on a GPU, steps are reported in groups.

    Returns:
        The report; if the run is already complete, no step is taken.

    Raises:
        InvalidArgumentError: A setting is not allowed, the folder belongs to a different run, or another process is
            using it.
        DatasetError: The data does not match the reader, or no item can be read.
        TrainingError: The loss is no longer finite.
        TrainingInterrupted: Ctrl-C was pressed; the state has been saved.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder = create_output_folder(Path(output or f"{recipe.name}-model").expanduser())
    began = time.monotonic()

    with (
        join_processes(recipe.schedule.device),
        hold_training_folder(folder) if is_first() else nullcontext(),
        defer_interrupt() as interrupt,
        seeded(recipe.schedule.seed),
    ):
        writes = is_first()
        report_progress = on_progress if on_progress and writes else (lambda progress: None)

        def on_item(done: int, total: int) -> None:
            if interrupt:
                raise TrainingInterrupted(TrainingReport(output=folder, steps=0, planned=recipe.schedule.steps))
            report_progress(TrainingProgress(phase="reading", done=done, total=total))

        with read_in_turn():
            run = prepare_run(recipe, folder, on_item=on_item)
        # Files of an earlier run are not replaced before this point, so that errors in the recipe or data lose nothing.
        resumed = resume and run.restore()
        # Synchronize, so that all processes have read the checkpoint before the first one replaces it.
        any_process(resumed)
        if writes:
            _write_start(run, resumed=resumed)
        first = run.step
        log = RunLog(
            folder if writes else None,
            resume_after=first if resumed else None,
            tensorboard=recipe.schedule.tensorboard,
        )
        recorder = _Recorder(run, log, report_progress)
        try:
            if not _follow(run, recorder, interrupt):
                run.checkpoint()
            if any_process(bool(interrupt)):
                raise TrainingInterrupted(_report(run, recorder, first, began))
            if writes:
                run.save()
        finally:
            log.close()
        report = _report(run, recorder, first, began)
        # A call that takes no steps must not replace the complete report of the finished run.
        if writes and (run.step > first or not (folder / REPORT_FILE).is_file()):
            values = {**asdict(report), "output": os.fspath(folder), "collapsed": report.collapsed}
            try:
                write_text(folder / REPORT_FILE, json.dumps(values, indent=2) + "\n")
            except OSError as error:
                raise VidkinError(f"{folder / REPORT_FILE}: {error.strerror or error}") from error
    return report


class _Recorder:
    """Logs and reports steps and validations, and monitors for collapse."""

    def __init__(self, run: TrainingRun, log: RunLog, on_progress: OnTrainingProgress) -> None:
        self.run, self.log, self.report = run, log, on_progress
        self.planned = run.recipe.schedule.steps
        self.last: deque[dict[str, float]] = deque(maxlen=_REPORTED_STEPS)

    def record(self, step: Step, terms: dict[str, float]) -> None:
        """Record a step; steps must be recorded in order."""
        self.last.append(terms)
        warning = self._watch(step.number, terms)
        if step.number % self.run.recipe.schedule.log_every == 0 or step.number == self.planned:
            self.log.write(step.number, "step", {**terms, "learning_rate": step.learning_rate})
        self.report(
            TrainingProgress(
                phase="training",
                done=step.number,
                total=self.planned,
                terms=terms,
                learning_rate=step.learning_rate,
                warning=warning,
            )
        )

    def validate(self) -> None:
        """Evaluate the validation items, and report the result."""
        measured: dict[str, float] = {self.run.recipe.validation.measure: self.run.validate()}
        self.log.write(self.run.step, "validation", measured)
        self.report(TrainingProgress(phase="validating", done=self.run.step, total=self.planned, terms=measured))

    def _watch(self, step: int, terms: Mapping[str, float]) -> str:
        watch = self.run.watch
        if "distance" not in terms or not watch.add(terms["distance"], step):
            return ""
        warning = (
            f"the embeddings have collapsed: at step {step} their mean distance is {watch.now:.3f}, compared to "
            f"{watch.start:.3f} at the start; reduce the learning rate, or choose an objective that pushes negatives "
            "away (radial_detached instead of radial)"
        )
        logger.warning("%s", warning)
        self.log.write(step, "warning", {"text": warning})
        return warning


def _follow(run: TrainingRun, recorder: _Recorder, interrupt: Interrupt) -> bool:
    """Take the remaining steps, with validation, logging and checkpoints; return True if interrupted by Ctrl-C."""
    schedule, every = run.recipe.schedule, run.recipe.validation.every
    if run.stopped_early:
        return False

    def is_validated(number: int) -> bool:
        return every > 0 and number % every == 0

    def is_read(number: int) -> bool:
        # Reading terms waits for the device, so on a GPU, read them only when needed.
        is_logged = number % schedule.log_every == 0 or number == schedule.steps
        return run.device.type == "cpu" or is_logged or is_validated(number)

    def ends_after(number: int) -> bool:
        if is_validated(number):
            recorder.validate()
        return run.stopped_early

    return follow_steps(
        run.steps(),
        interrupt,
        record=recorder.record,
        store=lambda number: run.checkpoint(),
        every=schedule.checkpoint_every,
        is_read=is_read,
        ends_after=ends_after,
    )


def _write_start(run: TrainingRun, *, resumed: bool) -> None:
    """Write the files known before the first step; if a run is replaced, remove its checkpoint and report."""
    try:
        if not resumed:
            # If this run is killed, the previous run's report would be mistaken for its report.
            for name in (CHECKPOINT_FILE, REPORT_FILE):
                if os.path.lexists(run.folder / name):
                    disk.unlink(run.folder / name)
        run.store_split()
        write_text(run.folder / RECIPE_FILE, show_recipe(run.recipe))
    except OSError as error:
        raise InvalidArgumentError(
            f"{run.folder}: {error.strerror or error}; choose an output folder that can be written"
        ) from error


def _report(run: TrainingRun, recorder: _Recorder, first: int, began: float) -> TrainingReport:
    last = recorder.last
    return TrainingReport(
        output=run.folder,
        steps=run.step,
        planned=run.recipe.schedule.steps,
        resumed_from=first,
        stopped_early=run.stopped_early,
        terms={name: sum(step[name] for step in last) / len(last) for name in last[-1]} if last else {},
        measure=run.recipe.validation.measure if run.best is not None else "",
        best=run.best,
        best_step=run.best_step,
        distance_start=run.watch.start,
        distance_end=run.watch.now,
        collapsed_at=run.watch.collapsed_at,
        recovered=run.watch.collapsed_at is not None and not run.watch.is_collapsed,
        notes=run.notes,
        broken=run.data.broken,
        seconds=time.monotonic() - began,
    )
