"""Seed, save and restore the global random generators of Python, NumPy and torch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError

_PREFIX = "random."


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed all global generators inside the block; their state is restored afterward."""
    tensors, values = random_state()
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        yield
    finally:
        restore_random_state(tensors, values)


def random_state() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state of the global generators of Python, NumPy, torch and every GPU, as (tensors, JSON values)."""
    version, inner, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    tensors = {f"{_PREFIX}torch": torch.get_rng_state()}
    tensors[f"{_PREFIX}numpy"] = torch.from_numpy(np.asarray(keys, dtype=np.uint32).astype(np.int64))
    if torch.cuda.is_available():
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            tensors[f"{_PREFIX}cuda.{number}"] = state
    values = {"python": [version, list(inner), gauss], "numpy": [name, position, has_gauss, cached]}
    return tensors, values


@check_arguments
def restore_random_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Restore a state returned by :func:`random_state`; states of GPUs that this machine does not have are ignored.

    Raises:
        InvalidArgumentError: Part of the state is missing.
    """
    missing = {f"{_PREFIX}numpy", f"{_PREFIX}torch"} - tensors.keys() | {"python", "numpy"} - values.keys()
    if missing:
        raise InvalidArgumentError(f"tensors and values must come from random_state, but {sorted(missing)} are missing")
    version, inner, gauss = values["python"]
    random.setstate((version, tuple(inner), gauss))
    name, position, has_gauss, cached = values["numpy"]
    keys = tensors[f"{_PREFIX}numpy"].numpy().astype(np.uint32)
    np.random.set_state((name, keys, position, has_gauss, cached))
    torch.set_rng_state(tensors[f"{_PREFIX}torch"].cpu())
    states = [tensors[key].cpu() for key in sorted(tensors) if key.startswith(f"{_PREFIX}cuda.")]
    if states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states[: torch.cuda.device_count()])
