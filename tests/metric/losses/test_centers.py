"""Center loss and triplet-center loss match hand-computed values, and centers move as published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
import torch

from tests.metric.losses.cases import points, value_and_gradient
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses

LABELS = torch.tensor([2, 0, 2, 1, 0, 2])


def test_center_loss_matches_a_hand_computed_value() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    centers = torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    # 1/2 (1) + 1/2 (1)
    assert losses.center_loss(x, torch.tensor([0, 1]), centers).item() == 1.0
    assert losses.center_loss(x, torch.tensor([0, 1]), centers, reduction="mean").item() == 0.5
    assert losses.center_loss(x, torch.tensor([1, 1]), centers, reduction="none").tolist() == [1.0, 0.5]


def test_centers_move_by_the_published_rule() -> None:
    x = torch.tensor([[3.0], [6.0], [1.0]])
    centers = torch.tensor([[0.0], [1.0], [5.0]])
    moved = losses.moved_centers(centers, x, torch.tensor([0, 0, 1]), alpha=0.5)
    # Class 0: 0 - 0.5 * ((0 - 3) + (0 - 6)) / 3 = 1.5; class 1 equals its only item; class 2 is not in the batch.
    torch.testing.assert_close(moved, torch.tensor([[1.5], [1.0], [5.0]]))


def test_centers_move_after_the_loss_and_only_in_training() -> None:
    loss = losses.CenterLoss(3, 5)
    x = points(6, dtype=torch.float32).requires_grad_()
    value = loss(x, LABELS)
    assert value.item() == pytest.approx(3.0)  # unit vectors with centers at 0: 1/2 each
    value.backward()
    torch.testing.assert_close(x.grad, x.detach())  # x - c with the centers before they move
    sums = torch.zeros(3, 5).index_add_(0, LABELS, x.detach())
    counts = torch.tensor([2.0, 1.0, 3.0])[:, None]
    torch.testing.assert_close(loss.centers, 0.5 * sums / (1 + counts))

    loss.eval()
    before = loss.centers.clone()
    loss(x, LABELS)
    assert torch.equal(loss.centers, before)
    assert list(loss.state_dict()) == ["centers"]
    assert list(loss.parameters()) == []


def test_centers_converge_to_the_class_means() -> None:
    loss = losses.CenterLoss(3, 5)
    x = points(6, dtype=torch.float32)
    for _ in range(200):
        loss(x, LABELS)
    means = torch.stack([x[label == LABELS].mean(dim=0) for label in range(3)])
    torch.testing.assert_close(loss.centers, means)


def test_triplet_center_loss_matches_hand_computed_values() -> None:
    x = torch.tensor([[0.0], [2.0]])
    centers = torch.tensor([[1.0], [4.0], [2.5]])
    labels = torch.tensor([0, 1])
    # D is squared: (1 + 1 - 6.25)+ = 0 and (4 + 1 - 0.25)+, both relative to class 2, which is not in the batch.
    each = losses.triplet_center_loss(x, labels, centers, reduction="none")
    torch.testing.assert_close(each, torch.tensor([0.0, 4.75]))
    assert losses.triplet_center_loss(x, labels, centers, reduction="sum").item() == pytest.approx(4.75)
    # With half distances: (0.5 + 1 - 3.125)+ = 0 and (2 + 1 - 0.125)+.
    each = losses.triplet_center_loss(x, labels, centers, distance="half", reduction="none")
    torch.testing.assert_close(each, torch.tensor([0.0, 2.875]))


def test_half_distance_with_half_the_margin_gives_half_the_loss() -> None:
    x, centers = points(6), points(3, seed=1)
    squared = losses.triplet_center_loss(x, LABELS, centers, margin=3.0)
    half = losses.triplet_center_loss(x, LABELS, centers, margin=1.5, distance="half")
    assert squared.item() > 0
    torch.testing.assert_close(half, squared / 2)


def test_an_unknown_distance_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="distance must be one of 'squared', 'half', got 'euclidean'"):
        losses.TripletCenterLoss(4, 5, distance="euclidean")  # type: ignore[arg-type]


@pytest.mark.parametrize(("distance", "scale"), [("squared", 1.0), ("half", 0.5)])
def test_triplet_center_equals_a_slow_implementation_and_learns_its_centers(
    distance: Literal["squared", "half"], scale: float
) -> None:
    torch.manual_seed(0)
    loss = losses.TripletCenterLoss(4, 5, margin=2.0, distance=distance).double()
    x = points(6)

    def slow(leaf: torch.Tensor) -> torch.Tensor:
        values = []
        for row, label in zip(leaf, LABELS.tolist(), strict=True):
            to = [scale * ((row - center) ** 2).sum() for center in loss.centers]
            others = torch.stack([value for k, value in enumerate(to) if k != label])
            values.append((to[label] + 2.0 - others.min()).relu())
        return torch.stack(values).mean()

    expected, expected_gradient = value_and_gradient(slow, x)
    value, gradient = value_and_gradient(lambda leaf: loss(leaf, LABELS), x)
    assert value == pytest.approx(expected)
    torch.testing.assert_close(gradient, expected_gradient)
    (ours,) = torch.autograd.grad(loss(x, LABELS), loss.centers)
    (theirs,) = torch.autograd.grad(slow(x), loss.centers)
    torch.testing.assert_close(ours, theirs)
    assert float(ours.abs().sum()) > 0


def test_gradient_passes_gradcheck() -> None:
    x, centers = points(6).requires_grad_(), points(3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: losses.center_loss(a, LABELS, b), (x, centers))
    assert torch.autograd.gradcheck(lambda a, b: losses.triplet_center_loss(a, LABELS, b, margin=2.0), (x, centers))


def test_order_of_the_batch_does_not_matter() -> None:
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    x, centers = points(6), points(3, seed=1)
    for loss in (losses.center_loss, losses.triplet_center_loss):
        torch.testing.assert_close(loss(x, LABELS, centers), loss(x[order], LABELS[order], centers))
    torch.testing.assert_close(
        losses.moved_centers(centers, x, LABELS), losses.moved_centers(centers, x[order], LABELS[order])
    )


def test_degenerate_batches_have_a_finite_loss() -> None:
    for loss in (losses.CenterLoss(1, 4), losses.TripletCenterLoss(1, 4), losses.TripletCenterLoss(3, 4)):
        empty = torch.zeros(0, 4, requires_grad=True)
        value = loss(empty, torch.zeros(0, dtype=torch.long))
        value.backward()
        assert value.item() == 0.0
        assert empty.grad is not None
    lonely = torch.ones(2, 4, requires_grad=True)
    value = losses.TripletCenterLoss(1, 4)(lonely, torch.zeros(2, dtype=torch.long))
    value.backward()
    assert value.item() == 0.0  # a single class has no other center
    assert torch.equal(lonely.grad, torch.zeros(2, 4))  # type: ignore[arg-type]
    on_centers = torch.zeros(3, 4, requires_grad=True)
    losses.triplet_center_loss(on_centers, torch.tensor([0, 1, 1]), torch.zeros(2, 4)).backward()
    assert bool(on_centers.grad.isfinite().all())  # type: ignore[union-attr]


def test_bf16_autocast_keeps_full_precision() -> None:
    x = points(6, dtype=torch.bfloat16)
    for loss in (
        losses.CenterLoss(3, 5),
        losses.TripletCenterLoss(3, 5, centers=points(3, dtype=torch.float32)),
    ):
        loss.eval()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = loss(x, LABELS)
        assert value.dtype == torch.float32
        assert value.item() == pytest.approx(loss(x.float(), LABELS).item(), rel=1e-6)


@pytest.mark.data
def test_reductions_agree_with_the_reference_packages(shared_data: Path) -> None:
    # The centers of the reference measurement were not stored, but its three definitions are sums over the same 12
    # items.
    frozen = json.loads((shared_data / "anchors" / "loss_fixtures.json").read_text())
    total = frozen["centre loss Taha TF 0.5*sum||x-c||^2"]
    x, y = points(12), torch.arange(12) // 3
    each = losses.center_loss(x, y, points(4, seed=1), reduction="none")
    ratio = float(each.sum() / each.mean())
    assert total / frozen["centre loss Wen 0.5*mean"] == pytest.approx(ratio, rel=1e-6)
    assert total / frozen["centre loss KaiyangZhou"] == pytest.approx(ratio / 2, rel=1e-6)


def test_invalid_arguments_are_rejected() -> None:
    x = points(6)
    with pytest.raises(InvalidArgumentError, match=r"alpha must be in \[0, 1\], got 1\.5"):
        losses.CenterLoss(3, 5, alpha=1.5)
    with pytest.raises(InvalidArgumentError, match=r"centers must have shape \(3, 5\), .* got \(2, 5\)"):
        losses.CenterLoss(3, 5, centers=torch.zeros(2, 5))
    with pytest.raises(InvalidArgumentError, match="margin must be at least 0, got -1"):
        losses.TripletCenterLoss(3, 5, margin=-1)
    with pytest.raises(InvalidArgumentError, match=r"shapes \[N, D\] and \[C, D\], got \(6, 5\) and \(3, 4\)"):
        losses.CenterLoss(3, 4)(x, LABELS)
    with pytest.raises(InvalidArgumentError, match=r"labels must be one class index .* \(6,\), got \(6, 1\)"):
        losses.TripletCenterLoss(3, 5)(x, LABELS[:, None])
