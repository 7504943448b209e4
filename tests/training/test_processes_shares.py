"""Division of a batch among processes: too few items, a single process, and batch norm over all items."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.training import processes as shares


def test_fewer_items_than_processes_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "process_count", lambda: 5)
    with pytest.raises(InvalidArgumentError, match="at least one item for each of the 5 processes, got 4"):
        shares.compute_in_shares(lambda rows: torch.zeros(4)[rows], 4)


def test_single_process_computes_all_rows() -> None:
    weight = torch.ones(2, requires_grad=True)
    (shares.compute_in_shares(lambda rows: weight[rows], 2) * torch.tensor([1.0, 2.0])).sum().backward()
    shares.average_gradients([weight])
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 2.0]
    before = torch.get_rng_state()
    shares.seed_step(1, 2)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 4)])
def test_the_global_batch_norm_equals_torch_in_one_process(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares.distributed, "all_reduce", lambda values: None)
    norms = [torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)]
    if len(shape) == 4:
        norms = [torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)]
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(shape, generator=generator)
    found: list[tuple[Tensor, Tensor]] = []
    for norm, context in zip(norms, (shares.nullcontext(), shares._GlobalBatchNorm()), strict=True):
        inputs = rows.clone().requires_grad_()
        with context:
            outputs = norm(inputs)
        outputs.pow(3).sum().backward()
        assert inputs.grad is not None
        found.append((outputs.detach(), inputs.grad))
        norm.eval()
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(norms[0].state_dict(), norms[1].state_dict())
    with shares._GlobalBatchNorm():
        torch.testing.assert_close(norms[0](rows), norms[1](rows))
