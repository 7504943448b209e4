"""Checkpoints: everything a run needs to continue exactly, in one file that is replaced as a whole."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn, optim

from vidkin._base.atomic import replace_file
from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError

__all__ = [
    "CHECKPOINT_FILE",
    "Checkpoint",
    "learned_state",
    "load_learned",
    "load_optimizer",
    "optimizer_tensors",
]

CHECKPOINT_FILE = "checkpoint.safetensors"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run after a step.

    Attributes:
        step: Number of steps taken.
        tensors: Weights, optimizer state and states of the random generators, by name.
        values: Everything else, as JSON values.
    """

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def write(self, path: Path) -> None:
        """Replace the file as a whole once its content has reached the disk: a kill leaves either the old file or the
        new one.

        Raises:
            InvalidArgumentError: The file cannot be written.
        """
        # Clones: parts that share memory cannot be written.
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
            InvalidArgumentError: The file is damaged, or was written by a newer vidkin.
        """
        try:
            with safe_open(os.fspath(path), framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if int(metadata["format"]) > _FORMAT:
                raise InvalidArgumentError(f"{path}: was written by a newer vidkin; upgrade, or start over")
            return cls(int(metadata["step"]), tensors, parse_json(metadata["noted"]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise InvalidArgumentError(
                f"{path}: the checkpoint is damaged ({error}); start over without resuming (--restart)"
            ) from error

    def below(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names start with the prefix; the prefix is removed from the names."""
        return {
            name[len(prefix) :]: tensor for name, tensor in self.tensors.items() if name.startswith(prefix)
        }


def learned_state(model: nn.Module) -> dict[str, Tensor]:
    """State of a model by name, without a backbone of which nothing learns, as that is loaded from elsewhere."""
    learns = any(
        weight.requires_grad for name, weight in model.named_parameters() if name.startswith("backbone.")
    )
    return {
        name: tensor
        for name, tensor in model.state_dict().items()
        if learns or not name.startswith("backbone.")
    }


def load_learned(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Restore what :func:`learned_state` returned.

    Raises:
        RuntimeError: Weights are missing, unknown or of another shape.
    """
    model.load_state_dict({**model.state_dict(), **state})


def optimizer_tensors(optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer as ``<number of the parameter>.<name>`` -> tensor."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": value
        for number, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimizer(optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore the state from :func:`optimizer_tensors`; the optimizer keeps its groups and learning rates."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        # A copy, because an optimizer keeps the tensors it receives and changes them in place.
        state.setdefault(int(number), {})[name] = tensor.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
