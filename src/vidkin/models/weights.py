"""Load weights into a network with strict checks, and convert weights to arrays and hashes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from vidkin._base.files import check_regular_file
from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    import hashlib

_MAX_LISTED = 5


def load_weights(module: nn.Module, path: str | os.PathLike[str], *, label: str) -> None:
    """Load a safetensors file into a module; all names and shapes must match.

    Args:
        module: The network that receives the weights, changed in place.
        path: The safetensors file.
        label: Description of the module for messages, such as ``"backbone 'small'"``.

    Raises:
        InvalidArgumentError: The file cannot be read, or its weights are not finite or belong to a different network.
    """
    try:
        check_regular_file(path, follow_links=True)
        state = load_file(os.fspath(path))
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"{os.fspath(path)}: cannot be read as weights: {error}") from error
    fit_state(module, state, source=path, label=label)


def fit_state(
    module: nn.Module, state: Mapping[str, torch.Tensor], *, source: str | os.PathLike[str], label: str
) -> None:
    """Load a state dictionary into a module; all names and shapes must match.

    Args:
        module: The network that receives the weights, changed in place.
        state: Weights by name.
        source: Path of the weights, for messages.
        label: Description of the module for messages.

    Raises:
        InvalidArgumentError: The weights are not finite or belong to a different network.
    """
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InvalidArgumentError(f"{os.fspath(source)}: {name} contains non-finite values; train the model again")
    expected = module.state_dict()
    problems = [
        f"{title} {len(names)} ({', '.join(sorted(names)[:_MAX_LISTED])}{', ...' if len(names) > _MAX_LISTED else ''})"
        for title, names in (
            ("missing", expected.keys() - state.keys()),
            ("unexpected", state.keys() - expected.keys()),
            ("wrong shape", {n for n in expected.keys() & state.keys() if expected[n].shape != state[n].shape}),
        )
        if names
    ]
    if problems:
        raise InvalidArgumentError(f"{os.fspath(source)}: these are not the weights of {label}: {'; '.join(problems)}")
    module.load_state_dict(state)


def state_arrays(module: nn.Module) -> dict[str, NDArray[Any]]:
    """Return all weights of a module by name, as arrays on the CPU."""
    return {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in module.state_dict().items()}


def add_weights(digest: hashlib._Hash, module: nn.Module) -> None:
    """Add the names and values of all weights to a hash; the result is the same on every device."""
    for name, values in sorted(state_arrays(module).items()):
        digest.update(name.encode())
        digest.update(values.tobytes())
