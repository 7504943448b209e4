"""Resumable training of a student: a batch depends only on the seed and the step, so that a resumed run gives the same
result."""

from __future__ import annotations

import copy
import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vidkin._base.toml import from_table, read_toml
from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.fold import Normal, fold_teacher
from vidkin_research.frame_encoder.material import Batch, Material, Witness, to_input
from vidkin_research.frame_encoder.network import Student, StudentSettings, load_student, load_teacher
from vidkin_research.frame_encoder.objective import ObjectiveSettings, objective_terms

__all__ = ["Run", "TrainSettings", "begin", "open_run", "read_recipe", "train"]

logger = logging.getLogger(__name__)

STATE_FILE, CURVE_FILE = "state.pt", "curve.json"
# Ridge for fitting the initial head, relative to the mean square of a pooled value.
_RIDGE = 0.01
# Minimum scale of a tensor when setting its learning rate, because biases can start at zero.
_MIN_SCALE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """A training recipe.

    Attributes:
        student: Architecture.
        objective: Weights of the loss terms.
        seed: Random seed.
        folded: Number of images for folding the teacher into a new student, half of them edited.
        fitted: Number of images for fitting the initial head by least squares.
        steps: Length of the schedule; a run can be stopped and resumed at any step.
        moments: Number of moments per batch, with two views each.
        paired: Fraction of moments that are paired within a scene.
        bank: Number of embeddings of other images for InfoNCE.
        shown: Number of edited views per batch that the teacher also embeds, if its file is given.
        learning_rate: Peak learning rate of a backbone tensor, relative to the root mean square of its initial values;
            linear warm-up over ``warm_up`` steps, then cosine decay.
        head_rate: Same for the last layer.
        warm_up: Number of warm-up steps.
        weight_decay: Weight decay of AdamW.
        average: Decay of the moving average of the weights, which is evaluated and exported.
        validate: Number of steps between validations.
        bfloat16: Whether to compute in bfloat16.
        dimension: Number of dimensions of the exported embeddings.
        whitened: Number of images for fitting the exported head, with two edited views each.
        whitening_ridge: See `vidkin_research.frame_encoder.whitening.fit_whitening`.
        whitening_power: See `vidkin_research.frame_encoder.whitening.fit_whitening`.
    """

    student: StudentSettings = field(default_factory=StudentSettings)
    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    seed: int = 57
    folded: int = 1500
    fitted: int = 3000
    steps: int = 60_000
    moments: int = 24
    paired: float = 0.34
    bank: int = 2048
    shown: int = 0
    learning_rate: float = 2e-4
    head_rate: float = 6e-4
    warm_up: int = 200
    weight_decay: float = 0.02
    average: float = 0.998
    validate: int = 400
    bfloat16: bool = False
    dimension: int = 256
    whitened: int = 4000
    whitening_ridge: float = 0.1
    whitening_power: float = 0.5


def read_recipe(file: Path) -> TrainSettings:
    """Read the settings from a TOML file with the tables ``student`` and ``objective``.

    Raises:
        InvalidArgumentError: The file cannot be read, or has an unknown setting.
    """
    return from_table(TrainSettings, read_toml(file), file.name)


