"""Store and restore the state of a training between two steps; refuse the state of another training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn, optim

from vidkin.errors import InvalidArgumentError
from vidkin.models.engine import Step, check_finite, read_terms
from vidkin.models.processes.group import any_process, is_first
from vidkin.models.randomness import random_state, restore_random_state
from vidkin.models.resume.checkpoint import (
    CHECKPOINT_FILE,
    Checkpoint,
    load_optimizer,
    optimizer_tensors,
    trained_state,
)
from vidkin.models.resume.interrupt import deferred_interrupt

__all__ = ["StepStore"]

_EVERY = 50


@dataclass(eq=False)
class StepStore:
    """The checkpoint of a training without validation; of several processes the first one writes it.

    Attributes:
        folder: Folder of the checkpoint; None stores nothing.
        fingerprint: Hash of everything that decides the weights: a checkpoint with another one belongs to another
            training.
        every: Steps between two checkpoints.
        terms: The terms of every step taken, including those before a restart.
    """

    folder: Path | None = None
    fingerprint: str = ""
    every: int = _EVERY
    terms: list[dict[str, float]] = field(default_factory=list)

    def restore(
        self, model: nn.Module, optimizer: optim.Optimizer, generator: torch.Generator | None = None
    ) -> int:
        """Restore model, optimizer and random generators; return the number of steps taken, 0 without a checkpoint.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to another training.
        """
        path = self._path()
        stored = None if path is None or not path.is_file() else Checkpoint.read(path)
        # All processes have read the checkpoint before the first one replaces it.
        any_process(False)
        if path is None or stored is None:
            return 0
        if stored.values.get("fingerprint") != self.fingerprint:
            raise InvalidArgumentError(
                f"{path.parent}: holds an unfinished training with another recipe, other labels or other weights; "
                "choose another output folder, or start over without resuming (--restart)"
            )
        model.load_state_dict({**model.state_dict(), **stored.below("model.")})
        load_optimizer(optimizer, stored.below("optimizer."))
        restore_random_state(stored.tensors, stored.values["random"])
        if generator is not None:
            generator.set_state(stored.tensors["generator"])
        self.terms = list(stored.values["terms"])
        return stored.step

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
        with deferred_interrupt() as interrupt:
            for step in steps:
                (terms,) = read_terms([step])
                check_finite(step.number, terms)
                self.terms.append(terms)
                if on_step is not None:
                    on_step(step.number, terms)
                interrupted = any_process(bool(interrupt))
                if interrupted or step.number % self.every == 0:
                    self._write(step.number, model, optimizer, generator)
                if interrupted:
                    raise KeyboardInterrupt

    def finish(self) -> None:
        """Remove the checkpoint: the training is complete."""
        path = self._path()
        if path is not None and is_first():
            path.unlink(missing_ok=True)

    def _path(self) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINT_FILE

    def _write(
        self, step: int, model: nn.Module, optimizer: optim.Optimizer, generator: torch.Generator | None
    ) -> None:
        path = self._path()
        if path is None or not is_first():
            return
        generators, values = random_state()
        learns = any(
            weight.requires_grad for name, weight in model.named_parameters() if name.startswith("backbone.")
        )
        tensors = {
            **{f"model.{name}": tensor for name, tensor in trained_state(model, frozen=not learns).items()},
            **{f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(optimizer).items()},
            **generators,
        }
        if generator is not None:
            tensors["generator"] = generator.get_state()
        state: dict[str, Any] = {"fingerprint": self.fingerprint, "random": values, "terms": self.terms}
        Checkpoint(step, tensors, state).write(path)
