"""The runner of every training: takes steps, stores and restores the state between two, and ends on Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, optim

from vidkin.errors import InvalidArgumentError
from vidkin.models.engine import Step, check_finite, read_terms
from vidkin.models.processes.group import any_process, is_first
from vidkin.models.randomness import random_state, restore_random_state
from vidkin.models.resume.checkpoint import (
    CHECKPOINT_FILE,
    Checkpoint,
    learned_state,
    load_learned,
    load_optimizer,
    optimizer_tensors,
)
from vidkin.models.resume.interrupt import Interrupt, deferred_interrupt

__all__ = ["StepStore", "follow_steps"]

_EVERY = 50
# As vidkin 0.1 spelled it; part of the checkpoint format.
_OPTIMIZER = "optimiser."


def follow_steps(
    steps: Iterable[Step],
    interrupt: Interrupt,
    *,
    record: Callable[[Step, dict[str, float]], None],
    store: Callable[[int], None],
    every: int,
    is_read: Callable[[int], bool] = lambda number: True,
    ends_after: Callable[[int], bool] = lambda number: False,
) -> bool:
    """Take all steps and do what is due after each; True if Ctrl-C ended them, after a whole step that is stored.

    Args:
        steps: The steps, as from :func:`vidkin.models.engine.take_steps`.
        interrupt: Whether Ctrl-C has been pressed; that of one process ends all.
        record: Callback that receives each step with its terms, in order, before anything of it is stored.
        store: Stores the state after the step with this number.
        every: Steps between two stored states.
        is_read: Whether terms are read after a step. Reading waits for the device; unread steps are recorded later.
        ends_after: Called after each step, which is recorded if it was read; True ends the training.

    Raises:
        TrainingError: The loss is no longer finite.
    """
    unread: list[Step] = []

    def read() -> None:
        for step, terms in zip(unread, read_terms(unread), strict=True):
            check_finite(step.number, terms)
            record(step, terms)
        unread.clear()

    for step in steps:
        unread.append(step)
        is_due = step.number % every == 0
        if is_due or interrupt or is_read(step.number):
            read()
        is_last = ends_after(step.number)
        interrupted = any_process(bool(interrupt))
        if is_last or interrupted:
            read()
        if interrupted or (is_due and not is_last):
            store(step.number)
        if is_last or interrupted:
            return interrupted
    read()
    return False


@dataclass(eq=False)
class StepStore:
    """The checkpoint of a training, which resumes from it; of several processes the first one writes it.

    Attributes:
        folder: Folder of the checkpoint; None stores nothing.
        fingerprint: Hash of everything that decides the weights: a checkpoint with another one belongs to another
            training.
        every: Steps between two checkpoints.
        terms: The terms of every step that :meth:`follow` has taken, including those before a restart.
        describe_other: What differs in a checkpoint of another training, from its values, for the message.
    """

    folder: Path | None = None
    fingerprint: str = ""
    every: int = _EVERY
    terms: list[dict[str, float]] = field(default_factory=list)
    describe_other: Callable[[Mapping[str, Any]], str] = field(
        default=lambda values: "an unfinished training with another recipe, other labels or other weights"
    )

    def restore(
        self, model: nn.Module, optimizer: optim.Optimizer, generator: torch.Generator | None = None
    ) -> int:
        """Restore model, optimizer and random generators; return the number of steps taken, 0 without a checkpoint.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to another training.
        """
        stored = self.read(model, optimizer, generator)
        # All processes have read the checkpoint before the first one replaces it.
        any_process(False)
        if stored is None:
            return 0
        self.terms = list(stored.values["terms"])
        return stored.step

    def read(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        generator: torch.Generator | None = None,
        *,
        modules: Mapping[str, nn.Module] | None = None,
    ) -> Checkpoint | None:
        """Load the checkpoint into what :meth:`write` stored, and return it; None if there is none.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to another training.
        """
        path = self._path()
        if path is None or not path.is_file():
            return None
        stored = Checkpoint.read(path)
        if stored.values.get("fingerprint") != self.fingerprint:
            raise InvalidArgumentError(
                f"{path.parent}: holds {self.describe_other(stored.values)}; choose another output folder, or start "
                "over without resuming (--restart)"
            )
        load_learned(model, stored.below("model."))
        for name, module in (modules or {}).items():
            module.load_state_dict(stored.below(f"{name}."))
        load_optimizer(optimizer, stored.below(_OPTIMIZER) or stored.below("optimizer."))
        if generator is not None:
            generator.set_state(stored.tensors["generator"])
        restore_random_state(stored.tensors, stored.values["random"])
        return stored

    def write(
        self,
        step: int,
        model: nn.Module,
        optimizer: optim.Optimizer,
        generator: torch.Generator | None = None,
        *,
        modules: Mapping[str, nn.Module] | None = None,
        tensors: Mapping[str, Tensor] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Store everything that the training needs to continue exactly.

        Args:
            step: Number of steps taken.
            model: The model; a backbone that does not learn is left out.
            optimizer: The optimizer.
            generator: A generator that the batches are drawn with.
            modules: More modules with a state, by prefix.
            tensors: More tensors by name.
            values: More values for JSON by name.
        """
        path = self._path()
        if path is None or not is_first():
            return
        generators, random = random_state()
        stored = {
            **{f"model.{name}": tensor for name, tensor in learned_state(model).items()},
            **{
                f"{prefix}.{name}": tensor
                for prefix, module in (modules or {}).items()
                for name, tensor in module.state_dict().items()
            },
            **{f"{_OPTIMIZER}{name}": tensor for name, tensor in optimizer_tensors(optimizer).items()},
            **(tensors or {}),
            **generators,
        }
        if generator is not None:
            stored["generator"] = generator.get_state()
        state = {"fingerprint": self.fingerprint, "random": random, **(values or {})}
        Checkpoint(step, stored, state).write(path)

    def follow(
        self,
        steps: Iterable[Step],
        model: nn.Module,
        optimizer: optim.Optimizer,
        generator: torch.Generator | None = None,
        *,
        on_step: Callable[[int, Mapping[str, float]], None] | None = None,
    ) -> None:
        """Take all steps; store the state at intervals and when Ctrl-C is pressed, which then interrupts.

        Raises:
            TrainingError: The loss is no longer finite.
        """

        def record(step: Step, terms: dict[str, float]) -> None:
            self.terms.append(terms)
            if on_step is not None:
                on_step(step.number, terms)

        def store(number: int) -> None:
            self.write(number, model, optimizer, generator, values={"terms": self.terms})

        with deferred_interrupt() as interrupt:
            if follow_steps(steps, interrupt, record=record, store=store, every=self.every):
                raise KeyboardInterrupt

    def finish(self) -> None:
        """Remove the checkpoint: the training is complete."""
        path = self._path()
        if path is not None and is_first():
            path.unlink(missing_ok=True)

    def _path(self) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINT_FILE
