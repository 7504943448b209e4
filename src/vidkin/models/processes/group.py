"""The processes of one training: joined and synchronized; only the first one writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

import torch
from torch import distributed

from vidkin.errors import InvalidArgumentError

__all__ = ["any_process", "first_value", "is_first", "join_processes", "process_count", "read_in_turn"]

# The first process can take long to read a large collection, or to validate, while the others wait.
_PATIENCE = timedelta(hours=24)

_trainings = count()


@contextmanager
def join_processes(device: str) -> Iterator[None]:
    """Inside the block, this process belongs to those that ``torchrun`` started; without torchrun it is the only one.

    An existing group (Ray Train makes one) is used and left unchanged.

    Args:
        device: ``schedule.device`` of the recipe. Every process of a machine uses its own GPU, if GPUs are used.

    Raises:
        InvalidArgumentError: There are fewer GPUs than processes on this machine.
    """
    if not distributed.is_available() or distributed.is_initialized() or not _is_launched():
        yield
        return
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]
    from torch.distributed.rendezvous import rendezvous

    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        local, gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
        if local > gpus:
            raise InvalidArgumentError(
                f"--nproc-per-node must be at most {gpus}, the number of GPUs of this machine, got {local}; "
                "schedule.device=cpu uses none of them"
            )
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, size = next(rendezvous("env://", timeout=_PATIENCE))
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
        timeout=_PATIENCE,
        # Values left in the store by the group of an earlier training would be mistaken for this group's.
        store=PrefixStore(f"training {next(_trainings)}", store),
        rank=rank,
        world_size=size,
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


def _is_launched() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def process_count() -> int:
    """Number of processes in the training."""
    return distributed.get_world_size() if _is_joined() else 1


def is_first() -> bool:
    """Whether this process writes, validates and reports."""
    return not _is_joined() or distributed.get_rank() == 0


def first_value(value: float) -> float:
    """The first process's number; all processes must call this together."""
    if not _is_joined():
        return value
    shared = torch.tensor(value, dtype=torch.float64, device=_control_device())
    distributed.broadcast(shared, 0)
    return float(shared)


def any_process(condition: bool) -> bool:
    """Whether the condition holds in any process; all processes must call this together."""
    if not _is_joined():
        return condition
    shared = torch.tensor(int(condition), device=_control_device())
    distributed.all_reduce(shared, distributed.ReduceOp.MAX)
    return bool(shared)


@contextmanager
def read_in_turn() -> Iterator[None]:
    """Let the first process run the block alone and store what it reads; then all others, which find it stored."""
    if not is_first():
        any_process(False)
    yield
    if is_first():
        any_process(False)


def _is_joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _control_device() -> str:
    """Device for exchanging single numbers: the CPU, unless the group supports only GPUs."""
    return "cpu" if "cpu:" in str(distributed.get_backend_config()) else "cuda"
