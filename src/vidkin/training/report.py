"""Progress and result of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vidkin._base.plain_values import Result, fields_as_json

__all__ = ["OnProgress", "TrainingInterrupted", "TrainingProgress", "TrainingReport"]


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The progress of a run.

    Attributes:
        phase: ``reading``: an item was read; ``training``: a step was taken; ``validating``: a validation was made.
        done: Items read, or steps taken.
        total: Number of all items or steps.
        terms: Terms of the step, or the figure of the validation.
        learning_rate: Of the step and the first group of weights.
        warning: A problem; usually empty.
    """

    phase: Literal["reading", "training", "validating"]
    done: int
    total: int
    terms: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 0.0
    warning: str = ""


OnProgress = Callable[[TrainingProgress], None]


@dataclass(frozen=True, kw_only=True)
class TrainingReport(Result):
    """The result of a training run.

    Attributes:
        output: Folder with the model.
        steps: Steps that were taken.
        planned: Steps of the recipe.
        resumed_from: Step of the checkpoint that it continued from; 0 if there was none.
        stopped_early: Validation had not improved for ``validation.patience`` times.
        terms: Means over the last steps.
        measure: The figure that validation measured; empty without validation.
        best: Its highest value; None without validation.
        best_step: Step of that value.
        distance_start: Mean distance of pairs of embeddings at the start, in [0, 2].
        distance_end: The same at the end.
        collapsed_at: Step at which it fell below the threshold; None: never.
        recovered: It rose above the threshold again later.
        notes: Choices that differ from the recipe, such as the split, with reasons.
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
        """All embeddings ended up at nearly one point, and stayed there."""
        return self.collapsed_at is not None and not self.recovered

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``collapsed`` as plain values, as ``vidkin train --json`` prints them."""
        return {**fields_as_json(self), "collapsed": self.collapsed}

    def __str__(self) -> str:
        return f"step {self.steps} of {self.planned}"


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C; everything so far has been stored.

    Attributes:
        report: Report of the steps that were taken.
    """

    def __init__(self, report: TrainingReport) -> None:
        super().__init__(str(report))
        self.report = report
