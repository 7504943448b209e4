"""Losses on triplets and quadlets: hand-computed values, closed-form gradients, and the theorem of the radial loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tests.metric.losses.cases import points, value_and_gradient
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses

QUADLET_LOSSES = [losses.QuadletLoss(), losses.RadialLoss(), losses.RadialLoss(detach_radius=True)]


def quadlets(count: int, dimensions: int = 4, seed: int = 0) -> list[Tensor]:
    return list(points(4 * count, dimensions, seed).view(4, count, dimensions).unbind(0))


def line(*positions: float) -> list[Tensor]:
    """Points on a line, each as a batch of one in two dimensions."""
    return [torch.tensor([[x, 0.0]]) for x in positions]


def test_triplet_loss_matches_hand_computed_values() -> None:
    q, p, n = line(0.0, 1.0, 2.0)
    # 0.7 + 1 - 4 < 0; with a margin of 5 it is 5 + 1 - 4 = 2.
    assert losses.TripletLoss()(q, p, n).item() == 0.0
    assert losses.TripletLoss(margin=5.0)(q, p, n).item() == 2.0


def test_quadlet_loss_matches_a_hand_computed_value() -> None:
    q, p, i, n = line(0.0, 0.5, -0.6, 0.9)
    # d(q,p) = 0.25, d(q,i) = 0.36, d(q,n) = 0.81, d(p,i) = 1.21, d(p,n) = 0.16: L1 = 0.7 + 0.25 - 0.81 = 0.14, L2 = 0.3
    # + 0.25 - 0.36 = 0.19, L3 = 0.5 + 1.21 - 0.16 = 1.55.
    assert losses.QuadletLoss()(q, p, i, n).item() == pytest.approx(0.14 + 0.19 + 1.55, abs=1e-6)


def test_radial_loss_matches_hand_computed_values() -> None:
    q, p, i, n = line(0.0, 0.0, 3.0, 2.0)
    # X = 1, and R = 2 is attained at i: (3 * 2)^2 - 1 = 35; the triplet term is 0.3 + 0 - 9 < 0.
    assert losses.RadialLoss()(q, p, i, n).item() == 35.0
    assert losses.RadialLoss(margin=10.0)(q, p, i, n).item() == 36.0
    assert losses.RadialLoss()(q, p, i, *line(7.5)).item() == 0.0  # the distance 6.5 from X exceeds 6


@pytest.mark.parametrize("loss", QUADLET_LOSSES, ids=repr)
def test_reductions_give_mean_sum_and_values(loss: torch.nn.Module) -> None:
    batch = quadlets(7)
    each = type(loss)(**{**settings_of(loss), "reduction": "none"})(*batch)
    assert each.shape == (7,)
    alone = torch.stack([loss(*(member[k : k + 1] for member in batch)) for k in range(7)])
    torch.testing.assert_close(each, alone)
    torch.testing.assert_close(loss(*batch), alone.mean())
    total = type(loss)(**{**settings_of(loss), "reduction": "sum"})(*batch)
    torch.testing.assert_close(total, alone.sum())


def settings_of(loss: torch.nn.Module) -> dict[str, object]:
    names = {"c", "margin", "detach_radius", "g1", "g2", "g3"}
    return {name: value for name, value in vars(loss).items() if name in names}


@pytest.mark.parametrize(
    "loss", [losses.QuadletLoss(), losses.RadialLoss(), losses.RadialLoss(c=4.0, margin=1.0)], ids=repr
)
def test_gradient_passes_gradcheck(loss: torch.nn.Module) -> None:
    batch = [member.requires_grad_() for member in quadlets(6, seed=3)]
    assert float(loss(*batch).detach()) > 0
    assert torch.autograd.gradcheck(loss, batch)
    triplet = losses.TripletLoss()
    assert torch.autograd.gradcheck(triplet, batch[:3])


def test_detached_radius_has_the_published_value_and_no_gradient_through_it() -> None:
    q, p, i, n = (member.requires_grad_() for member in quadlets(5, seed=1))
    published, stopped = losses.RadialLoss(), losses.RadialLoss(detach_radius=True)
    torch.testing.assert_close(published(q, p, i, n), stopped(q, p, i, n))
    # With a detached radius, the gradient at q is 2/3 (n - X) from -||n - X||^2, plus that of the triplet term.
    each = losses.radial_loss(q, p, i, n, margin=0.0, detach_radius=True, reduction="none")
    (gradient,) = torch.autograd.grad(each.sum(), q)
    active = (each.detach() > 0)[:, None]
    center = ((q + p + i) / 3).detach()
    triplet = (((q - p) ** 2).sum(1) > ((q - i) ** 2).sum(1))[:, None]
    expected = 2 / 3 * (n - center) * active + 2 * (i - p) * triplet
    torch.testing.assert_close(gradient, expected.detach())


def test_radial_gradient_matches_the_closed_form_of_the_supplement() -> None:
    q, p, i, n = (member.requires_grad_() for member in quadlets(1, 6, seed=2))
    i = (3.0 * i).detach().requires_grad_()  # far out, so that R is attained at i
    value = losses.radial_loss(q, p, i, n, margin=0.0)

    def dot(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum()

    expected = 35 / 9 * dot(i, i) - dot(n, n) + 8 / 9 * dot(q, q) + 8 / 9 * dot(p, p)
    expected = expected - 38 / 9 * dot(i, p + q) + 2 / 3 * dot(n, i + p + q) + 16 / 9 * dot(q, p)
    torch.testing.assert_close(value, expected)
    gradients = torch.autograd.grad(value, [q, p, i, n])
    near = 16 / 9 * q - 38 / 9 * i + 2 / 3 * n + 16 / 9 * p
    at_i = -38 / 9 * q + 70 / 9 * i + 2 / 3 * n - 38 / 9 * p
    for gradient, closed in zip(gradients, (near, near, at_i, 2 * ((q + p + i) / 3 - n)), strict=True):
        torch.testing.assert_close(gradient, closed)


def test_gradient_of_the_radial_triplet_term() -> None:
    q, p, i, _ = (member.requires_grad_() for member in quadlets(1, seed=4))
    far = torch.full_like(q, 50.0)  # the radial term is zero
    gradients = torch.autograd.grad(losses.radial_loss(q, p, i, far, margin=9.0), [q, p, i])
    # Equations 9 to 11 of the supplement; its equation 17 would have q - i without the factor 2.
    for gradient, closed in zip(gradients, (2 * (i - p), 2 * (p - q), 2 * (q - i)), strict=True):
        torch.testing.assert_close(gradient, closed)


@pytest.mark.parametrize("seed", range(6))
def test_quadlet_gradients_of_equation_7(seed: int) -> None:
    q, p, i, n = (member.requires_grad_() for member in quadlets(8, 2, seed))
    value = losses.quadlet_loss(q, p, i, n, reduction="sum")
    gradients = torch.autograd.grad(value, [q, p, i, n])

    def d(a: Tensor, b: Tensor) -> Tensor:
        return ((a - b) ** 2).sum(1)

    with torch.no_grad():
        l1 = (0.7 + d(q, p) - d(q, n) > 0)[:, None]
        l2 = (0.3 + d(q, p) - d(q, i) > 0)[:, None]
        l3 = (0.5 + d(p, i) - d(p, n) > 0)[:, None]
        expected = [
            2 * (n - p) * l1 + 2 * (i - p) * l2,
            2 * (p - q) * l1 + 2 * (p - q) * l2 + 2 * (n - i) * l3,
            2 * (q - i) * l2 + 2 * (i - p) * l3,
            2 * (q - n) * l1 + 2 * (p - n) * l3,
        ]
    for gradient, closed in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, closed)


@given(
    dimensions=st.sampled_from([2, 3, 8, 64, 512]),
    seed=st.integers(0, 2**31),
    c=st.floats(3.0, 6.0),
    spread=st.sampled_from([1e-3, 0.1, 1.0]),
    kind=st.sampled_from(["random", "collinear", "two equal", "opposite"]),
    slack=st.sampled_from([0.0, 1e-6, 0.5]),
)
def test_zero_radial_loss_implies_the_order(
    dimensions: int, seed: int, c: float, spread: float, kind: str, slack: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, p, i, toward = spread * torch.randn(4, dimensions, generator=generator, dtype=torch.float64)
    if kind == "collinear":
        p, i = 0.3 * q, -0.9 * q
    elif kind == "two equal":
        p = q.clone()
    center = (q + p + i) / 3
    radius = max(float((point - center).norm()) for point in (q, p, i))
    if kind == "opposite":  # the negative is directly behind the point that attains R
        toward = max((q, p, i), key=lambda point: float((point - center).norm())) - center
    n = center + F.normalize(toward, dim=0) * radius * c * (1 + 1e-9 + slack)
    batch = [point[None] for point in (q, p, i, n)]
    assert losses.radial_loss(*batch, c=c, margin=0.0).item() == pytest.approx(
        max(0.0, float(((q - p) ** 2).sum() - ((q - i) ** 2).sum())), abs=1e-12
    )

    def d(a: Tensor, b: Tensor) -> float:
        return float((a - b).norm())

    # The negative is at least (c - 1) R away, and points of the sphere are at most 2 R apart: strict above c = 3.
    tolerance = 1e-9 * radius if c * (1 + slack) < 3.001 else -5e-4 * radius
    assert max(d(q, p), d(q, i)) <= d(q, n) + tolerance
    assert d(p, i) <= d(p, n) + tolerance


def test_order_is_not_strict_at_c_of_three() -> None:
    q, p, i, n = line(0.0, 1.0, -1.0, 3.0)
    # X = 0, R = 1, n at 3 R: the loss is 0, but d(p, i) = d(p, n) = 2 (the paper claims a strict inequality).
    assert losses.radial_loss(q, p, i, n, margin=0.0).item() == 0.0
    assert (p - i).norm() == (p - n).norm()


def test_zero_radial_loss_does_not_imply_the_order_below_three() -> None:
    q, p, i, n = line(0.0, 1.0, -1.0, 2.0)
    # X = 0, R = 1, n at 2 R: the loss is 0 at c = 2, but d(p, n) = 1 < d(p, i) = 2.
    assert losses.radial_loss(q, p, i, n, c=2.0, margin=0.0).item() == 0.0
    assert (p - n).norm() < (p - i).norm()
    assert losses.radial_loss(q, p, i, n, c=3.0, margin=0.0).item() == 5.0


def test_cluster_of_equal_points_has_zero_gradient_through_its_radius() -> None:
    point = points(1)
    batch = [point.clone().requires_grad_() for _ in range(4)]
    loss = losses.RadialLoss()(*batch)
    loss.backward()
    assert loss.item() == pytest.approx(0.3)  # only the margin of the triplet term remains
    for member in batch:
        torch.testing.assert_close(member.grad, torch.zeros_like(point))


@pytest.mark.parametrize("loss", [losses.TripletLoss(), *QUADLET_LOSSES], ids=repr)
def test_empty_batch_is_zero_with_a_gradient(loss: torch.nn.Module) -> None:
    members = 3 if isinstance(loss, losses.TripletLoss) else 4
    batch = [torch.zeros(0, 4, requires_grad=True) for _ in range(members)]
    value = loss(*batch)
    value.backward()
    assert value.item() == 0.0
    assert batch[0].grad is not None


@pytest.mark.parametrize("loss", QUADLET_LOSSES, ids=repr)
def test_order_of_the_batch_does_not_matter(loss: torch.nn.Module) -> None:
    batch = quadlets(9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(loss(*batch), loss(*(member[order] for member in batch)))


@pytest.mark.parametrize("loss", QUADLET_LOSSES, ids=repr)
def test_bf16_autocast_keeps_full_precision(loss: torch.nn.Module) -> None:
    batch = [member.to(torch.bfloat16) for member in quadlets(16)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(*batch)
    assert value.dtype == torch.float32
    exact = loss(*(member.double() for member in batch))
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)


def test_embeddings_are_not_normalized() -> None:
    batch = quadlets(3)
    doubled = [2 * member for member in batch]
    assert losses.QuadletLoss(0, 0, 0)(*doubled).item() == pytest.approx(4 * losses.QuadletLoss(0, 0, 0)(*batch).item())


def test_invalid_arguments_are_rejected() -> None:
    q, p, i, n = quadlets(3)
    with pytest.raises(InvalidArgumentError, match=r"the same shape \[B, D\].*'positive': \(2, 4\)"):
        losses.TripletLoss()(q, p[:2], n)
    with pytest.raises(InvalidArgumentError, match=r"the same shape \[B, D\]"):
        losses.RadialLoss()(q[0], p[0], i[0], n[0])
    with pytest.raises(InvalidArgumentError, match=r"margin must be at least 0, got -1\.0"):
        losses.TripletLoss(margin=-1.0)
    with pytest.raises(InvalidArgumentError, match="gaps must be 0 <= g2 <= g3 <= g1, got"):
        losses.QuadletLoss(g1=0.3, g2=0.7, g3=0.5)
    with pytest.raises(InvalidArgumentError, match=r"c must be above 0, got 0\.0"):
        losses.RadialLoss(c=0.0)
    with pytest.warns(UserWarning, match="below 3, a radial loss of 0 does not imply"):
        losses.RadialLoss(c=2.0)
    with pytest.raises(InvalidArgumentError, match="reduction must be one of 'mean', 'sum', 'none', got 'avg'"):
        losses.triplet_loss(q, p, n, reduction="avg")  # type: ignore[arg-type]


def test_value_and_gradient_of_a_module_match_its_function() -> None:
    q, p, i, n = quadlets(4)
    module = value_and_gradient(lambda leaf: losses.RadialLoss(c=4.0, margin=0.1)(leaf, p, i, n), q)
    function = value_and_gradient(lambda leaf: losses.radial_loss(leaf, p, i, n, c=4.0, margin=0.1), q)
    assert module[0] == function[0]
    assert torch.equal(module[1], function[1])
