"""Losses over all quadlets of a batch match enumeration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.metric.losses.cases import (
    DEGENERATE,
    UNEQUAL,
    Slow,
    assert_same,
    points,
    value_and_gradient,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.metric.losses import all_quadlets as radial_sums

LossFunction = Callable[..., Tensor]


def enumerate_loss(tuple_loss: LossFunction, *batch: Tensor, self_offset: int | None = None) -> Tensor:
    """Mean of a tuple loss over all enumerated quadlets."""
    slow = Slow(*batch, self_offset=self_offset)
    quadlets = slow.quadlets()
    if not quadlets:
        return slow.x.sum() * 0.0
    q, p, i, n = (list(column) for column in zip(*quadlets, strict=True))
    return tuple_loss(slow.x[q], slow.r[p], slow.r[i], slow.r[n])


CASES = [
    pytest.param(losses.all_quadlets_loss, losses.quadlet_loss, id="quadlet"),
    pytest.param(
        partial(losses.all_quadlets_loss, g1=1.5, g2=0.0, g3=1.0),
        partial(losses.quadlet_loss, g1=1.5, g2=0.0, g3=1.0),
        id="quadlet, other gaps",
    ),
    pytest.param(losses.all_quadlets_radial_loss, losses.radial_loss, id="radial"),
    pytest.param(
        partial(losses.all_quadlets_radial_loss, c=0.9, margin=0.0),
        partial(losses.radial_loss, c=0.9, margin=0.0),
        id="radial, some inactive",
    ),
    pytest.param(
        partial(losses.all_quadlets_radial_loss, detach_radius=True),
        partial(losses.radial_loss, detach_radius=True),
        id="radial, radius detached",
    ),
]
FAST = [pytest.param(case.values[0], id=case.id) for case in CASES]


@pytest.mark.parametrize(("fast", "tuple_loss"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_loss_equals_the_mean_over_enumerated_quadlets(fast: LossFunction, tuple_loss: LossFunction, seed: int) -> None:
    x = points(len(UNEQUAL), seed=seed)
    expected = value_and_gradient(lambda leaf: enumerate_loss(tuple_loss, leaf, UNEQUAL), x)
    assert expected[0] > 0
    assert_same(value_and_gradient(lambda leaf: fast(leaf, UNEQUAL), x), expected)


@pytest.mark.parametrize(("fast", "tuple_loss"), CASES)
@pytest.mark.parametrize("offset", [None, 2])
def test_reference_set_replaces_the_batch(fast: LossFunction, tuple_loss: LossFunction, offset: int | None) -> None:
    bank = points(len(UNEQUAL), seed=7)
    x, y = (points(6, seed=8), UNEQUAL[3:9]) if offset is None else (bank[2:8], UNEQUAL[2:8])
    for leaf_is_bank in (False, True):

        def batch(leaf: Tensor, to_bank: bool = leaf_is_bank) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            return (x, y, leaf, UNEQUAL) if to_bank else (leaf, y, bank, UNEQUAL)

        start = bank if leaf_is_bank else x
        expected = value_and_gradient(lambda leaf: enumerate_loss(tuple_loss, *batch(leaf), self_offset=offset), start)
        assert_same(value_and_gradient(lambda leaf: fast(*batch(leaf), self_offset=offset), start), expected)


@pytest.mark.parametrize(("fast", "tuple_loss"), CASES)
def test_labels_can_have_three_levels(fast: LossFunction, tuple_loss: LossFunction) -> None:
    labels = torch.cat([UNEQUAL, torch.arange(len(UNEQUAL))[:, None] % 2], dim=1)
    x = points(len(UNEQUAL), seed=4)
    expected = value_and_gradient(lambda leaf: enumerate_loss(tuple_loss, leaf, labels), x)
    assert_same(value_and_gradient(lambda leaf: fast(leaf, labels), x), expected)


def test_block_size_does_not_change_the_radial_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(len(UNEQUAL))
    whole = value_and_gradient(lambda leaf: losses.all_quadlets_radial_loss(leaf, UNEQUAL), x)
    monkeypatch.setattr(radial_sums, "BLOCK_ELEMENTS", 3 * len(UNEQUAL))
    assert_same(value_and_gradient(lambda leaf: losses.all_quadlets_radial_loss(leaf, UNEQUAL), x), whole)


@pytest.mark.parametrize("loss", FAST)
def test_sum_is_the_mean_times_the_number_of_quadlets(loss: LossFunction) -> None:
    x = points(len(UNEQUAL))
    count = len(Slow(x, UNEQUAL).quadlets())
    # Category 0: 3 + 3 items with 2 positives, 4 intermediates and 6 negatives each; category 1: 2 + 2 items with 1, 2
    # and 9. The item without a positive and those of the category with one subcategory have no quadlets.
    assert count == 6 * (2 * 4 * 6) + 4 * (1 * 2 * 9) == 360
    torch.testing.assert_close(loss(x, UNEQUAL, reduction="sum"), count * loss(x, UNEQUAL))


def gradcheck_holds(loss: LossFunction) -> bool:
    x = points(8, 3, seed=5).requires_grad_()
    return bool(torch.autograd.gradcheck(lambda leaf: loss(leaf, UNEQUAL[:8]), (x,)))


@pytest.mark.parametrize("loss", FAST[:4])
def test_gradient_passes_gradcheck(loss: LossFunction) -> None:
    assert gradcheck_holds(loss)


@pytest.mark.parametrize("loss", FAST)
def test_order_of_the_batch_does_not_matter(loss: LossFunction) -> None:
    x = points(len(UNEQUAL))
    order = torch.randperm(len(UNEQUAL), generator=torch.Generator().manual_seed(3))
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    assert_same(value_and_gradient(lambda leaf: loss(leaf, UNEQUAL[order]), x[order]), (value, gradient[order]))


@pytest.mark.parametrize("loss", FAST)
@pytest.mark.parametrize("labels", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_batches_are_zero_with_a_gradient(loss: LossFunction, labels: Tensor) -> None:
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, labels), points(len(labels)))
    assert value == 0.0
    assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("loss", FAST)
def test_equal_points_give_no_nan(loss: LossFunction) -> None:
    for x in (points(1).repeat(len(UNEQUAL), 1), torch.zeros(len(UNEQUAL), 3)):
        value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
        assert value == value
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("loss", FAST)
def test_bf16_autocast_keeps_full_precision(loss: LossFunction) -> None:
    x = points(len(UNEQUAL), dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    exact, _ = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x.double())
    assert value == pytest.approx(exact, rel=1e-4)
    assert bool(gradient.isfinite().all())


def test_float32_agrees_with_float64_for_large_batches() -> None:
    fine = torch.arange(256) // 4
    labels = torch.stack([fine // 4, fine], dim=1)
    x = points(256, 32)
    for loss in (losses.all_quadlets_loss, losses.all_quadlets_radial_loss):
        exact, exact_gradient = value_and_gradient(lambda leaf, f=loss: f(leaf, labels), x)
        value, gradient = value_and_gradient(lambda leaf, f=loss: f(leaf, labels), x.float())
        assert value == pytest.approx(exact, rel=1e-5)
        torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-3, atol=1e-6)


def test_module_computes_the_loss_of_its_form() -> None:
    x = points(len(UNEQUAL))
    torch.testing.assert_close(losses.AllQuadletsLoss(g1=1.0)(x, UNEQUAL), losses.all_quadlets_loss(x, UNEQUAL, g1=1.0))
    torch.testing.assert_close(
        losses.AllQuadletsLoss("radial", c=4.0, detach_radius=True)(x, UNEQUAL),
        losses.all_quadlets_radial_loss(x, UNEQUAL, c=4.0),
    )


def test_invalid_arguments_are_rejected() -> None:
    x = points(4)
    with pytest.raises(InvalidArgumentError, match=r"labels must have two levels or more, .* got \(4,\)"):
        losses.AllQuadletsLoss()(x, UNEQUAL[:4, 0])
    with pytest.raises(InvalidArgumentError, match="form must be one of 'quadlet', 'radial', got 'angular'"):
        losses.AllQuadletsLoss("angular")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="reduction must be one of 'mean', 'sum', got 'none'"):
        losses.AllQuadletsLoss(reduction="none")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="gaps must be 0 <= g2 <= g3 <= g1, got"):
        losses.AllQuadletsLoss(g1=0.1)
    with pytest.warns(UserWarning, match="c is 2"):
        losses.AllQuadletsLoss("radial", c=2)
