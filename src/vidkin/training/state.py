"""The parts and state of a training run, with checkpoints, and its device, learning rate schedule and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, optim

from vidkin.datasets import LabelledSet, write_split
from vidkin.errors import InvalidArgumentError
from vidkin.training.batch import Draw, TrainingData
from vidkin.training.collapse import CollapseWatch
from vidkin.training.engine import Step, take_steps
from vidkin.training.processes import average_gradients, first_value, is_first, share_steps
from vidkin.training.recipe import Recipe, ScheduleRecipe
from vidkin.training.runner import StepStore, learned_state, load_learned
from vidkin.training.schedules import Decay, OneCycle, Schedule

SPLIT_FILE = "split.json"

# Attributes saved in checkpoints.
_STORED = ("best", "best_step", "waited", "stopped_early")

StoreModel = Callable[[Mapping[str, float], Mapping[str, Any]], object]

"""Function that writes the trained model with its metrics and notes to the run's folder."""


@dataclass(eq=False)
class TrainingRun:
    """The parts of a training run, and its state.

    Attributes:
        recipe: The recipe.
        folder: Folder of the run.
        model: The model to train.
        objective: Function of (model, batch) to minimize.
        draws: Sampling methods that the objective needs.
        optimizer: Optimizer of the model and the objective.
        data: Training and validation items.
        device: Device of the model.
        fingerprint: Hash of the recipe, items and frozen weights.
        store: Function that writes the model.
        split: All items with their split if it was created for this run, else None.
        notes: Choices that differ from the recipe, with reasons.
        sampler: State of sampling that depends on earlier weights.
        watch: Collapse monitor.
        step: Number of steps taken.
        best: Highest validation result so far.
        best_step: Step of the best validation result.
        best_state: Weights at that step.
        waited: Number of validations since the best one.
        stopped_early: Whether training stopped after ``patience`` validations without improvement.
    """

    recipe: Recipe
    folder: Path
    model: nn.Module
    objective: nn.Module
    draws: tuple[Draw, ...]
    optimizer: optim.Optimizer
    data: TrainingData[Any, Any]
    device: torch.device
    fingerprint: str
    store: StoreModel
    split: LabelledSet | None = None
    notes: tuple[str, ...] = ()
    sampler: nn.Module = field(default_factory=nn.Module)
    watch: CollapseWatch = field(init=False)
    step: int = 0
    best: float | None = None
    best_step: int | None = None
    best_state: dict[str, Tensor] = field(default_factory=dict)
    waited: int = 0
    stopped_early: bool = False

    def __post_init__(self) -> None:
        self.watch = CollapseWatch(self.recipe.schedule.collapse_below)

    def steps(self) -> Iterator[Step]:
        """Take the remaining steps, which are the same if a run is interrupted and resumed."""
        for step in take_steps(
            self.model,
            share_steps(self.objective, self.recipe.schedule.seed, self.step),
            self.optimizer,
            self.data.batches(self.draws, first=self.step),
            schedule=make_schedule(self.recipe.schedule),
            clip=self.recipe.schedule.clip,
            precision=self.recipe.schedule.precision,
            first=self.step,
            on_gradients=average_gradients,
        ):
            self.step = step.number
            yield step

    def validate(self) -> float:
        """Evaluate the validation items, keep the best weights in memory, and count validations without improvement."""
        rules = self.recipe.validation
        value = first_value(self.data.measure(self.model, rules.figure) if is_first() else 0.0)
        if self.best is None or value > self.best:
            self.best, self.best_step, self.waited = value, self.step, 0
            if rules.keep == "best":
                self.best_state = {
                    name: tensor.detach().cpu().clone() for name, tensor in learned_state(self.model).items()
                }
        else:
            self.waited += 1
        self.stopped_early = bool(rules.patience) and self.waited >= rules.patience
        return value

    def store_split(self) -> None:
        """Write a newly created split to the folder; must be called only when the folder is known to be this run's."""
        if self.split is not None:
            write_split(self.split, self.folder / SPLIT_FILE)

    def checkpoint(self) -> None:
        """Save a checkpoint from which the run can be resumed exactly."""
        self._checkpoints.write(
            self.step,
            self.model,
            self.optimizer,
            modules=self._modules,
            tensors={f"best.{name}": tensor for name, tensor in self.best_state.items()},
            values={
                "recipe": self.recipe.digest(),
                "watch": asdict(self.watch),
                **{name: getattr(self, name) for name in _STORED},
            },
        )

    def restore(self) -> bool:
        """Load the folder's checkpoint; return False if there is none.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to a run with a different recipe, items or
                frozen weights.
        """
        stored = self._checkpoints.read(self.model, self.optimizer, modules=self._modules)
        if stored is None:
            return False
        self.best_state = stored.select("best.")
        self.step = stored.step
        self.watch = CollapseWatch(**stored.values["watch"])
        for name in _STORED:
            setattr(self, name, stored.values[name])
        return True

    @property
    def _checkpoints(self) -> StepStore:
        return StepStore(
            self.folder,
            self.fingerprint,
            describe_other=lambda values: (
                "a run with "
                + (
                    "a different recipe"
                    if values["recipe"] != self.recipe.digest()
                    else "different items or frozen weights"
                )
            ),
        )

    @property
    def _modules(self) -> dict[str, nn.Module]:
        return {"objective": self.objective, "sampler": self.sampler}

    def save(self) -> None:
        """Write the model, with the best weights from validation if there are any."""
        if self.best_state:
            load_learned(self.model, self.best_state)
        metrics = {} if self.best is None else {f"validation_{self.recipe.validation.measure}": self.best}
        notes = {
            "recipe": self.recipe.name,
            "data": self.data.name,
            "objective": [part.name for part in self.recipe.objectives],
            "seed": self.recipe.schedule.seed,
            "steps": self.step,
        }
        self.model.eval()
        self.store(metrics, notes)


