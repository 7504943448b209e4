"""Distributed training: join the processes, and share batches, gradients and batch norms between them.

Each process computes part of the rows, gathers the rows of all processes, and computes the loss of the whole batch. The
gradient of a row exists only in the process that computed it, so the sum over processes equals the gradient of a single
process with the whole batch. It is computed as the mean over processes of gradients scaled by the number of processes,
so that weights that every process uses for the whole batch, such as class directions, need no special treatment. Only
the first process writes files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.overrides import TorchFunctionMode

from vidkin.errors import InvalidArgumentError
from vidkin.training.engine import B, M, Objective

# The other processes wait while the first one reads a large dataset or validates, which can take hours.
_TIMEOUT = timedelta(hours=24)

_training_numbers = count()


@contextmanager
def join_processes(device: str) -> Iterator[None]:
    """Join the processes started by ``torchrun`` inside the block; without ``torchrun``, do nothing.

    An existing process group (for example, from Ray Train) is used and left unchanged.

    Args:
        device: ``schedule.device`` of the recipe. On GPUs, every process on a machine uses a different GPU.

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
                f"--nproc-per-node must be at most {gpus}, the number of GPUs in this machine, got {local}; "
                "or use schedule.device=cpu"
            )
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, size = next(rendezvous("env://", timeout=_TIMEOUT))
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
        timeout=_TIMEOUT,
        # Use a prefix per training run, because values of an earlier process group remain in the store.
        store=PrefixStore(f"training {next(_training_numbers)}", store),
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
    """Return the number of training processes."""
    return distributed.get_world_size() if _is_joined() else 1


def is_first() -> bool:
    """Whether this is the first process, which writes, validates and reports."""
    return not _is_joined() or distributed.get_rank() == 0


def first_value(value: float) -> float:
    """Return the value from the first process; all processes must call this together."""
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
    """Let the first process run the block and fill the caches before the other processes run it and use them."""
    if not is_first():
        any_process(False)
    yield
    if is_first():
        any_process(False)


def _is_joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _control_device() -> str:
    """Return the device for exchanging single values: the CPU, unless the process group supports only GPUs."""
    return "cpu" if "cpu:" in str(distributed.get_backend_config()) else "cuda"


def compute_in_shares(compute: Callable[[slice], Tensor], count: int) -> Tensor:
    """Compute the result for all rows [count, ...]; this process computes part of them and gathers the rest.

    Args:
        compute: Function that computes one result per row in a range of rows.
        count: Number of rows, the same in every process.

    Raises:
        InvalidArgumentError: There are fewer rows than processes.
    """
    processes = process_count()
    if processes == 1:
        return compute(slice(None))
    if count < processes:
        raise InvalidArgumentError(
            f"a step must have at least one item for each of the {processes} processes, got {count}"
        )
    bounds = [count * position // processes for position in range(processes + 1)]
    position = distributed.get_rank()
    own = compute(slice(bounds[position], bounds[position + 1]))
    gathered: Tensor = _GatherShares.apply(own, bounds, position)  # type: ignore[no-untyped-call]
    return gathered


class _GatherShares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, bounds: Sequence[int], position: int) -> Tensor:
        ctx.bounds, ctx.position = bounds, position
        sizes = [stop - start for start, stop in pairwise(bounds)]
        # all_gather requires parts of equal size; they differ by at most one row.
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        start, stop = ctx.bounds[ctx.position : ctx.position + 2]
        return gradients[0][start:stop] * (len(ctx.bounds) - 1), None, None


def average_gradients(weights: Sequence[Tensor]) -> None:
    """Replace gradients by their mean over all processes."""
    processes = process_count()
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if processes == 1 or not gradients:
        return
    joined = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(joined)
    joined /= processes
    parts = torch.split(joined, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def seed_step(seed: int, step: int) -> None:
    """Seed dropout differently in every process and step; do nothing in a single process."""
    if process_count() > 1:
        torch.manual_seed((seed * 1_000_003 + step) * process_count() + distributed.get_rank())


def share_steps(objective: Objective[M, B], seed: int, first: int) -> Objective[M, B]:
    """Wrap an objective for distributed steps of a model that uses :func:`compute_in_shares`.

    Args:
        objective: Function of (model, batch) that returns terms, called once per step.
        seed: Seed of the training run.
        first: Number of steps already taken.
    """
    numbers = count(first)

    def compute_terms(model: M, batch: B) -> Mapping[str, Tensor]:
        seed_step(seed, next(numbers))
        # Batch norms must use the mean and variance over the rows of all processes.
        with _GlobalBatchNorm() if process_count() > 1 else nullcontext():
            return objective(model, batch)

    return compute_terms


class _GlobalBatchNorm(TorchFunctionMode):
    """Batch norm over the rows of all processes.

    Unlike ``nn.SyncBatchNorm``, it works on the CPU and with layers that call ``batch_norm`` themselves.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        return (_batch_norm if func is nn.functional.batch_norm else func)(*args, **kwargs)


class _Sum(torch.autograd.Function):
    """Sum over the processes, with gradients from all processes."""

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        total = own.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total


def _batch_norm(
    values: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not training:
        return nn.functional.batch_norm(values, running_mean, running_var, weight, bias, False, momentum, eps)
    others = [axis for axis in range(values.ndim) if axis != 1]
    shape = [1, -1, *[1] * (values.ndim - 2)]
    numbers = values.float()
    own = numbers.new_full((1,), values.numel() / values.shape[1])
    total: Tensor = _Sum.apply(torch.cat([numbers.sum(others), own]))  # type: ignore[no-untyped-call]
    count = total[-1].detach()
    mean = total[:-1] / count
    centered = numbers - mean.view(shape)
    squares: Tensor = _Sum.apply(centered.square().sum(others))  # type: ignore[no-untyped-call]
    variance = squares / count
    if running_mean is not None and running_var is not None:
        running_mean.lerp_(mean.detach().to(running_mean.dtype), momentum)
        running_var.lerp_((variance.detach() * count / (count - 1)).to(running_var.dtype), momentum)
    normalized = centered * (variance + eps).rsqrt().view(shape)
    if weight is not None:
        normalized = normalized * weight.view(shape)
    if bias is not None:
        normalized = normalized + bias.view(shape)
    return normalized.to(values.dtype)
