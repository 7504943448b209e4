"""Gathering with gradients: two processes compute the same gradients as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch import multiprocessing as mp

from vidkin.metric import gather_with_gradient, losses, rank_offset

WORLD = 2
LABELS = torch.tensor([[0, 0], [0, 0], [0, 1], [1, 2], [0, 1], [1, 2], [1, 3], [1, 3]])


def model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Linear(6, 4).double()


def inputs() -> Tensor:
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


# Every process computes the full loss on the gathered batch.
WHOLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "quadlets": losses.AllQuadletsLoss(g1=9.0, g2=9.0, g3=9.0),
    "radial": losses.AllQuadletsLoss("radial"),
    "batch all": losses.BatchAllTripletLoss(1.0),
    "magnet": lambda x, y: losses.magnet_loss(x, y[:, 0], y[:, 1], alpha=9.0),
}
# Every process uses its own queries. All of them have positives, so averaging the means gives the overall mean.
SHARED: dict[str, Callable[..., Tensor]] = {
    "batch hard": losses.BatchHardTripletLoss(),
    "semi-hard": losses.SemiHardTripletLoss(1.0),
}


def one_process() -> dict[str, list[Tensor]]:
    found = {}
    for name, loss in {**WHOLE, **SHARED}.items():
        network = model()
        value = loss(network(inputs()), LABELS)
        assert float(value.detach()) > 0
        found[name] = list(torch.autograd.grad(value, list(network.parameters())))
    return found


def train_in_one_of_two(rank: int, store: str, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    mine = slice(4 * rank, 4 * rank + 4)
    found = {}
    for name in [*WHOLE, *SHARED]:
        network = model()
        embeddings, labels = network(inputs()[mine]), LABELS[mine]
        everything, all_labels = gather_with_gradient(embeddings), gather_with_gradient(labels)
        if name in WHOLE:
            value = WHOLE[name](everything, all_labels)
        else:
            offset = rank_offset(embeddings)
            value = SHARED[name](embeddings, labels, everything, all_labels, self_offset=offset)
        gradients = torch.autograd.grad(value, list(network.parameters()))
        for gradient in gradients:  # like DistributedDataParallel
            dist.all_reduce(gradient)
        found[name] = [gradient / WORLD for gradient in gradients]
    found["order"] = [gather_with_gradient(torch.tensor([[10 * rank], [10 * rank + 1]]))]
    torch.save(found, f"{out}.{rank}")
    dist.destroy_process_group()


@pytest.mark.process
def test_two_processes_have_the_same_gradients_as_one(tmp_path: Path) -> None:
    mp.spawn(train_in_one_of_two, (str(tmp_path / "store"), str(tmp_path / "found")), nprocs=WORLD)
    expected = one_process()
    for rank in range(WORLD):
        loaded = torch.load(tmp_path / f"found.{rank}", weights_only=True)
        assert loaded.pop("order")[0].tolist() == [[0], [1], [10], [11]]
        assert loaded.keys() == expected.keys()
        for name, gradients in loaded.items():
            for gradient, other in zip(gradients, expected[name], strict=True):
                torch.testing.assert_close(gradient, other, msg=lambda text, n=name: f"{n}: {text}")


def test_single_process_returns_the_same_tensor() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    assert gather_with_gradient(x) is x
    assert rank_offset(x) == 0


def test_group_of_one_process_returns_the_batch_unchanged(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        x = torch.ones(3, 2)
        assert gather_with_gradient(x) is x
    finally:
        dist.destroy_process_group()
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_world_size()
