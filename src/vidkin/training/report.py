"""Progress and result of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vidkin._base.plain_values import Result, fields_as_json

__all__ = ["OnTrainingProgress", "TrainingInterrupted", "TrainingProgress", "TrainingReport"]


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The progress of a run.

    Attributes:
        phase: ``reading``: an item was read; ``training``: a step was taken; ``validating``: a validation was made.
        done: Items read, or steps taken.
        total: Number of all items or steps.
        terms: Terms of the step, or the measured validation figure.
        learning_rate: Learning rate of the step for the first parameter group.
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
        resumed_from: Step of the checkpoint the run continued from; 0 if there was none.
        stopped_early: Whether training ended because ``validation.patience`` validations brought no improvement.
        terms: Means of the loss terms over the last steps.
        measure: Name of the validation figure; empty without validation.
        best: Highest value of that figure; None without validation.
        best_step: Step of that value.
        distance_start: Mean distance of pairs of embeddings at the start, in [0, 2].
        distance_end: Mean distance of pairs of embeddings at the end.
        collapsed_at: Step at which the mean distance fell below the threshold; None if never.
        recovered: Whether the mean distance rose above the threshold again later.
        notes: Choices that differ from the recipe, such as the split, with their reasons.
        broken: (file, cause) of items that could not be read and were left out.
        seconds: Wall-clock time of this call.
    """

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
        """Whether all embeddings ended up at nearly one point and stayed there."""
        return self.collapsed_at is not None and not self.recovered

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``collapsed`` as plain values, as ``vidkin train --json`` prints them."""
        return {**fields_as_json(self), "collapsed": self.collapsed}

    def __str__(self) -> str:
        return f"step {self.steps} of {self.planned}"


class TrainingInterrupted(KeyboardInterrupt):
    """Training was interrupted with Ctrl-C; everything so far has been stored.

    Attributes:
        report: Report of the steps taken.
    """

    def __init__(self, report: TrainingReport) -> None:
        super().__init__(str(report))
        self.report = report
