from __future__ import annotations

import doctest
import sys

import pytest
import torch
from torch import Tensor

from tests.metric.losses.score_cases import (
    anchor_relevance,
    anchor_value_and_gradient,
    assert_gradcheck,
    assert_same_with_gradient,
    example,
    lists,
    random_case,
)
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import (
    FrameQuadLinearAPLoss,
    QuadLinearAPLoss,
    frame_quad_linear_ap_loss,
    quad_linear_ap_loss,
    quad_linear_step,
)


def naive_step(x: Tensor, delta: float) -> Tensor:
    if x >= 0:
        return 2 * x / delta + 1
    return (x / delta + 1) ** 2 if x >= -delta else x * 0


def naive_risk(row: Tensor, positives: list[int], negatives: list[int], delta: float, rho: float) -> Tensor:
    risks = []
    for i in positives:
        numerator = sum((naive_step(row[j] - row[i], delta) for j in negatives), row[i] * 0)
        x = numerator / (1 + rho * sum(float(row[j] > row[i]) for j in positives))
        risks.append(x / (1 + x))
    return torch.stack(risks).mean()


def naive(scores: Tensor, relevance: Tensor, delta: float, rho: float, include_self: bool = False) -> Tensor:
    found = lists(relevance, include_self=include_self)
    return torch.stack([naive_risk(scores[k], p, n, delta, rho) for k, p, n in found if p]).mean()


def naive_frames(
    frame_scores: Tensor,
    reference_scores: Tensor,
    relevance: Tensor,
    *,
    delta: float,
    rho: float,
    rate: float = 0.35,
    include_self: bool = False,
) -> Tensor:
    """The published form: the differences of all pairs of videos, [B, B, T, T, T], followed by a selection."""
    targets = frame_scores.shape[3]
    size = max(1, round(rate * targets))
    top = torch.zeros_like(reference_scores).scatter(3, reference_scores.topk(size, dim=3).indices, 1.0)
    low = torch.zeros_like(top).scatter(3, reference_scores.topk(size, dim=3, largest=False).indices, 1.0)
    difference = frame_scores.unsqueeze(3) - frame_scores.unsqueeze(4)
    shifted = difference / delta
    surrogate = torch.where(
        difference >= 0,
        2 * shifted + 1,
        torch.where(shifted >= -1, (shifted + 1) ** 2, torch.zeros_like(shifted)),
    )
    above = (surrogate * low.unsqueeze(3)).sum(dim=4)
    equals = ((difference > 0) * top.unsqueeze(3)).sum(dim=4)
    x = above / (1 + rho * equals)
    per_frame = (x / (1 + x) * top).sum(dim=3) / size
    chosen = relevance.clone()
    if not include_self:
        chosen.fill_diagonal_(0)
    return (per_frame.mean(dim=2) * chosen).sum() / chosen.sum()


