"""What a training run tells: while it goes, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["OnProgress", "TrainingInterrupted", "TrainingProgress", "TrainingReport"]


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """One sign of life.

    Attributes:
        phase: ``reading``: items are read and their features made; ``training``: a step is over; ``validating``:
            a validation is over.
        done: Items or steps that are over.
        total: Of all.
        terms: Of a step its terms, of a validation its measure.
        learning_rate: Of a step, of the first group of weights.
        warning: What is wrong; empty as a rule.
    """

    phase: Literal["reading", "training", "validating"]
    done: int
    total: int
    terms: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 0.0
    warning: str = ""


OnProgress = Callable[[TrainingProgress], None]


@dataclass(frozen=True, kw_only=True)
class TrainingReport:
    """What came of a training run.

    Attributes:
        output: Folder with the model.
        steps: Steps that are over.
        planned: Steps of the recipe.
        resumed_from: Step of the checkpoint that it went on from; 0 where there was none.
        stopped_early: Validation had not become better for ``validation.patience`` times.
        terms: Means over the last steps.
        measure: What validation measured; empty without validation.
        best: Its highest value; None without validation.
        best_step: The step of it.
        distance_start: Mean distance of pairs of embeddings at the start, in [0, 2].
        distance_end: At the end.
        collapsed_at: Step at which it fell below the threshold; None: never.
        recovered: It has since risen above the threshold again.
        broken: (file, cause) of items that could not be read and were left out.
        seconds: Of this call.
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
    broken: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def collapsed(self) -> bool:
        """Did all embeddings come to lie at nearly one place, and stay there?"""
        return self.collapsed_at is not None and not self.recovered

    def __str__(self) -> str:
        return f"step {self.steps} of {self.planned}"


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C, after everything so far was stored.

    Attributes:
        report: How far it came.
    """

    def __init__(self, report: TrainingReport) -> None:
        super().__init__(str(report))
        self.report = report
