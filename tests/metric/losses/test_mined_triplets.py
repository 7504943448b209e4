"""Batch-hard, semi-hard and batch-all triplet losses match slow implementations for all kinds of batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.metric.losses.cases import (
    DEGENERATE,
    UNEQUAL,
    Slow,
    anchor_batch,
    assert_same,
    mean_of,
    points,
    value_and_gradient,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses

LossFunction = Callable[..., Tensor]


def slow_batch_hard(*batch: Tensor | None, margin: float | None, distance: str, **kwargs: int) -> Tensor:
    slow = Slow(*batch, **kwargs)  # type: ignore[arg-type]
    values = []
    for q in range(len(slow.x)):
        near = [slow.distance(q, p, distance) for p in slow.positives(q)]
        far = [slow.distance(q, n, distance) for n in slow.negatives(q)]
        if near and far:
            gap = torch.stack(near).max() - torch.stack(far).min()
            values.append(F.softplus(gap) if margin is None else (gap + margin).relu())
    return mean_of(values, slow.x)


def slow_semi_hard(*batch: Tensor | None, margin: float, distance: str, **kwargs: int) -> Tensor:
    slow = Slow(*batch, **kwargs)  # type: ignore[arg-type]
    values = []
    for q in range(len(slow.x)):
        far = [slow.distance(q, n, distance) for n in slow.negatives(q)]
        for p in slow.positives(q):
            near = slow.distance(q, p, distance)
            farther = [d for d in far if d > near]
            if far:
                chosen = torch.stack(farther).min() if farther else torch.stack(far).max()
                values.append((margin + near - chosen).relu())
    return mean_of(values, slow.x)


def slow_batch_all(*batch: Tensor | None, margin: float, distance: str, average: str, **kwargs: int) -> Tensor:
    slow = Slow(*batch, **kwargs)  # type: ignore[arg-type]
    values = [
        (margin + slow.distance(q, p, distance) - slow.distance(q, n, distance)).relu()
        for q in range(len(slow.x))
        for p in slow.positives(q)
        for n in slow.negatives(q)
    ]
    if average == "active":
        values = [value for value in values if value > 0]
    return mean_of(values, slow.x)


CASES = {
    "hard, soft margin": (losses.batch_hard_triplet_loss, slow_batch_hard, {"margin": None}),
    "hard, margin .2": (losses.batch_hard_triplet_loss, slow_batch_hard, {"margin": 0.2}),
    "semi-hard": (losses.semi_hard_triplet_loss, slow_semi_hard, {"margin": 0.2}),
    "semi-hard, margin 1": (losses.semi_hard_triplet_loss, slow_semi_hard, {"margin": 1.0}),
    "all, active": (losses.batch_all_triplet_loss, slow_batch_all, {"margin": 0.2, "average": "active"}),
    "all, all": (losses.batch_all_triplet_loss, slow_batch_all, {"margin": 0.5, "average": "all"}),
}
PAIRS = [
    pytest.param(
        partial(fast, distance=distance, **kwargs),
        partial(slow, distance=distance, **kwargs),
        id=f"{name}, {distance}",
    )
    for name, (fast, slow, kwargs) in CASES.items()
    for distance in ("squared", "euclidean")
]
FAST = [pytest.param(pair.values[0], id=pair.id) for pair in PAIRS]
MODULES = [
    losses.BatchHardTripletLoss(),
    losses.BatchHardTripletLoss(0.2, distance="euclidean"),
    losses.SemiHardTripletLoss(),
    losses.BatchAllTripletLoss(),
    losses.BatchAllTripletLoss(0.5, average="all", distance="euclidean"),
]


@pytest.mark.parametrize(("fast", "slow"), PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_loss_equals_a_slow_implementation(fast: LossFunction, slow: LossFunction, seed: int) -> None:
    x = points(len(UNEQUAL), seed=seed)
    for labels in (UNEQUAL, UNEQUAL[:, 0], UNEQUAL[:, 1] + 100 * UNEQUAL[:, 0]):
        expected = value_and_gradient(lambda leaf, y=labels: slow(leaf, y), x)
        assert expected[0] > 0
        assert_same(value_and_gradient(lambda leaf, y=labels: fast(leaf, y), x), expected)


@pytest.mark.parametrize(("fast", "slow"), PAIRS)
@pytest.mark.parametrize("offset", [None, 2])
def test_a_reference_set_replaces_the_batch(fast: LossFunction, slow: LossFunction, offset: int | None) -> None:
    bank, bank_labels = points(len(UNEQUAL), seed=7), UNEQUAL
    x, y = (points(6, seed=8), UNEQUAL[3:9]) if offset is None else (bank[2:8], bank_labels[2:8])
    expected = value_and_gradient(lambda leaf: slow(leaf, y, bank, bank_labels, self_offset=offset), x)
    assert_same(value_and_gradient(lambda leaf: fast(leaf, y, bank, bank_labels, self_offset=offset), x), expected)
    to_bank = value_and_gradient(lambda leaf: slow(x, y, leaf, bank_labels, self_offset=offset), bank)
    assert_same(value_and_gradient(lambda leaf: fast(x, y, leaf, bank_labels, self_offset=offset), bank), to_bank)


@pytest.mark.parametrize("loss", FAST)
def test_the_batch_can_be_its_own_reference_set(loss: LossFunction) -> None:
    x = points(len(UNEQUAL))
    alone = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    beside = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL, leaf, UNEQUAL, self_offset=0), x)
    assert_same(alone, beside)


@pytest.mark.parametrize("loss", FAST)
def test_gradient_passes_gradcheck(loss: LossFunction) -> None:
    x = points(8, 3, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: loss(leaf, UNEQUAL[:8]), (x,))


@pytest.mark.parametrize("loss", FAST)
def test_order_of_the_batch_does_not_matter(loss: LossFunction) -> None:
    x = points(len(UNEQUAL))
    order = torch.randperm(len(UNEQUAL), generator=torch.Generator().manual_seed(3))
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    shuffled = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL[order]), x[order])
    assert_same(shuffled, (value, gradient[order]))


@pytest.mark.parametrize("loss", FAST)
@pytest.mark.parametrize("labels", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_batches_are_zero_with_a_gradient(loss: LossFunction, labels: Tensor) -> None:
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, labels), points(len(labels)))
    assert value == 0.0
    assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("loss", FAST)
def test_an_empty_reference_set_gives_zero_loss(loss: LossFunction) -> None:
    x = points(3)
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL[:3], x[:0], UNEQUAL[:0]), x)
    assert value == 0.0
    assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("loss", FAST)
def test_equal_points_give_no_nan(loss: LossFunction) -> None:
    labels = torch.tensor([0, 0, 1, 1, 0])
    for x in (points(1).repeat(5, 1), points(5)[[0, 0, 0, 1, 2]], torch.zeros(5, 3)):
        value, gradient = value_and_gradient(lambda leaf: loss(leaf, labels), x)
        assert value == value
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("loss", FAST)
def test_bf16_autocast_keeps_full_precision(loss: LossFunction) -> None:
    x = points(len(UNEQUAL), dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    exact, _ = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x.double())
    assert value == pytest.approx(exact, rel=1e-4)
    assert gradient.dtype == torch.bfloat16
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("loss", FAST)
def test_float32_is_accurate_far_from_the_origin(loss: LossFunction) -> None:
    x = points(len(UNEQUAL))
    exact, _ = value_and_gradient(lambda leaf: loss(leaf, UNEQUAL), x)
    far = (x + 100.0).float()
    assert float(loss(far, UNEQUAL)) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_modules_apply_their_reduction(module: torch.nn.Module) -> None:
    x = points(len(UNEQUAL))
    module.reduction = "none"  # type: ignore[assignment]
    each = module(x, UNEQUAL)
    module.reduction = "sum"  # type: ignore[assignment]
    total = module(x, UNEQUAL)
    module.reduction = "mean"  # type: ignore[assignment]
    assert each.shape == (len(UNEQUAL),)
    torch.testing.assert_close(each.sum(), total)
    assert 0 < float(module(x, UNEQUAL)) < float(total)


def test_batch_all_matches_a_hand_computed_value() -> None:
    x = torch.tensor([[0.0], [1.0], [1.5], [3.0]])
    labels = torch.tensor([0, 0, 1, 1])
    # Squared distances 01: 1, 02: 2.25, 03: 9, 12: 0.25, 13: 4, 23: 2.25, with margin 2. Anchor 0: 2 + 1 - 2.25 = 0.75;
    # anchor 1: 2 + 1 - 0.25 = 2.75; anchor 2: 2 + 2.25 - 2.25 = 2 and 2 + 2.25 - 0.25 = 4; anchor 3: 2 + 2.25 - 4 =
    # 0.25; the other three are negative.
    loss = losses.BatchAllTripletLoss(2.0, reduction="sum")
    assert loss(x, labels).item() == pytest.approx(0.75 + 2.75 + 2 + 4 + 0.25)
    assert losses.BatchAllTripletLoss(2.0)(x, labels).item() == pytest.approx(9.75 / 5)
    assert losses.BatchAllTripletLoss(2.0, average="all")(x, labels).item() == pytest.approx(9.75 / 8)


def test_semi_hard_negatives_are_chosen_in_order_of_priority() -> None:
    labels = torch.tensor([0, 0, 1, 2])
    only_first = partial(losses.semi_hard_triplet_loss, margin=0.5, distance="euclidean", reduction="none")

    def loss_of_first(*positions: float) -> float:
        return float(only_first(torch.tensor(positions)[:, None], labels)[0])

    assert loss_of_first(0.0, 1.0, -1.2, 0.9) == pytest.approx(0.3)  # semi-hard at 1.2
    assert loss_of_first(0.0, 1.0, -1.6, 0.9) == 0.0  # none within the margin: easy at 1.6 rather than hard at 0.9
    assert loss_of_first(0.0, 1.0, -0.4, 0.9) == pytest.approx(0.6)  # all are closer: the farthest of them


def test_ties_at_the_threshold_are_counted_consistently() -> None:
    # With many equal distances, thresholds coincide with distances, where inconsistent comparisons would change counts.
    x = torch.eye(12)
    labels = torch.arange(12) // 3
    for margin in (0.0, 0.2):
        value, gradient = value_and_gradient(
            lambda leaf, m=margin: losses.batch_all_triplet_loss(leaf, labels, margin=m, average="all"), x
        )
        assert value == pytest.approx(margin, abs=1e-6)
        assert bool(gradient.isfinite().all())


ANCHORS = {
    "PML TripletMargin m=.2 all AvgNonZero L2": (
        partial(losses.batch_all_triplet_loss, margin=0.2, distance="euclidean"),
        0.3794901371002197,
        0.4560961127281189,
    ),
    "PML TripletMargin m=.2 MeanReducer": (
        partial(losses.batch_all_triplet_loss, margin=0.2, distance="euclidean", average="all"),
        0.16514848172664642,
        0.19848628342151642,
    ),
    "PML BatchHard + m=.2 Mean": (
        partial(losses.batch_hard_triplet_loss, margin=0.2, distance="euclidean"),
        0.6012373566627502,
        None,
    ),
    "PML BatchHard + softplus m=0": (
        partial(losses.batch_hard_triplet_loss, margin=None, distance="euclidean"),
        0.9304465651512146,
        None,
    ),
}


@pytest.mark.parametrize("name", ANCHORS)
def test_values_equal_those_of_the_reference_package(name: str) -> None:
    loss, value, gradient_norm = ANCHORS[name]
    x, fine, _ = anchor_batch()
    unit = F.normalize(x, dim=1)
    # The package normalizes its (already normalized) input, so its gradient includes the normalization.
    ours = value_and_gradient(lambda leaf: loss(F.normalize(leaf, dim=1), fine), unit)
    assert ours[0] == pytest.approx(value, abs=1e-6)
    if gradient_norm is not None:
        assert ours[1].norm().item() == pytest.approx(gradient_norm, abs=1e-5)


@pytest.mark.data
def test_recorded_values_equal_the_measurement(shared_data: Path) -> None:
    frozen = json.loads((shared_data / "anchors" / "loss_fixtures.json").read_text())
    for name, (_, value, gradient_norm) in ANCHORS.items():
        assert frozen[name] == pytest.approx(value, abs=1e-6)
        if gradient_norm is not None:
            assert frozen[f"{name} |grad|"] == pytest.approx(gradient_norm, abs=1e-6)


def test_invalid_arguments_are_rejected() -> None:
    x, y = points(4), UNEQUAL[:4]
    loss = losses.BatchHardTripletLoss()
    with pytest.raises(InvalidArgumentError, match=r"embeddings must be \[N, D\] floating point, got \(5,\)"):
        loss(x[0], y)
    with pytest.raises(
        InvalidArgumentError,
        match=r"labels must have one row .* shape \(4,\) or \(4, levels\), got \(3, 2\)",
    ):
        loss(x, y[:3])
    with pytest.raises(InvalidArgumentError, match="reference and reference_labels must be given together"):
        loss(x, y, x)
    with pytest.raises(InvalidArgumentError, match=r"reference must have shape \[M, 5\] .* got \(4, 3\)"):
        loss(x, y, x[:, :3], y)
    with pytest.raises(InvalidArgumentError, match=r"reference_labels must have one row .* got \(2, 2\)"):
        loss(x, y, x, y[:2])
    with pytest.raises(InvalidArgumentError, match="must have the same levels, got 2 and 1"):
        loss(x, y, x, y[:, 0])
    with pytest.raises(InvalidArgumentError, match="self_offset needs a reference set"):
        loss(x, y, self_offset=0)
    with pytest.raises(InvalidArgumentError, match="self_offset must be from 0 to 0 for 4 queries among 4"):
        loss(x, y, x, y, self_offset=1)
    with pytest.raises(InvalidArgumentError, match="distance must be one of 'squared', 'euclidean', got 'cosine'"):
        losses.SemiHardTripletLoss(distance="cosine")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="average must be one of 'active', 'all', got 'some'"):
        losses.BatchAllTripletLoss(average="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"margin must be at least 0, got -0\.1"):
        losses.SemiHardTripletLoss(-0.1)