def frame_case(
    videos: int = 6, frames: int = 7, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (videos, videos, frames, frames)
    scores = 2 * torch.rand(shape, generator=generator, dtype=dtype) - 1
    labels = torch.rand(shape, generator=generator, dtype=dtype)
    groups = torch.tensor([0, 1, 0, 2, 1, 0])[:videos]
    return scores, labels, (groups.unsqueeze(1) == groups.unsqueeze(0)).to(dtype)


def test_step_has_the_published_values() -> None:
    x = torch.tensor([-0.06, -0.05, -0.025, 0.0, 0.001, 0.025, 0.05, 0.1], dtype=torch.float64)
    expected = torch.tensor([0.0, 0.0, 0.25, 1.0, 1.04, 2.0, 3.0, 5.0], dtype=torch.float64)
    torch.testing.assert_close(quad_linear_step(x, delta=0.05), expected, rtol=1e-12, atol=1e-12)


def test_step_is_convex_with_a_continuous_slope() -> None:
    x = torch.linspace(-0.1, 0.1, 2001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(quad_linear_step(x, delta=0.05).sum(), x)
    assert (slope.diff() >= -1e-9).all()
    assert slope.diff().max() < 0.1  # steps of 1e-4 with a second derivative of 2 / delta^2 = 800
    assert slope[-1].item() == pytest.approx(2 / 0.05)


def test_loss_matches_the_worked_example() -> None:
    scores, relevance = example()
    assert QuadLinearAPLoss(0.05, 0.1, include_self=True)(scores, relevance).item() == 0.0
    value = QuadLinearAPLoss(0.1, 1.0, include_self=True)(scores, relevance).item()
    # One of eight positives has a negative within delta: x = (1 - 0.05 / 0.1)^2 / (1 + 1), which gives a risk of 1 / 9.
    assert value == pytest.approx(1 / 72, abs=1e-12)
    assert value == pytest.approx(0.01388890, abs=2e-8)


def test_docstring_example_is_correct() -> None:
    found = doctest.testmod(sys.modules[QuadLinearAPLoss.__module__])
    assert found.attempted == 4
    assert found.failed == 0


def test_loss_without_self_pairs_matches_a_hand_computed_value() -> None:
    # One positive at 0.5 and one negative at 0.6: x = 2 * 0.1 / 0.1 + 1 = 3, risk = 3 / 4.
    scores = torch.tensor([[1.0, 0.5, 0.6]])
    relevance = torch.tensor([[1, 1, 0]])
    assert quad_linear_ap_loss(scores, relevance, delta=0.1, rho=1.0, self_offset=0).item() == pytest.approx(0.75)
    # With the self-pair: its own risk is 0, the other x = 3 / (1 + 1) gives 3 / 5, and the mean is 0.3.
    kept = quad_linear_ap_loss(scores, relevance, delta=0.1, rho=1.0, include_self=True)
    assert kept.item() == pytest.approx(0.3)


@pytest.mark.parametrize(("delta", "rho"), [(0.05, 0.1), (0.1, 1.0), (0.7, 5.0)])
@pytest.mark.parametrize("include_self", [False, True])
def test_loss_equals_a_plain_loop(delta: float, rho: float, include_self: bool) -> None:
    scores, relevance = random_case()
    assert_same_with_gradient(
        lambda s: quad_linear_ap_loss(s, relevance, delta=delta, rho=rho, include_self=include_self),
        lambda s: naive(s, relevance, delta, rho, include_self),
        scores,
    )


def test_gradient_equals_finite_differences() -> None:
    scores, relevance = random_case(1)
    assert_gradcheck(lambda s: quad_linear_ap_loss(s, relevance, delta=0.3, rho=1.0), scores)


@pytest.mark.parametrize(
    ("delta", "rho", "value", "gradient"),
    [
        (0.05, 0.1, 0.28355908393859863, 0.3192676603794098),
        (0.1, 1.0, 0.26285046339035034, 0.41157203912734985),
        (0.05, 5.0, 0.23990386724472046, 0.36300456523895264),
    ],
)
def test_loss_equals_the_public_code(delta: float, rho: float, value: float, gradient: float) -> None:
    loss = QuadLinearAPLoss(delta, rho, include_self=True)
    found = anchor_value_and_gradient(lambda x: loss(x @ x.T, anchor_relevance()))
    assert found == pytest.approx((value, gradient), rel=1e-5)


def test_gradient_does_not_vanish_for_badly_wrong_orders() -> None:
    scores = torch.tensor([[-0.9, 0.9]], requires_grad=True)
    quad_linear_ap_loss(scores, torch.tensor([[1, 0]]), delta=0.05).backward()
    assert scores.grad is not None
    # x = 2 * 1.8 / 0.05 + 1 = 73, d risk / d s_n = (2 / 0.05) / (1 + 73)^2.
    torch.testing.assert_close(scores.grad, torch.tensor([[-40.0, 40.0]]) / 74**2)


@pytest.mark.parametrize("name", ["delta", "rho"])
def test_options_out_of_range_are_rejected(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"{name} must be above 0, got 0\.0"):
        QuadLinearAPLoss(**{name: 0.0})  # type: ignore[arg-type]


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("rho", [0.1, 5.0])
def test_frame_loss_equals_the_five_dimensional_form(rho: float, include_self: bool) -> None:
    scores, labels, relevance = frame_case()
    assert_same_with_gradient(
        lambda s: frame_quad_linear_ap_loss(s, labels, relevance, delta=0.3, rho=rho, include_self=include_self),
        lambda s: naive_frames(s, labels, relevance, delta=0.3, rho=rho, include_self=include_self),
        scores,
    )


def test_frame_loss_in_blocks_equals_the_five_dimensional_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.metric.losses.score_pairs.BLOCK_PAIRS", 100)
    scores, labels, relevance = frame_case(frames=9, seed=3)
    assert_same_with_gradient(
        lambda s: FrameQuadLinearAPLoss(delta=0.2, rho=1.0)(s, labels, relevance),
        lambda s: naive_frames(s, labels, relevance, delta=0.2, rho=1.0),
        scores,
    )


def test_frame_loss_matches_a_hand_computed_value() -> None:
    # The frozen model ranks the three target frames 0, 1, 2: frame 0 is positive, frame 2 negative.
    labels = torch.tensor([0.9, 0.5, 0.1]).view(1, 1, 1, 3)
    scores = torch.tensor([0.2, 9.0, 0.3]).view(1, 1, 1, 3).requires_grad_()
    relevance = torch.ones(1, 1)
    loss = frame_quad_linear_ap_loss(scores, labels, relevance, delta=0.1, include_self=True)
    assert loss.item() == pytest.approx(0.75)  # x = 2 * 0.1 / 0.1 + 1 = 3
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient[0, 0, 0, 1] == 0.0


def test_padded_frames_do_not_change_the_loss() -> None:
    scores, labels, relevance = frame_case(frames=5)
    expected = frame_quad_linear_ap_loss(scores, labels, relevance, reduction="none")
    wide_scores = torch.full((6, 6, 8, 9), torch.nan, dtype=torch.float64)
    wide_labels = torch.full_like(wide_scores, 7.0)
    wide_scores[:, :, :5, :5], wide_labels[:, :, :5, :5] = scores, labels
    wide_scores.nan_to_num_(123.0).requires_grad_()
    value = frame_quad_linear_ap_loss(
        wide_scores,
        wide_labels,
        relevance,
        query_mask=(torch.arange(8) < 5).expand(6, 8),
        target_mask=(torch.arange(9) < 5).expand(6, 9),
        reduction="none",
    )
    torch.testing.assert_close(value, expected)
    (gradient,) = torch.autograd.grad(value.sum(), wide_scores)
    assert gradient[:, :, 5:].abs().sum() == 0
    assert gradient[..., 5:].abs().sum() == 0


def test_padded_targets_have_the_same_loss_as_each_target_alone() -> None:
    scores, labels, _ = frame_case(frames=8)
    lengths = [8, 3, 1, 5, 0, 2]
    masks = torch.arange(8) < torch.tensor(lengths).unsqueeze(1)
    found = frame_quad_linear_ap_loss(
        scores, labels, torch.ones(6, 6), target_mask=masks, include_self=True, reduction="none"
    )
    for target, length in enumerate(lengths):
        if not length:
            assert found[:, target].abs().sum() == 0
            continue
        alone = frame_quad_linear_ap_loss(
            scores[:, target : target + 1, :, :length],
            labels[:, target : target + 1, :, :length],
            torch.ones(6, 1),
            reduction="none",
        )
        torch.testing.assert_close(found[:, target : target + 1], alone)


def test_no_relevant_pair_gives_zero_with_a_gradient() -> None:
    scores, labels, _ = frame_case()
    scores.requires_grad_()
    loss = frame_quad_linear_ap_loss(scores, labels, torch.eye(6))
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.item() == 0.0
    assert gradient.abs().sum() == 0


def test_frame_memory_is_bounded_by_the_selected_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    from vidkin.metric.losses import quad_linear

    real = quad_linear.list_risk

    def spy(*arguments: Tensor, **options: object) -> Tensor:
        seen.append(arguments[0].shape[0])
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(quad_linear, "list_risk", spy)
    scores, labels, relevance = frame_case()
    frame_quad_linear_ap_loss(scores, labels, relevance)
    # In groups of 3, 2 and 1 videos, each has at most 2 others, so there are 6 x 2 pairs of 7 query frames instead of 6
    # x 6.
    assert seen == [6 * 2 * 7]


def test_frame_loss_with_a_bound_does_not_synchronize_with_the_device() -> None:
    scores = torch.rand(6, 6, 7, 7, device="meta", requires_grad=True)
    labels, relevance = torch.rand(6, 6, 7, 7, device="meta"), torch.ones(6, 6, device="meta")
    masks = torch.ones(6, 7, dtype=torch.bool, device="meta")
    FrameQuadLinearAPLoss(max_positives=2)(scores, labels, relevance, target_mask=masks).backward()
    assert scores.grad is not None
    with pytest.raises(RuntimeError, match="meta"):
        FrameQuadLinearAPLoss()(scores, labels, relevance)


def test_frame_half_precision_is_computed_in_single_precision() -> None:
    scores, labels, relevance = frame_case(dtype=torch.float32)
    low = scores.bfloat16()
    found = frame_quad_linear_ap_loss(low, labels, relevance)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, frame_quad_linear_ap_loss(low.float(), labels, relevance))


def test_mismatched_frame_arguments_are_rejected() -> None:
    scores, labels, relevance = frame_case()
    with pytest.raises(
        InvalidArgumentError, match=r"frame and reference scores must have the same shape .*, got \(6, 6, 7, 7\), "
    ):
        frame_quad_linear_ap_loss(scores, labels[:, :, :5], relevance)
    with pytest.raises(InvalidArgumentError, match=r"and relevance \[queries, targets\], got .* and \(6, 5\)"):
        frame_quad_linear_ap_loss(scores, labels, relevance[:, :5])
    with pytest.raises(InvalidArgumentError, match=r"top_rate \+ bottom_rate must be at most 1, got 1\.1"):
        frame_quad_linear_ap_loss(scores, labels, relevance, top_rate=0.6, bottom_rate=0.5)
    with pytest.raises(InvalidArgumentError, match=r"top_rate must be above 0, got 0\.0"):
        FrameQuadLinearAPLoss(top_rate=0.0)
