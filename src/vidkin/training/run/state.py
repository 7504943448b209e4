"""The parts of a training run and its state: made from a recipe, stored, restored."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, optim

from vidkin.datasets import LabelledSet, excerpts, make_split, open_labelled, read_split, write_split
from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder, build_model, save_model
from vidkin.models.collapse import CollapseWatch
from vidkin.models.engine import Step, take_steps
from vidkin.models.randomness import random_state, restore_random_state
from vidkin.models.schedules import Decay
from vidkin.training.data.batch import Batch, Draw, DrawnItems
from vidkin.training.data.inputs import Inputs, OnItem, prepare_inputs
from vidkin.training.data.streams import check_drawable, index_stream
from vidkin.training.evaluation import CACHE_FOLDER, measure_one
from vidkin.training.objectives import WeightedObjective, build_objective
from vidkin.training.recipe import Recipe, ScheduleRecipe
from vidkin.training.run.checkpoint import (
    CHECKPOINT_FILE,
    Checkpoint,
    load_optimiser,
    optimiser_tensors,
    trained_state,
)

__all__ = ["SPLIT_FILE", "TrainingRun", "open_data", "resolve_training_device"]

SPLIT_FILE = "split.json"


@dataclass(eq=False)
class TrainingRun:
    """Everything that changes while a recipe is followed.

    Attributes:
        recipe: What is followed.
        folder: Of the run.
        model: That is trained.
        objective: What is minimised.
        optimiser: Of both.
        train: Training items.
        validation: Validation items, where they are looked at.
        device: Where it computes.
        fingerprint: Of recipe, items and frozen weights; a checkpoint with another one is of another run.
        watch: For a collapse.
        divided: All items, where their split was made here.
        step: Steps that are over.
        best: Highest value of validation.
        best_step: Its step.
        best_state: Its weights.
        waited: Validations since then.
        stopped_early: Patience is at its end.
    """

    recipe: Recipe
    folder: Path
    model: Encoder
    objective: WeightedObjective
    optimiser: optim.Optimizer
    train: Inputs
    validation: Inputs | None
    device: torch.device
    fingerprint: str
    watch: CollapseWatch
    divided: LabelledSet | None = None
    step: int = 0
    best: float | None = None
    best_step: int | None = None
    best_state: dict[str, Tensor] = field(default_factory=dict)
    waited: int = 0
    stopped_early: bool = False

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, *, on_item: OnItem | None) -> TrainingRun:
        """Open the data, build the model, read the items. Random generators must be seeded already."""
        schedule = recipe.schedule
        labelled, made_here = open_data(recipe)
        device = resolve_training_device(schedule.device)
        config = recipe.config(classes=len(labelled.subcategories()))
        model = build_model(config, weights=recipe.weights or None, seed=schedule.seed).to(device)
        model.class_names = labelled.subcategories()
        train, validation = _inputs(recipe, labelled, model, folder, on_item)
        if validation is not None:
            _check_measurable(recipe.validation.measure, validation, train)
        objective = build_objective(
            recipe.objectives, model, classes=len(labelled.subcategories()), seed=schedule.seed
        ).to(device)
        check_drawable(train.labelled, objective.draws)
        return cls(
            recipe=recipe,
            folder=folder,
            model=model,
            objective=objective,
            optimiser=_optimiser(schedule, model, objective),
            train=train,
            validation=validation,
            device=device,
            fingerprint=_fingerprint(recipe, model, train),
            watch=CollapseWatch(schedule.collapse_below),
            divided=labelled if made_here else None,
        )

    def store_split(self) -> None:
        """Write the split that was made here beside the model; only once the folder is known to be of this run."""
        if self.divided is not None:
            write_split(self.divided, self.folder / SPLIT_FILE)

    def batches(self) -> Iterator[Batch]:
        """The batches of all steps that are left; the same ones whether the run was interrupted or not."""
        schedule = self.recipe.schedule
        streams: dict[Draw, Iterator[Tensor]] = {
            draw: index_stream(
                draw,
                self.train.labels,
                steps=schedule.steps,
                start=self.step,
                quadlets=schedule.quadlets,
                sizes=schedule.batch,
                seed=schedule.seed,
            )
            for draw in self.objective.draws
        }
        for step in range(self.step, schedule.steps):
            generator = torch.Generator().manual_seed(schedule.seed * 1_000_003 + step)
            yield Batch({draw: self._drawn(next(stream), generator) for draw, stream in streams.items()})

    def steps(self) -> Iterator[Step]:
        """Take the steps that are left."""
        schedule = self.recipe.schedule
        for step in take_steps(
            self.model,
            self.objective,
            self.optimiser,
            self.batches(),
            schedule=_rates(schedule),
            clip=schedule.clip,
            precision=schedule.precision,
            first=self.step,
        ):
            self.step = step.number
            yield step

    def validate(self) -> float:
        """Measure the validation items, remember the best weights, and count the patience down."""
        assert self.validation is not None
        rules = self.recipe.validation
        queries = self.validation.embed(self.model, device=self.device)
        among = rules.measure in ("qp", "tp")
        gallery = queries if among else self.train.embed(self.model, device=self.device)
        value = measure_one(rules.measure, queries, self.validation.labels, gallery, self.train.labels)
        if self.best is None or value > self.best:
            self.best, self.best_step, self.waited = value, self.step, 0
            if rules.keep == "best":
                self.best_state = {
                    name: tensor.detach().cpu().clone() for name, tensor in self._state().items()
                }
        else:
            self.waited += 1
        self.stopped_early = bool(rules.patience) and self.waited >= rules.patience
        return value

    def checkpoint(self) -> None:
        """Store everything that the run needs to go on exactly."""
        randoms, noted = random_state()
        tensors = {
            **{f"model.{name}": tensor for name, tensor in self._state().items()},
            **{f"objective.{name}": tensor for name, tensor in self.objective.state_dict().items()},
            **{f"optimiser.{name}": tensor for name, tensor in optimiser_tensors(self.optimiser).items()},
            **{f"best.{name}": tensor for name, tensor in self.best_state.items()},
            **randoms,
        }
        state: dict[str, Any] = {
            "fingerprint": self.fingerprint,
            "recipe": self.recipe.digest(),
            "random": noted,
            "watch": asdict(self.watch),
            "best": self.best,
            "best_step": self.best_step,
            "waited": self.waited,
            "stopped_early": self.stopped_early,
        }
        Checkpoint(self.step, tensors, state).write(self.folder / CHECKPOINT_FILE)

    def restore(self) -> bool:
        """Go on from the folder's checkpoint, if there is one.

        Raises:
            InvalidArgumentError: It is damaged, or of another recipe, other items or other frozen weights.
        """
        path = self.folder / CHECKPOINT_FILE
        if not path.is_file():
            return False
        found = Checkpoint.read(path)
        if found.noted["fingerprint"] != self.fingerprint:
            what = "recipe" if found.noted["recipe"] != self.recipe.digest() else "items or frozen weights"
            raise InvalidArgumentError(
                f"{self.folder} holds a run with another {what}; give another output folder, or start over "
                "without resuming (--restart)"
            )
        frozen = self.model.state_dict() if self._frozen else {}
        self.model.load_state_dict({**frozen, **_below(found.tensors, "model.")})
        self.objective.load_state_dict(_below(found.tensors, "objective."))
        load_optimiser(self.optimiser, _below(found.tensors, "optimiser."))
        self.best_state = _below(found.tensors, "best.")
        self.step = found.step
        self.best, self.best_step = found.noted["best"], found.noted["best_step"]
        self.waited, self.stopped_early = found.noted["waited"], found.noted["stopped_early"]
        self.watch = CollapseWatch(**found.noted["watch"])
        restore_random_state(found.tensors, found.noted["random"])
        return True

    def save(self) -> None:
        """Write the model: the best weights where validation chose some."""
        if self.best_state:
            frozen = self.model.state_dict() if self._frozen else {}
            self.model.load_state_dict({**frozen, **self.best_state})
        metrics = {} if self.best is None else {f"validation_{self.recipe.validation.measure}": self.best}
        notes = {
            "recipe": self.recipe.name,
            "data": self.train.labelled.name,
            "objective": [part.name for part in self.recipe.objectives],
            "seed": self.recipe.schedule.seed,
            "steps": self.step,
        }
        save_model(self.model.eval(), self.folder, metrics=metrics, notes=notes)

    def _drawn(self, indices: Tensor, generator: torch.Generator) -> DrawnItems:
        inputs, lengths = self.train.take(indices, device=self.device, generator=generator)
        labels = self.train.labels[indices].to(self.device)
        return DrawnItems(inputs, lengths, labels, self.train.are_features)

    @property
    def _frozen(self) -> bool:
        return self.recipe.model.get("trainable") == "head"

    def _state(self) -> dict[str, Tensor]:
        return trained_state(self.model, frozen=self._frozen)


def open_data(recipe: Recipe) -> tuple[LabelledSet, bool]:
    """The labelled set of a recipe with its split, and whether the split was made here.

    Raises:
        DatasetError: The collection or the split is not as it must be.
        InvalidArgumentError: A setting is not allowed.
    """
    data = recipe.data
    labelled = open_labelled(data.source, reader=data.reader, **data.options)
    if data.split:
        return read_split(labelled, data.split), False
    if "train" in labelled.split_counts():
        return labelled, False
    return (
        make_split(
            labelled, by=data.split_by, test=data.test, validation=data.validation, seed=data.split_seed
        ),
        True,
    )


def resolve_training_device(name: str) -> torch.device:
    """``auto`` is CUDA where there is one.

    Raises:
        InvalidArgumentError: CUDA is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InvalidArgumentError("schedule.device is cuda, but this machine has none that torch can use")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _inputs(
    recipe: Recipe, labelled: LabelledSet, model: Encoder, folder: Path, on_item: OnItem | None
) -> tuple[Inputs, Inputs | None]:
    data = recipe.data
    train = labelled.part("train")
    if data.excerpts > 1:
        train = excerpts(train, data.excerpts, share=data.excerpt_share)
    validation = labelled.part("validation") if recipe.validation.every else None
    total = len(train) + (0 if validation is None else len(validation))
    frozen = model.config.trainable == "head" and model.config.kind in ("clip", "image")
    made: list[Inputs] = []
    before = 0
    for part, augmentation in ((train, data.augmentation), (validation, ())):
        if part is None:
            continue
        features = frozen and not data.augmentation
        made.append(
            prepare_inputs(
                model,
                part,
                features=features,
                cache=folder / CACHE_FOLDER if data.cache == "disk" else None,
                augmentation=augmentation,
                threads=data.threads,
                on_item=None if on_item is None else _shifted(on_item, before, total),
            )
        )
        before += len(part)
    return made[0], made[1] if len(made) > 1 else None


