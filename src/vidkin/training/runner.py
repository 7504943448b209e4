"""Resumable training: checkpoints, deferred Ctrl-C, and the lock of a training folder."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from filelock import Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn, optim

from vidkin._base import disk
from vidkin._base.files import check_regular_file, replace_file
from vidkin._base.locks import open_lock
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.models.randomness import random_state, restore_random_state
from vidkin.training.engine import Step, check_finite, read_terms
from vidkin.training.processes import any_process, is_first

CHECKPOINT_FILE = "checkpoint.safetensors"

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run after a step.

    Attributes:
        step: Number of steps taken.
        tensors: Weights, optimizer state and states of the random generators, by name.
        values: All other state, as JSON values.
    """

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the file atomically: if the process is killed, either the old or the new file remains.

        Raises:
            InvalidArgumentError: The file cannot be written.
        """
        # safetensors cannot write tensors that share memory.
        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.tensors.items()}
        metadata = {"format": str(_FORMAT), "step": str(self.step), "noted": json.dumps(self.values)}
        try:
            with replace_file(path) as temporary:
                save_file(tensors, temporary, metadata=metadata)
        except (OSError, SafetensorError) as error:
            raise InvalidArgumentError(f"{path}: the checkpoint cannot be written: {error}") from error

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a checkpoint written by :meth:`write`.

        Raises:
            InvalidArgumentError: The file is damaged, or was written by a newer version of vidkin.
        """
        try:
            check_regular_file(path)
            with safe_open(os.fspath(path), framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if int(metadata["format"]) > _FORMAT:
                raise InvalidArgumentError(
                    f"{path}: was written by a newer version of vidkin; upgrade, or start over (--restart)"
                )
            return cls(int(metadata["step"]), tensors, parse_json(metadata["noted"]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise InvalidArgumentError(
                f"{path}: the checkpoint is damaged ({error}); start over (--restart)"
            ) from error

    def select(self, prefix: str) -> dict[str, Tensor]:
        """Select the tensors with this prefix, by name without the prefix."""
        return {name[len(prefix) :]: tensor for name, tensor in self.tensors.items() if name.startswith(prefix)}


def learned_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model by name, without a frozen backbone, which is loaded separately."""
    learns = any(weight.requires_grad for name, weight in model.named_parameters() if name.startswith("backbone."))
    return {name: tensor for name, tensor in model.state_dict().items() if learns or not name.startswith("backbone.")}


def load_learned(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Restore a state returned by :func:`learned_state`.

    Raises:
        RuntimeError: Weights are missing, unknown or have the wrong shape.
    """
    model.load_state_dict({**model.state_dict(), **state})


def optimizer_tensors(optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimizer as tensors, by ``<parameter number>.<name>``."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": value
        for number, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimizer(optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore a state returned by :func:`optimizer_tensors`; the optimizer keeps its groups and learning rates."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        # Copy, because the optimizer keeps the tensors it receives and changes them in place.
        state.setdefault(int(number), {})[name] = tensor.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class Interrupt:
    """Truthy once Ctrl-C has been pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def __bool__(self) -> bool:
        return self.pressed


@contextmanager
def defer_interrupt() -> Iterator[Interrupt]:
    """Record the first SIGINT in the block instead of interrupting a step; a second SIGINT interrupts immediately.

    Has no effect outside the main thread, where Python does not allow signal handlers.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupt.pressed:
            raise KeyboardInterrupt
        interrupt.pressed = True

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)


_DEFAULT_INTERVAL = 50

_OPTIMIZER_PREFIX = "optimizer."


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
    """Take all steps, record them, and save checkpoints; return True if interrupted by Ctrl-C.

    Ctrl-C takes effect between two steps, after a checkpoint is saved.

    Args:
        steps: The steps, from :func:`vidkin.training.engine.take_steps`.
        interrupt: Whether Ctrl-C has been pressed; if pressed in any process, all processes stop.
        record: Callback that receives each step with its terms, in order, before its checkpoint is saved.
        store: Callback that saves a checkpoint after the step with this number.
        every: Number of steps between two checkpoints.
        is_read: Whether to read the terms after a step. Reading waits for the device; unread steps are recorded later.
        ends_after: Whether to stop after a step; called after the step is recorded, if it is read.

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
    """The checkpoint of a training run; only the first process writes it.

    Attributes:
        folder: Folder of the checkpoint; None disables checkpoints.
        fingerprint: Hash of everything that affects the weights; a checkpoint with another fingerprint belongs to a
            different run.
        every: Number of steps between two checkpoints.
        terms: Terms of every step taken by :meth:`follow`, including steps before a restart.
        describe_other: Function that describes the run of a checkpoint with these values, for error messages.
    """

    folder: Path | None = None
    fingerprint: str = ""
    every: int = _DEFAULT_INTERVAL
    terms: list[dict[str, float]] = field(default_factory=list)
    describe_other: Callable[[Mapping[str, Any]], str] = field(
        default=lambda values: "an unfinished training run with a different recipe, labels or weights"
    )

    def restore(self, model: nn.Module, optimizer: optim.Optimizer, generator: torch.Generator | None = None) -> int:
        """Restore the model, optimizer and random generators; return the number of steps taken, or 0 if there is no
        checkpoint.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to a different training run.
        """
        stored = self.read(model, optimizer, generator)
        # Synchronize, so that all processes have read the checkpoint before the first one replaces it.
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
        """Load the checkpoint into the objects passed to :meth:`write`, and return it; None if there is none.

        Raises:
            InvalidArgumentError: The checkpoint is damaged, or belongs to a different training run.
        """
        path = self._path()
        if path is None or not path.is_file():
            return None
        stored = Checkpoint.read(path)
        if stored.values.get("fingerprint") != self.fingerprint:
            raise InvalidArgumentError(
                f"{path.parent}: contains {self.describe_other(stored.values)}; choose another output folder, or start "
                "over (--restart)"
            )
        load_learned(model, stored.select("model."))
        for name, module in (modules or {}).items():
            module.load_state_dict(stored.select(f"{name}."))
        load_optimizer(optimizer, stored.select(_OPTIMIZER_PREFIX))
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
        """Save a checkpoint from which the run can be resumed exactly.

        Args:
            step: Number of steps taken.
            model: The model; a frozen backbone is not saved.
            optimizer: The optimizer.
            generator: Random generator for sampling batches.
            modules: Other modules with a state, by prefix.
            tensors: Other tensors by name.
            values: Other JSON values by name.
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
            **{f"{_OPTIMIZER_PREFIX}{name}": tensor for name, tensor in optimizer_tensors(optimizer).items()},
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
        """Take all steps, saving checkpoints at intervals and when Ctrl-C is pressed.

        Raises:
            TrainingError: The loss is no longer finite.
            KeyboardInterrupt: Ctrl-C was pressed.
        """

        def record(step: Step, terms: dict[str, float]) -> None:
            self.terms.append(terms)
            if on_step is not None:
                on_step(step.number, terms)

        def store(number: int) -> None:
            self.write(number, model, optimizer, generator, values={"terms": self.terms})

        with defer_interrupt() as interrupt:
            if follow_steps(steps, interrupt, record=record, store=store, every=self.every):
                raise KeyboardInterrupt

    def finish(self) -> None:
        """Remove the checkpoint after training is complete."""
        path = self._path()
        if path is not None and is_first() and path.exists():
            disk.unlink(path)

    def _path(self) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINT_FILE


LOCK_FILE = ".training.lock"

# Seconds to wait for the lock, because the experiments page briefly acquires it to check whether it is free.
_LOCK_TIMEOUT = 0.5


@contextmanager
def hold_training_folder(folder: Path) -> Iterator[None]:
    """Allow only one training run at a time in a folder; the lock is released even if the process is killed.

    Raises:
        InvalidArgumentError: Another training run is using the folder, or it cannot be written to.
    """
    try:
        lock = open_lock(folder / LOCK_FILE)
        lock.acquire(timeout=_LOCK_TIMEOUT)
    except Timeout:
        raise InvalidArgumentError(
            f"{folder}: another training run is using this folder; wait for it to finish, or choose another output "
            "folder"
        ) from None
    except OSError as error:
        raise InvalidArgumentError(
            f"{folder}: {error.strerror or error}; choose an output folder that can be written"
        ) from error
    try:
        yield
    finally:
        lock.release()