def choose_device(schedule: ScheduleRecipe) -> torch.device:
    """Choose the device for ``schedule.device``.

    Raises:
        InvalidArgumentError: CUDA is requested but not available.
    """
    available = torch.cuda.is_available()
    if schedule.device == "cuda" and not available:
        raise InvalidArgumentError("schedule.device is cuda, but torch found no GPU; use 'auto' or 'cpu'")
    return torch.device("cuda" if available and schedule.device != "cpu" else "cpu")


def make_schedule(schedule: ScheduleRecipe) -> Schedule:
    """Create the learning rate schedule of a recipe."""
    if schedule.decay == "one_cycle":
        return OneCycle(schedule.steps)
    return Decay(
        kind=schedule.decay,
        steps=schedule.steps,
        warm_up=schedule.warm_up,
        final_factor=schedule.final_factor,
        step_every=schedule.step_every,
        step_factor=schedule.step_factor,
    )


def make_optimizer(schedule: ScheduleRecipe, groups: list[dict[str, Any]], objective: nn.Module) -> optim.Optimizer:
    """Create the optimizer of a recipe for parameter groups and the objective's parameters."""
    objective_parameters = list(objective.parameters())
    if objective_parameters:
        groups.append({"params": objective_parameters, "lr": groups[-1]["lr"], "name": "objective"})
    if not schedule.decay_biases:
        parts = []
        for group in groups:
            matrices = [weight for weight in group["params"] if weight.ndim > 1]
            rest = [weight for weight in group["params"] if weight.ndim <= 1]
            parts += [{**group, "params": matrices}, {**group, "params": rest, "weight_decay": 0.0}]
        groups = [group for group in parts if group["params"]]
    if schedule.optimizer == "sgd":
        return optim.SGD(
            groups,
            lr=schedule.learning_rate,
            momentum=schedule.momentum,
            weight_decay=schedule.weight_decay,
        )
    kind = optim.Adam if schedule.optimizer == "adam" else optim.AdamW
    return kind(groups, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