@dataclass(eq=False)
class Run:
    """A training run and its state.

    Attributes:
        settings: Its recipe.
        student: The network.
        averaged: The moving average of its weights.
        optimizer: AdamW optimizer.
        teacher: File of the teacher to fold into the student before the first step; None if there is none.
        head_is_fitted: False for a student loaded from a file, whose head is fitted before the first step.
        step: Number of completed steps.
        seconds: Duration of these steps in seconds.
        curve: One row per ten steps and per validation.
    """

    settings: TrainSettings
    student: Student
    averaged: Student
    optimizer: torch.optim.Optimizer
    teacher: Path | None = None
    head_is_fitted: bool = True
    step: int = 0
    seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write the state and the curve atomically."""
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "settings": asdict(self.settings),
            "student": self.student.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "curve": self.curve,
        }
        partial = folder / f"{STATE_FILE}.partial"
        torch.save(state, partial)
        partial.rename(folder / STATE_FILE)
        (folder / CURVE_FILE).write_text(json.dumps(self.curve, indent=0))


def open_run(folder: Path, settings: TrainSettings, *, teacher: Path | None = None, student: Path | None = None) -> Run:
    """Open the run stored in a folder, or start a new one.

    Args:
        folder: Folder of the run.
        settings: Recipe of the run.
        teacher: File of a teacher to fold into the student of a new run before its first step.
        student: File of an exported student that initializes a new run instead; its head is refitted.

    Raises:
        InvalidArgumentError: The folder contains a run with other settings; only the number of steps may change.
    """
    torch.manual_seed(settings.seed)
    network = Student(settings.student).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    fresh = not (folder / STATE_FILE).exists()
    if fresh and student is not None:
        load_student(network, student)
    network.requires_grad_(False)
    optimizer = _make_optimizer(network, settings)
    averaged = copy.deepcopy(network).requires_grad_(False)
    begun_with = None if not fresh or student is not None else teacher
    run = Run(settings, network, averaged, optimizer, teacher=begun_with, head_is_fitted=not fresh or student is None)
    if fresh:
        return run
    state: dict[str, Any] = torch.load(folder / STATE_FILE, map_location="cpu", weights_only=True)
    told, kept = {**asdict(settings), "steps": 0}, {**state["settings"], "steps": 0}
    if told != kept:
        changed = sorted(name for name in told if told[name] != kept.get(name))
        raise InvalidArgumentError(
            f"{folder}: contains a run with other settings ({', '.join(changed)}); use these settings or another folder"
        )
    network.load_state_dict(state["student"])
    averaged.load_state_dict(state["averaged"])
    optimizer.load_state_dict(state["optimizer"])
    run.step, run.seconds, run.curve = state["step"], state["seconds"], state["curve"]
    return run


def train(
    run: Run,
    folder: Path,
    material: Material,
    *,
    witness: Witness | None = None,
    until: int | None = None,
    save_every: float = 180.0,
    on_step: Callable[[int, dict[str, float]], None] | None = None,
) -> None:
    """Run the remaining steps, up to ``until`` if given, and save the state in the folder.

    Args:
        run: The run.
        folder: Folder of the run.
        material: Training data.
        witness: Teacher that also embeds some of the views; the recipe sets how many.
        until: Last step of this call; None continues to the end of the schedule.
        save_every: Seconds between checkpoints.
        on_step: Callback that receives each step and its terms.
    """
    settings = run.settings
    if run.step == 0 and (run.teacher is not None or not run.head_is_fitted):
        begin(run, load_teacher(run.teacher, side=settings.student.side) if run.teacher else None, material)
        run.save(folder)
        logger.info("initial: %s", validate(run.averaged, material, settings))
    last = min(settings.steps, settings.steps if until is None else until)
    saved = begun = time.monotonic()
    for batch in _batches(material, settings, run.step, last, witness):
        random = np.random.default_rng([settings.seed, 5, run.step])
        terms = _take_step(run, batch, *material.draw_bank(random, settings.bank))
        run.step += 1
        if on_step is not None:
            on_step(run.step, terms)
        _record(run, terms)
        if run.step % settings.validate == 0 or run.step == last:
            row = validate(run.averaged, material, settings)
            run.curve.append({"step": run.step, "training moments": len(material.training), **row})
            logger.info("step %d: %s", run.step, row)
        now = time.monotonic()
        if now - saved >= save_every or run.step == last:
            run.seconds += now - begun
            begun = saved = now
            run.save(folder)


@torch.no_grad()
def begin(run: Run, teacher: Student | None, material: Material) -> None:
    """Fold a teacher into the student of a run, if one is given, and fit its head by ridge regression.

    Both use unedited images and edited views. The learning rates are then set from the new weights.
    """
    settings = run.settings
    if teacher is not None:
        random = np.random.default_rng([settings.seed, 8])
        chosen = random.choice(material.training, size=settings.folded)
        images = [
            material.view(int(number), random, side=settings.student.side, edited=bool(position % 2))
            for position, number in enumerate(chosen)
        ]
        fold_teacher(run.student, teacher, np.stack(images), seed=settings.seed, bfloat16=settings.bfloat16)
    _fit_head(run, material)
    run.averaged.load_state_dict(run.student.state_dict())
    run.optimizer = _make_optimizer(run.student, settings)


def _fit_head(run: Run, material: Material) -> None:
    settings = run.settings
    random = np.random.default_rng([settings.seed, 7])
    chosen = random.choice(material.training, size=settings.fitted)
    normal = Normal(run.student.head.in_features, run.student.head.out_features)
    for first in range(0, len(chosen), settings.moments):
        numbers = chosen[first : first + settings.moments]
        images = [
            material.view(int(number), random, side=settings.student.side, edited=edited)
            for edited in (False, True)
            for number in numbers
        ]
        with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
            pooled = run.student.pooled(to_input(np.stack(images)))
        normal.add(pooled, torch.from_numpy(material.vectors[numbers].astype(np.float32)).repeat(2, 1))
    weight, shift = normal.solve(_RIDGE)
    run.student.head.weight.copy_(weight)
    run.student.head.bias.copy_(shift)


def _make_optimizer(network: Student, settings: TrainSettings) -> torch.optim.Optimizer:
    """Create AdamW with learning rates relative to each tensor's scale; a shared rate would destroy small tensors."""
    groups = []
    for rate, parameters in (
        (settings.learning_rate, network.trained()),
        (settings.head_rate, network.head.parameters()),
    ):
        for parameter in parameters:
            parameter.requires_grad_(True)
            size = float(parameter.detach().square().mean().sqrt())
            groups.append({"params": [parameter], "base": rate * max(size, _MIN_SCALE)})
    return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def _batches(
    material: Material, settings: TrainSettings, first: int, last: int, witness: Witness | None
) -> Iterator[Batch]:
    """Yield the batches of these steps, while another thread prepares the next one."""

    def prepare(step: int) -> Batch:
        random = np.random.default_rng([settings.seed, 4, step])
        return material.draw(
            random, moments=settings.moments, paired=settings.paired, side=settings.student.side, witness=witness
        )

    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(prepare, first)
        for step in range(first, last):
            batch = pending.result()
            if step + 1 < last:
                pending = pool.submit(prepare, step + 1)
            yield batch


