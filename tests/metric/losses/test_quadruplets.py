"""Quadruplet-1 and Quadruplet-2 losses: hand-computed values and adaptive margins."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.metric.losses.cases import points
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses


def line(*positions: float) -> list[Tensor]:
    return [torch.tensor([[x, 0.0]]) for x in positions]


def tuples(count: int, seed: int = 0) -> list[Tensor]:
    return list(points(4 * count, 4, seed).view(4, count, 4).unbind(0))


def test_quadrupletwise_loss_matches_hand_computed_values() -> None:
    q, p, i, n = line(0.0, 0.5, 1.0, 2.0)
    # D(q,p) = 0.25, D(q,i) = 1, D(q,n) = 4, D(p,i) = 0.25, D(p,n) = 2.25: (q,p|q,i): 1 + 0.25 - 1 = 0.25; (q,i|q,n): 1
    # + 1 - 4 < 0; (p,i|p,n): 1 + 0.25 - 2.25 < 0.
    assert losses.QuadrupletwiseLoss()(q, p, i, n).item() == 0.25
    assert losses.QuadrupletwiseLoss(delta=0.0)(q, p, i, n).item() == 0.0
    # With delta 4: 3.25 + 1 + 2.
    assert losses.QuadrupletwiseLoss(delta=4.0)(q, p, i, n).item() == 6.25


def test_quadrupletwise_loss_is_the_sum_of_its_constraints() -> None:
    q, p, i, n = tuples(8)
    total = (
        losses.quadrupletwise_inequality(q, p, q, i)
        + losses.quadrupletwise_inequality(q, i, q, n)
        + losses.quadrupletwise_inequality(p, i, p, n)
    )
    torch.testing.assert_close(losses.quadrupletwise_loss(q, p, i, n), total)


def test_equality_is_the_sum_of_two_inequalities_with_delta_zero() -> None:
    a, b, c, d = tuples(8, seed=1)
    there = losses.quadrupletwise_inequality(a, b, c, d, delta=0.0, reduction="none")
    back = losses.quadrupletwise_inequality(c, d, a, b, delta=0.0, reduction="none")
    torch.testing.assert_close(losses.quadrupletwise_equality(a, b, c, d, reduction="none"), there + back)
    near = losses.quadrupletwise_equality(*line(0.0, 1.0, 0.0, 2.0), tolerance=2.5)
    assert near.item() == 0.5  # |1 - 4| - 2.5


def test_quadruplet_loss_with_fixed_margins_matches_a_hand_computed_value() -> None:
    a, p, n1, n2 = line(0.0, 1.0, 1.2, 2.0)
    # d(a,p) = 1, d(a,n1) = 1.44, d(n1,n2) = 0.64: (1 - 1.44 + 0.7) + (1 - 0.64 + 0.35) = 0.26 + 0.71.
    loss = losses.QuadrupletLoss(margins=(0.7, 0.35))(a, p, n1, n2)
    assert loss.item() == pytest.approx(0.97, abs=1e-6)


def test_adaptive_margins_match_hand_computed_values() -> None:
    a, p, n1, n2 = line(0.0, 1.0, 2.0, 4.0)
    # mu_p = 1, mu_n = (4 + 4) / 2 = 4
    first, second = losses.adaptive_margins(a, p, n1, n2)
    assert (first.item(), second.item()) == (3.0, 1.5)
    # (1 - 4 + 3)+ + (1 - 4 + 1.5)+
    assert losses.QuadrupletLoss()(a, p, n1, n2).item() == 0.0


def test_adaptive_margins_are_constants_for_the_gradient() -> None:
    a, p, n1, n2 = (member.requires_grad_() for member in tuples(6, seed=2))
    fixed = tuple(float(margin) for margin in losses.adaptive_margins(a, p, n1, n2))
    adaptive = losses.quadruplet_loss(a, p, n1, n2)
    constant = losses.quadruplet_loss(a, p, n1, n2, margins=(fixed[0], fixed[1]))
    torch.testing.assert_close(adaptive, constant)
    for one, other in zip(
        torch.autograd.grad(adaptive, [a, p, n1, n2]),
        torch.autograd.grad(constant, [a, p, n1, n2]),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_adaptive_margins_use_the_whole_batch() -> None:
    batch = tuples(5, seed=3)
    each = losses.quadruplet_loss(*batch, reduction="none")
    alone = losses.quadruplet_loss(*(member[:1] for member in batch))
    assert each[0].item() != pytest.approx(alone.item())
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(
        losses.quadruplet_loss(*(member[order] for member in batch), reduction="none"), each[order]
    )


@pytest.mark.parametrize(
    "loss",
    [losses.QuadrupletwiseLoss(), losses.QuadrupletLoss(margins=(2.0, 1.0))],
    ids=repr,
)
def test_gradient_passes_gradcheck(loss: torch.nn.Module) -> None:
    batch = [member.requires_grad_() for member in tuples(5, seed=4)]
    assert float(loss(*batch).detach()) > 0
    assert torch.autograd.gradcheck(loss, batch)


@pytest.mark.parametrize("loss", [losses.QuadrupletwiseLoss(), losses.QuadrupletLoss()], ids=repr)
def test_empty_degenerate_and_half_precision_batches_have_a_finite_loss(loss: torch.nn.Module) -> None:
    empty = [torch.zeros(0, 3, requires_grad=True) for _ in range(4)]
    loss(*empty).backward()
    assert empty[0].grad is not None

    point = points(2)
    equal = [point.clone().requires_grad_() for _ in range(4)]
    loss(*equal).backward()
    assert all(bool(member.grad.isfinite().all()) for member in equal if member.grad is not None)

    half = [member.to(torch.bfloat16) for member in tuples(8)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(*half)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(loss(*(member.double() for member in half)).item(), rel=1e-5)


def test_invalid_arguments_are_rejected() -> None:
    a, b, c, d = tuples(3)
    with pytest.raises(InvalidArgumentError, match="delta must be at least 0, got -1"):
        losses.QuadrupletwiseLoss(delta=-1)
    with pytest.raises(InvalidArgumentError, match="tolerance must be at least 0, got -1"):
        losses.quadrupletwise_equality(a, b, c, d, tolerance=-1)
    with pytest.raises(
        InvalidArgumentError,
        match=r"margins must be two numbers with first >= second >= 0, got \(0\.3, 0\.7\)",
    ):
        losses.QuadrupletLoss(margins=(0.3, 0.7))
    with pytest.raises(InvalidArgumentError, match=r"weights must be two numbers .*, got \(0\.5, 1\.0\)"):
        losses.QuadrupletLoss(weights=(0.5, 1.0))
    with pytest.raises(InvalidArgumentError, match=r"'negative2': \(2, 4\)"):
        losses.QuadrupletLoss()(a, b, c, d[:2])
