"""Gather tensors from all processes with gradients, for losses over a distributed batch.

In distributed data-parallel training, each process sees only its part of a batch, but losses need the pairs, ranks
and hard negatives of the whole batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def gather_with_gradient(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Gather the tensors of all processes with gradients, concatenated along the first dimension in order of rank.

    Every process must call this with the same shape and dtype (drop the incomplete last batch). The backward pass sums
    the gradients of *all* processes for the rows of this process. If gradients are averaged over processes, as in
    DistributedDataParallel, both of the following are therefore equivalent to training one process on the whole batch::

        everything = gather_with_gradient(embeddings)             # [W N, D]
        loss(everything, gather_with_gradient(labels))            # the same loss in every process
        loss(embeddings, labels, everything, all_labels, self_offset=rank_offset(embeddings))   # own queries only

    The second form requires a loss that averages over queries and to which every query contributes; otherwise, the mean
    of the means differs from the overall mean. Integer tensors (labels) have no gradient.

    Args:
        tensor: [N, ...], N equal in all processes.
        group: The process group; None for the default group.

    Returns:
        [W N, ...] for W processes; the tensor itself if torch.distributed is not in use.
    """
    if _world_size(group) == 1:
        return tensor
    gathered: Tensor = _Gather.apply(tensor.contiguous(), group)  # type: ignore[no-untyped-call]
    return gathered


def rank_offset(tensor: Tensor, group: dist.ProcessGroup | None = None) -> int:
    """Return the first row of this process in the gathered tensor, for the ``self_offset`` of the losses."""
    return 0 if _world_size(group) == 1 else dist.get_rank(group) * tensor.shape[0]


def _world_size(group: dist.ProcessGroup | None) -> int:
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        ctx.group, ctx.rows = group, tensor.shape[0]
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor, group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient, group=ctx.group)
        start = dist.get_rank(ctx.group) * ctx.rows
        return gradient[start : start + ctx.rows], None
