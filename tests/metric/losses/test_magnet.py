"""Magnet loss matches a slow implementation, which can also reproduce a public port with a squared variance."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.metric.losses.cases import anchor_batch, assert_same, points, value_and_gradient
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses

CLASSES = torch.tensor([0, 1, 0, 0, 2, 1, 0, 2, 1, 0])
CLUSTERS = torch.tensor([5, 0, 5, 1, 3, 0, 1, 3, 2, 5])
# Value and gradient norm of a public port that divides by 2 s^4 (four clusters of three items, its classes).
PORT = {
    "Magnet vithursant m=4 d=3 alpha=1 (classes=clusters)": (
        0.7595443725585938,
        "Magnet |grad|",
        1.9047516584396362,
    ),
    "Magnet vithursant m=4 d=3, 2 clusters/class": (
        0.5945149064064026,
        "Magnet 2cl |grad|",
        1.6585522890090942,
    ),
}


def slow_magnet(x: Tensor, classes: Tensor, clusters: Tensor, *, alpha: float = 1.0, power: int = 1) -> Tensor:
    keys = list(zip(classes.tolist(), clusters.tolist(), strict=True))
    means = {key: torch.stack([x[j] for j in range(len(x)) if keys[j] == key]).mean(dim=0) for key in set(keys)}
    own = [((x[j] - means[keys[j]]) ** 2).sum() for j in range(len(x))]
    variance = torch.stack(own).sum() / (len(x) - 1)
    values = []
    for j in range(len(x)):
        above = torch.exp(-own[j] / (2 * variance**power) - alpha)
        below = sum(
            torch.exp(-((x[j] - mean) ** 2).sum() / (2 * variance**power))
            for key, mean in means.items()
            if key[0] != keys[j][0]
        )
        values.append((-torch.log(above / below)).relu())
    return torch.stack(values).mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
def test_loss_equals_a_slow_implementation(seed: int, alpha: float) -> None:
    x = points(10, seed=seed)
    for clusters in (CLUSTERS, torch.zeros(10, dtype=torch.long)):
        expected = value_and_gradient(lambda leaf, c=clusters: slow_magnet(leaf, CLASSES, c, alpha=alpha), x)
        assert_same(
            value_and_gradient(lambda leaf, c=clusters: losses.magnet_loss(leaf, CLASSES, c, alpha=alpha), x),
            expected,
        )
    without = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, CLASSES, alpha=alpha), x)
    assert_same(without, expected)


def test_cluster_ids_may_repeat_between_classes() -> None:
    x = points(10)
    local = torch.tensor([0, 0, 0, 1, 0, 0, 1, 0, 1, 0])  # CLUSTERS, numbered from 0 within each class
    torch.testing.assert_close(losses.magnet_loss(x, CLASSES, CLUSTERS), losses.magnet_loss(x, CLASSES, local))


@pytest.mark.parametrize("name", PORT)
def test_the_public_port_differs_only_in_its_variance(name: str) -> None:
    x, fine, coarse = anchor_batch()
    x = F.normalize(x, dim=1)
    classes = fine if "classes=clusters" in name else coarse
    value, _, gradient_norm = PORT[name]
    port = value_and_gradient(lambda leaf: slow_magnet(leaf, classes, fine, power=2), x)
    assert port[0] == pytest.approx(value, abs=1e-5)
    assert port[1].norm().item() == pytest.approx(gradient_norm, abs=1e-4)
    right = value_and_gradient(lambda leaf: slow_magnet(leaf, classes, fine, power=1), x)
    ours = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, classes, fine), x)
    assert_same(ours, right, 1e-5)
    assert abs(ours[0] - value) > 0.1


@pytest.mark.data
def test_recorded_values_equal_the_measurement(shared_data: Path) -> None:
    frozen = json.loads((shared_data / "anchors" / "loss_fixtures.json").read_text())
    for name, (value, gradient_name, gradient_norm) in PORT.items():
        assert frozen[name] == pytest.approx(value, abs=1e-6)
        assert frozen[gradient_name] == pytest.approx(gradient_norm, abs=1e-6)


def test_loss_matches_hand_computed_values() -> None:
    x = torch.tensor([[0.0], [2.0], [5.0], [7.0]], dtype=torch.float64)
    # The means are 1 and 6, own distances 1 and s^2 = 4/3, so 1 / (2 s^2) = 3/8; squared distances to the other mean
    # are 36, 16, 16 and 36: (3/8 + alpha - 3/8 * 36)+ and (3/8 + alpha - 6)+.
    labels = torch.tensor([0, 0, 1, 1])
    each = losses.magnet_loss(x, labels, alpha=10.0, reduction="none")
    torch.testing.assert_close(each, torch.tensor([0.0, 4.375, 4.375, 0.0], dtype=torch.float64))
    assert losses.MagnetLoss(alpha=10.0)(x, labels).item() == pytest.approx(8.75 / 4)


def test_a_reference_set_replaces_the_batch() -> None:
    bank = points(10, seed=1)
    x = points(4, seed=2)
    labels = torch.tensor([0, 1, 2, 9])  # class 9 has no cluster in the memory bank
    loss = losses.MagnetLoss(reduction="none")
    each = loss(x, labels, None, bank, CLASSES)
    assert each[3].item() == 0.0
    means = torch.stack([bank[k == CLASSES].mean(dim=0) for k in range(3)])
    distances = ((x[:3, None] - means[None]) ** 2).sum(dim=2)
    scale = 1 / (2 * distances.diagonal().sum() / 2)
    for k in range(3):
        others = [math.exp(-float(distances[k, j] * scale)) for j in range(3) if j != k]
        expected = max(0.0, float(distances[k, k] * scale) + 1.0 + math.log(sum(others)))
        assert each[k].item() == pytest.approx(expected)
    # With the batch as the reference set, the loss equals that without one.
    beside = losses.magnet_loss(bank, CLASSES, CLUSTERS, bank, CLASSES, CLUSTERS)
    torch.testing.assert_close(beside, losses.magnet_loss(bank, CLASSES, CLUSTERS))


def test_gradient_passes_gradcheck_and_order_does_not_matter() -> None:
    x = points(10, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: losses.magnet_loss(leaf, CLASSES, CLUSTERS), (x,))
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1))
    value, gradient = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, CLASSES, CLUSTERS), x)
    shuffled = value_and_gradient(
        lambda leaf: losses.magnet_loss(leaf, CLASSES[order], CLUSTERS[order]), x.detach()[order]
    )
    assert_same(shuffled, (value, gradient[order]))


@pytest.mark.parametrize(
    ("x", "labels", "expected"),
    [
        pytest.param(points(4), torch.zeros(4, dtype=torch.long), 0.0, id="one class"),
        pytest.param(points(1), torch.zeros(1, dtype=torch.long), 0.0, id="one item"),
        pytest.param(points(0), torch.zeros(0, dtype=torch.long), 0.0, id="no item"),
        pytest.param(points(4), torch.arange(4), 0.0, id="all distinct, far apart"),
        pytest.param(torch.zeros(4, 3), torch.tensor([0, 0, 1, 1]), 1.0, id="all equal"),  # alpha + log 1
    ],
)
def test_degenerate_batches_have_a_finite_loss(x: Tensor, labels: Tensor, expected: float) -> None:
    value, gradient = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, labels), x)
    assert value == pytest.approx(expected)
    assert bool(gradient.isfinite().all())


def test_bf16_autocast_keeps_full_precision() -> None:
    x = points(10, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, CLASSES, CLUSTERS), x)
    exact, _ = value_and_gradient(lambda leaf: losses.magnet_loss(leaf, CLASSES, CLUSTERS), x.double())
    assert value == pytest.approx(exact, rel=1e-4)
    assert bool(gradient.isfinite().all())


def test_invalid_arguments_are_rejected() -> None:
    x = points(10)
    with pytest.raises(InvalidArgumentError, match="alpha must be at least 0, got -1"):
        losses.MagnetLoss(-1)
    with pytest.raises(
        InvalidArgumentError, match="clusters and reference_clusters must be given together, or neither"
    ):
        losses.magnet_loss(x, CLASSES, CLUSTERS, x, CLASSES)
    with pytest.raises(
        InvalidArgumentError,
        match=r"clusters must be one number for each embedding, shapes \(10,\) .*, got \(3,\)",
    ):
        losses.magnet_loss(x, CLASSES, CLUSTERS[:3])
