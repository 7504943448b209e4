"""Checkpoints: everything that a run needs to go on exactly, in one file that is replaced in one move."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn, optim

from vidkin._base.atomic import replace_file
from vidkin.errors import InvalidArgumentError

__all__ = ["CHECKPOINT_FILE", "Checkpoint", "load_optimiser", "optimiser_tensors", "trained_state"]

CHECKPOINT_FILE = "checkpoint.safetensors"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run after a step.

    Attributes:
        step: Steps that are over.
        tensors: Weights, state of the optimiser, states of random generators, by name.
        noted: Everything else, as JSON holds it.
    """

    step: int
    tensors: dict[str, Tensor]
    noted: dict[str, Any]

    def write(self, path: Path) -> None:
        """Replace the file in one move, after its content has reached the disk: a kill leaves the old or the new one.

        Raises:
            InvalidArgumentError: It cannot be written.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        # Clones: parts that share memory cannot be written.
        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.tensors.items()}
        metadata = {"format": str(_FORMAT), "step": str(self.step), "noted": json.dumps(self.noted)}
        try:
            with replace_file(path) as temporary:
                save_file(tensors, temporary, metadata=metadata)
        except (OSError, SafetensorError) as error:
            raise InvalidArgumentError(f"the checkpoint {path} cannot be written: {error}") from error

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """What :meth:`write` wrote.

        Raises:
            InvalidArgumentError: The file is damaged or of a newer vidkin.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(path), framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if int(metadata["format"]) > _FORMAT:
                raise InvalidArgumentError(f"{path} was written by a newer vidkin; upgrade, or start over")
            return cls(int(metadata["step"]), tensors, json.loads(metadata["noted"]))
        except (OSError, SafetensorError, KeyError) as error:
            raise InvalidArgumentError(
                f"the checkpoint {path} is damaged ({error}); start over without resuming (--restart)"
            ) from error


def trained_state(model: nn.Module, *, frozen: bool) -> dict[str, Tensor]:
    """State of a model by name; without its backbone where that is frozen and comes from elsewhere."""
    return {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not (frozen and name.startswith("backbone."))
    }


def optimiser_tensors(optimiser: optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser as ``<number of the parameter>.<name>`` -> tensor."""
    state = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": value
        for number, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimiser(optimiser: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what :func:`optimiser_tensors` gave; groups and rates stay those of the optimiser."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        # A copy: an optimiser takes tensors as they are and changes them in place.
        state.setdefault(int(number), {})[name] = tensor.clone()
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