def _check_measurable(measure: str, validation: Inputs, train: Inputs) -> None:
    """Before any step: a measure without one quadlet or hit to count is nan, and is never got better than."""
    queries, gallery = torch.zeros(len(validation), 1), torch.zeros(len(train), 1)
    if math.isnan(measure_one(measure, queries, validation.labels, gallery, train.labels)):
        why = (
            "no quadlet lies among them (two items of a subcategory, another subcategory, another category)"
            if measure in ("qp", "tp")
            else "no training item is of their kind"
        )
        raise InvalidArgumentError(
            f"validation.measure is {measure!r}, but the {len(validation)} validation items allow none: {why}; take "
            "another measure, as 'map', which ranks the training items, or other validation items"
        )


def _shifted(on_item: OnItem, before: int, total: int) -> OnItem:
    return lambda done, _: on_item(before + done, total)


def _optimiser(schedule: ScheduleRecipe, model: Encoder, objective: nn.Module) -> optim.Optimizer:
    groups = model.parameter_groups(schedule.learning_rate, head_factor=schedule.head_factor)
    own = list(objective.parameters())
    if own:
        groups.append({"params": own, "lr": groups[-1]["lr"], "name": "objective"})
    if schedule.optimiser == "sgd":
        return optim.SGD(
            groups,
            lr=schedule.learning_rate,
            momentum=schedule.momentum,
            weight_decay=schedule.weight_decay,
        )
    return optim.AdamW(groups, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)


def _rates(schedule: ScheduleRecipe) -> Decay:
    return Decay(
        kind=schedule.decay,
        steps=schedule.steps,
        warm_up=schedule.warm_up,
        final_factor=schedule.final_factor,
        step_every=schedule.step_every,
        step_factor=schedule.step_factor,
    )


def _fingerprint(recipe: Recipe, model: Encoder, train: Inputs) -> str:
    digest = hashlib.sha256(recipe.digest().encode())
    keys = [item.key(train.labelled.root) for item in train.labelled.items]
    digest.update(json.dumps([keys, train.labels.tolist()]).encode())
    if recipe.model.get("trainable") == "head":
        for name, tensor in sorted(model.state_dict().items()):
            if name.startswith("backbone."):
                digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
