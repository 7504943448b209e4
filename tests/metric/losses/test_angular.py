"""Angular loss on triplets and quadlets."""

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


def test_triplet_form_matches_hand_computed_values() -> None:
    a, p, n = line(0.0, 2.0, 1.5)
    # alpha = 45 degrees: 4 - 4 * 1 * 0.25 = 3; tan^2 alpha = 3 (60 degrees): 4 - 12 * 0.25 = 1.
    assert losses.AngularLoss()(a, p, n).item() == pytest.approx(3.0, abs=1e-6)
    assert losses.AngularLoss(60.0)(a, p, n).item() == pytest.approx(1.0, abs=1e-5)
    assert losses.AngularLoss(45.0)(a, p, *line(2.5)).item() == 0.0


def test_quadlet_form_is_the_sum_of_three_triplets() -> None:
    q, p, i, n = tuples(6)
    loss = losses.AngularLoss((30.0, 40.0, 50.0), form="quadlet")
    expected = (
        losses.angular_loss(q, p, n, alpha=30.0)
        + losses.angular_loss(q, p, i, alpha=40.0)
        + losses.angular_loss(p, i, n, alpha=50.0)
    )
    torch.testing.assert_close(loss(q, p, i, n), expected)
    assert losses.AngularLoss(form="quadlet").alphas == (36.0, 45.0, 45.0)


def test_smaller_angles_require_farther_negatives() -> None:
    a, p, n = line(0.0, 1.0, 1.7)
    values = [losses.AngularLoss(alpha)(a, p, n).item() for alpha in (20.0, 25.0, 45.0)]
    # ||n - middle|| = 1.2, compared to 1 / (2 tan alpha) = 1.37, 1.07, 0.5.
    assert values[0] > 0.0
    assert values[1:] == [0.0, 0.0]


@pytest.mark.parametrize("form", ["triplet", "quadlet"])
def test_gradients_are_correct_for_regular_and_degenerate_batches(form: str) -> None:
    loss = losses.AngularLoss(form=form)  # type: ignore[arg-type]
    count = 3 if form == "triplet" else 4
    batch = [member.requires_grad_() for member in tuples(5, seed=1)[:count]]
    batch[1] = (-batch[0] + 0.1 * batch[1]).detach().requires_grad_()
    assert float(loss(*batch).detach()) > 0
    assert torch.autograd.gradcheck(loss, batch)

    empty = [torch.zeros(0, 3, requires_grad=True) for _ in range(count)]
    loss(*empty).backward()
    assert empty[0].grad is not None
    point = points(1)
    equal = [point.clone().requires_grad_() for _ in range(count)]
    value = loss(*equal)
    value.backward()
    assert value.item() == 0.0
    assert all(bool((member.grad == 0).all()) for member in equal if member.grad is not None)

    half = [member.detach().to(torch.bfloat16) for member in batch]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(*half).item() == pytest.approx(loss(*(h.double() for h in half)).item(), rel=1e-5)


def test_invalid_arguments_are_rejected() -> None:
    a, b, c, d = tuples(2)
    with pytest.raises(InvalidArgumentError, match="form must be one of 'triplet', 'quadlet', got 'pair'"):
        losses.AngularLoss(form="pair")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"alpha must be 1 angle\(s\) between 0 and 90"):
        losses.AngularLoss(90.0)
    with pytest.raises(InvalidArgumentError, match=r"alpha must be 3 angle\(s\) between 0 and 90"):
        losses.AngularLoss(45.0, form="quadlet")
    with pytest.raises(InvalidArgumentError, match="alpha must have its first angle below its second"):
        losses.AngularLoss((45.0, 45.0, 45.0), form="quadlet")
    with pytest.raises(InvalidArgumentError, match="the triplet form must be called with 3 tensors, got 4"):
        losses.AngularLoss()(a, b, c, d)
