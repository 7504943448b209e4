"""Properties of all embedding losses: no device synchronization, precision and repr."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.metric.losses.cases import UNEQUAL, points
from vidkin.metric import losses

# Operations that copy a result from the device.
BLOCKING_OPERATIONS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten._unique2.default,
}
CLASSES = UNEQUAL[:, 0]

CASES: dict[str, tuple[Callable[[], nn.Module], int, Tensor | None]] = {
    "TripletLoss(margin=0.7, reduction='mean')": (losses.TripletLoss, 3, None),
    "QuadletLoss(g1=0.7, g2=0.3, g3=0.5, reduction='mean')": (losses.QuadletLoss, 4, None),
    "RadialLoss(c=3.0, margin=0.3, detach_radius=False, reduction='mean')": (losses.RadialLoss, 4, None),
    "QuadrupletwiseLoss(delta=1.0, reduction='mean')": (losses.QuadrupletwiseLoss, 4, None),
    "QuadrupletLoss(margins=None, weights=(1.0, 0.5), reduction='mean')": (losses.QuadrupletLoss, 4, None),
    "QuadrupletLoss(margins=(0.7, 0.35), weights=(1.0, 0.5), reduction='mean')": (
        lambda: losses.QuadrupletLoss((0.7, 0.35)),
        4,
        None,
    ),
    "AngularLoss(alpha=45.0, form='triplet', reduction='mean')": (lambda: losses.AngularLoss(45.0), 3, None),
    "AngularLoss(alpha=None, form='quadlet', reduction='mean')": (
        lambda: losses.AngularLoss(form="quadlet"),
        4,
        None,
    ),
    "BatchHardTripletLoss(margin=None, distance='squared', reduction='mean')": (
        losses.BatchHardTripletLoss,
        1,
        UNEQUAL,
    ),
    "BatchHardTripletLoss(margin=0.2, distance='euclidean', reduction='mean')": (
        lambda: losses.BatchHardTripletLoss(0.2, distance="euclidean"),
        1,
        UNEQUAL,
    ),
    "SemiHardTripletLoss(margin=0.2, distance='squared', reduction='mean')": (
        losses.SemiHardTripletLoss,
        1,
        UNEQUAL,
    ),
    "BatchAllTripletLoss(margin=0.2, distance='squared', average='active', reduction='mean')": (
        losses.BatchAllTripletLoss,
        1,
        UNEQUAL,
    ),
    "AllQuadletsLoss(form='quadlet', g1=0.7, g2=0.3, g3=0.5, c=3.0, margin=0.3, detach_radius=False, "
    "reduction='mean')": (losses.AllQuadletsLoss, 1, UNEQUAL),
    "CenterLoss(classes=3, dimensions=5, alpha=0.5)": (lambda: losses.CenterLoss(3, 5), 1, CLASSES),
    "TripletCenterLoss(classes=3, dimensions=5, margin=1.0, distance='squared')": (
        lambda: losses.TripletCenterLoss(3, 5),
        1,
        CLASSES,
    ),
    "MagnetLoss(alpha=1.0, reduction='mean')": (losses.MagnetLoss, 1, CLASSES),
}


class FailOnWait(TorchDispatchMode):
    """Fails on the first operation that makes Python wait for the device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        assert func not in BLOCKING_OPERATIONS, f"{func} waits for the device"
        return func(*args, **(kwargs or {}))


def loss_and_batch(name: str) -> tuple[nn.Module, list[Tensor], list[Tensor]]:
    make, members, labels = CASES[name]
    embeddings = [points(len(UNEQUAL), seed=seed, dtype=torch.float32) for seed in range(members)]
    return make(), embeddings, [] if labels is None else [labels]


@pytest.mark.parametrize("name", CASES)
def test_repr_shows_the_settings(name: str) -> None:
    assert repr(loss_and_batch(name)[0]) == name


@pytest.mark.parametrize("name", CASES)
def test_forward_and_backward_do_not_wait_for_the_device(name: str) -> None:
    loss, embeddings, labels = loss_and_batch(name)
    leaves = [member.requires_grad_() for member in embeddings]
    with FailOnWait():
        loss(*leaves, *labels).backward()
    assert all(leaf.grad is not None for leaf in leaves)


def test_waiting_for_the_device_is_detected() -> None:
    with FailOnWait(), pytest.raises(AssertionError, match="waits for the device"):
        torch.ones(2).sum().item()
    # The radial form enumerates its triplets on the host, as its docstring says.
    radial = losses.AllQuadletsLoss("radial")
    with FailOnWait(), pytest.raises(AssertionError, match="nonzero"):
        radial(points(len(UNEQUAL)), UNEQUAL)


@pytest.mark.parametrize("name", CASES)
def test_double_precision_is_kept(name: str) -> None:
    loss, embeddings, labels = loss_and_batch(name)
    assert loss.double()(*(member.double() for member in embeddings), *labels).dtype == torch.float64


def test_all_losses_on_embeddings_are_tested_here() -> None:
    here = {name.split("(")[0] for name in CASES}
    own = {
        name
        for name in losses.__all__
        if name.endswith("Loss")
        and not list(inspect.signature(getattr(losses, name).forward).parameters)[1].endswith("scores")
    }
    assert here == own