def _take_step(run: Run, batch: Batch, bank: torch.Tensor, bank_groups: torch.Tensor) -> dict[str, float]:
    settings = run.settings
    for group in run.optimizer.param_groups:
        group["lr"] = group["base"] * _rate(run.step, settings)
    run.student.train()
    with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
        vectors = run.student(to_input(batch.images))
    terms = objective_terms(vectors.float(), batch, bank, bank_groups, settings.objective)
    total = torch.stack(list(terms.values())).sum()
    run.optimizer.zero_grad(set_to_none=True)
    total.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(run.student.parameters(), 5.0)
    run.optimizer.step()
    decay = min(settings.average, (1 + run.step) / (10 + run.step))
    with torch.no_grad():
        for mean, now in zip(run.averaged.parameters(), run.student.parameters(), strict=True):
            mean.lerp_(now, 1 - decay)
    return {"loss": float(total.detach()), **{name: float(term.detach()) for name, term in terms.items()}}


def _rate(step: int, settings: TrainSettings) -> float:
    rising = min(1.0, (step + 1) / max(1, settings.warm_up))
    return rising * 0.5 * (1 + math.cos(math.pi * step / settings.steps))


def _record(run: Run, terms: dict[str, float]) -> None:
    """Add the mean over every ten steps to the curve."""
    first = (run.step - 1) % 10 == 0
    if first:
        run.curve.append({"step": run.step, **terms})
        return
    row = run.curve[-1]
    if "loss" in row:
        part = 1 / ((run.step - 1) % 10 + 1)
        for name, value in terms.items():
            row[name] += (value - row[name]) * part
        row["step"] = run.step


@torch.no_grad()
def validate(student: Student, material: Material, settings: TrainSettings, *, most: int = 120) -> dict[str, float]:
    """Measure how well edited views of validation images retrieve these images.

    Returns:
        Fraction of edited views whose best image is correct, and the mean cosine to the teacher's embeddings of the
        images, for unedited and edited views.
    """
    chosen = material.validation[:: max(1, len(material.validation) // most)][:most]
    if len(chosen) < 2:
        return {}
    student.eval()
    teacher = torch.from_numpy(material.vectors[chosen].astype(np.float32))
    plain, *edited = (_encode(student, material, chosen, settings, views) for views in range(3))
    own = torch.arange(len(chosen))
    found = [(vectors @ plain.T).argmax(dim=1) == own for vectors in edited]
    return {
        "recall": float(torch.cat(found).float().mean()),
        "cosine plain": float((plain * teacher).sum(dim=1).mean()),
        "cosine edited": float((torch.cat(edited) * teacher.repeat(2, 1)).sum(dim=1).mean()),
    }


def _encode(
    student: Student, material: Material, chosen: NDArray[np.int64], settings: TrainSettings, views: int
) -> torch.Tensor:
    """Embed these images, unedited (``views`` is 0) or as the edited view with this number."""
    random = np.random.default_rng([settings.seed, 6, views])
    side, pieces = settings.student.side, []
    for first in range(0, len(chosen), 40):
        images = [
            material.view(int(number), random, side=side, edited=views > 0) for number in chosen[first : first + 40]
        ]
        with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
            pieces.append(student(to_input(np.stack(images))).float())
    return torch.cat(pieces)
