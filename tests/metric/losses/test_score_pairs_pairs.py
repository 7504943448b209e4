"""Properties of all losses on (scores, relevance), tested for each loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.metric.losses.score_cases import random_case
from tests.metric.losses.test_average_precision_hierarchical import graded_relevance
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.metric.losses.score_pairs import LossOnScores, gather_marked, map_row_blocks

RANKED = {
    "quad linear": losses.QuadLinearAPLoss(0.3, 1.0),
    "smooth": losses.SmoothAPLoss(0.1),
    "sup": losses.SupAPLoss(0.1, 5.0, 0.2),
    "hierarchical": losses.HierarchicalAPLoss(0.1, 5.0, 0.2),
    "fast": losses.FastAPLoss(8),
    "quantized": losses.QuantizedAPLoss(9),
    "tie-aware": losses.QuantizedAPLoss(9, tie_aware=True),
    "simplified": losses.QuantizedAPLoss(9, tie_aware=True, simplified=True),
    "blackbox": losses.BlackBoxAPLoss(40.0, margin=0.1),
}
PAIRED = {
    "contrastive": losses.ContrastiveLoss(),
    "active": losses.ContrastiveLoss(active_only=True),
    "triplet": losses.ScoreTripletLoss(0.3),
    "hard triplet": losses.ScoreTripletLoss(0.3, mining="hard"),
    "circle": losses.CircleLoss(0.25, 16.0),
    "global circle": losses.CircleLoss(0.25, 16.0, form="global"),
    "info nce": losses.InfoNCELoss(0.2),
    "sup con": losses.InfoNCELoss(0.2, denominator="all"),
    "self hard negative": losses.SelfHardNegativeLoss(),
    "mae": losses.MAELoss(),
    "mse": losses.MSELoss(),
}
ALL = RANKED | PAIRED
# Losses with one value per query before the reduction.
PER_QUERY = {
    name: loss
    for name, loss in ALL.items()
    if name not in ("contrastive", "active", "global circle", "mae", "mse", "self hard negative")
}
# Losses that ignore the score of a query with itself.
WITHOUT_SELF = {name: loss for name, loss in ALL.items() if name != "self hard negative"}


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, tuple | list) else (result,):
            # Expanded views share memory.
            if isinstance(made, Tensor) and not func.is_view:
                self.elements = max(self.elements, made.numel())
        return result


def every(table: dict[str, LossOnScores]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("loss", table.values(), ids=table.keys())


def value_and_gradient(loss: LossOnScores, scores: Tensor, relevance: Tensor, **options: int) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, relevance, **options)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    return value.detach(), gradient


def unit_case(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Scores in (0, 1), the range valid for every loss, with graded or binary relevance."""
    scores, relevance = random_case(seed)
    return 0.05 + 0.9 * (scores + 1) / 2, relevance


@every(ALL)
@pytest.mark.parametrize("graded", [False, True])
def test_order_of_the_items_does_not_matter(loss: LossOnScores, graded: bool) -> None:
    scores, relevance = unit_case()
    if graded:
        relevance = graded_relevance()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    value, gradient = value_and_gradient(loss, scores, relevance)
    moved, moved_gradient = value_and_gradient(loss, scores[order][:, order], relevance[order][:, order])
    torch.testing.assert_close(moved, value)
    torch.testing.assert_close(moved_gradient, gradient[order][:, order])
    assert gradient.abs().sum() > 0


@every(ALL)
def test_batches_without_positives_have_a_finite_loss_and_gradient(loss: LossOnScores) -> None:
    scores, _ = unit_case()
    value, gradient = value_and_gradient(loss, scores, torch.eye(9))
    if loss in RANKED.values() or isinstance(loss, losses.InfoNCELoss | losses.ScoreTripletLoss):
        assert value == 0.0
        assert gradient.abs().sum() == 0
    if isinstance(loss, losses.CircleLoss):
        assert value == 0.0


@every(ALL)
def test_batches_without_negatives_have_a_finite_loss_and_gradient(loss: LossOnScores) -> None:
    scores, _ = unit_case()
    value, _ = value_and_gradient(loss, scores, torch.ones(9, 9))
    if loss in RANKED.values() and not getattr(loss, "tie_aware", False):
        assert value.item() == pytest.approx(0.0, abs=1e-12)
    if isinstance(loss, losses.ScoreTripletLoss | losses.CircleLoss):
        assert value == 0.0


@every(ALL)
@pytest.mark.parametrize("size", [1, 2])
def test_the_smallest_batches_have_a_finite_loss(loss: LossOnScores, size: int) -> None:
    for relevance in (torch.ones(size, size), torch.eye(size), torch.full((size, size), -1.0)):
        value_and_gradient(loss, torch.full((size, size), 0.5), relevance)


@every(ALL)
def test_ties_and_duplicates_give_finite_values(loss: LossOnScores) -> None:
    _, relevance = unit_case()
    for constant in (0.0, 0.5, 1.0):
        value, gradient = value_and_gradient(loss, torch.full((9, 9), constant), relevance)
        assert value.abs().sum() < 1e4
        assert gradient.abs().max() < 1e4


@every(ALL)
def test_ignored_pairs_do_not_count(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    wide = torch.full((9, 12), 7.0, dtype=scores.dtype)
    wide[:, :9] = scores
    labels = torch.full((9, 12), -1.0, dtype=scores.dtype)
    labels[:, :9] = relevance
    value, gradient = value_and_gradient(loss, scores, relevance)
    wide_value, wide_gradient = value_and_gradient(loss, wide, labels, self_offset=0)
    torch.testing.assert_close(wide_value, value)
    torch.testing.assert_close(wide_gradient[:, :9], gradient)
    assert wide_gradient[:, 9:].abs().sum() == 0


@every(WITHOUT_SELF)
def test_infinite_scores_of_ignored_pairs_have_no_effect(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    value, gradient = value_and_gradient(loss, scores, relevance)
    masked = scores.clone().fill_diagonal_(-torch.inf)
    masked_value, masked_gradient = value_and_gradient(loss, masked, relevance)
    torch.testing.assert_close(masked_value, value)
    torch.testing.assert_close(masked_gradient, gradient)


@every(ALL)
def test_gathered_rows_have_the_same_loss_as_in_one_process(loss: LossOnScores) -> None:
    """A process with queries 3 to 5 of 9 computes the same values for them as a single process."""
    scores, relevance = unit_case()
    part = type(loss).__call__(loss, scores[3:6], relevance[3:6], self_offset=3)
    alone = scores.clone()
    ignored = torch.full_like(relevance, -1.0)
    ignored[3:6] = relevance[3:6]
    torch.testing.assert_close(part, loss(alone, ignored))


@every(PER_QUERY)
def test_reductions_are_consistent(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    rows = {}
    for reduction in ("none", "sum", "mean"):
        loss.reduction = reduction
        rows[reduction] = loss(scores, relevance)
    loss.reduction = "mean"
    assert rows["none"].shape == (9,)
    # Query 6 is alone in its class, so it is not counted.
    assert rows["none"][6] == 0
    torch.testing.assert_close(rows["sum"], rows["none"].sum())
    torch.testing.assert_close(rows["mean"], rows["none"].sum() / 8)


@every(ALL)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single_precision(loss: LossOnScores, dtype: torch.dtype) -> None:
    scores, relevance = unit_case()
    low = scores.to(dtype)
    found, gradient = value_and_gradient(loss, low, relevance)
    expected, wide_gradient = value_and_gradient(loss, low.float(), relevance)
    assert found.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, wide_gradient.to(dtype))


@every(ALL)
def test_bfloat16_autocast_gives_a_finite_loss_and_gradient(loss: LossOnScores) -> None:
    generator = torch.Generator().manual_seed(2)
    embeddings = torch.nn.functional.normalize(torch.randn(9, 16, generator=generator).abs(), dim=1)
    _, relevance = unit_case()
    leaf = embeddings.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = leaf @ leaf.T
        value = loss(scores, relevance)
    assert scores.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(scores.float(), relevance))
    (gradient,) = torch.autograd.grad(value, leaf)
    assert gradient.isfinite().all()


@every(ALL)
def test_blocks_of_rows_do_not_change_the_loss(loss: LossOnScores, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, relevance = unit_case()
    expected = value_and_gradient(loss, scores, relevance)
    monkeypatch.setattr("vidkin.metric.losses.score_pairs.BLOCK_PAIRS", 60)
    torch.testing.assert_close(value_and_gradient(loss, scores, relevance), expected)
    with torch.no_grad():
        torch.testing.assert_close(loss(scores, relevance), expected[0])


@every(ALL)
def test_relevance_may_be_of_any_type(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    expected = loss(scores, relevance)
    for other in (relevance.bool(), relevance.long(), relevance.float(), relevance.bfloat16()):
        torch.testing.assert_close(loss(scores, other), expected)


@every(ALL)
def test_mismatched_arguments_are_rejected(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    with pytest.raises(InvalidArgumentError, match=r"not be empty, got \(9, 9\) and \(9, 8\)"):
        loss(scores, relevance[:, :8])
    with pytest.raises(InvalidArgumentError, match=r"not be empty, got \(0, 9\)"):
        loss(scores[:0], relevance[:0])
    with pytest.raises(InvalidArgumentError, match=r"scores must be floating point numbers, got torch\.int64"):
        loss(relevance.long(), relevance)
    message = "self_offset must be from 0 to 3 for 6 queries and 9 references, got 5"
    with pytest.raises(InvalidArgumentError, match=message):
        loss(scores[:6], relevance[:6], self_offset=5)


@every(WITHOUT_SELF)
def test_query_is_in_its_own_list_only_with_include_self(loss: LossOnScores) -> None:
    scores, relevance = unit_case()
    low, high = scores.clone().fill_diagonal_(0.1), scores.clone().fill_diagonal_(0.9)
    torch.testing.assert_close(loss(low, relevance), loss(high, relevance))
    loss.include_self = True
    kept = loss(low, relevance), loss(high, relevance)
    loss.include_self = False
    assert kept[0] != kept[1]


def test_rectangular_scores_have_no_self_pairs() -> None:
    scores = torch.tensor([[0.1, 0.9, 0.5]])
    assert losses.mae_loss(scores, torch.zeros(1, 3)).item() == pytest.approx(0.5)
    assert losses.mae_loss(scores, torch.zeros(1, 3), self_offset=1).item() == pytest.approx(0.3)
    kept = losses.mae_loss(scores, torch.zeros(1, 3), self_offset=1, include_self=True)
    assert kept.item() == pytest.approx(0.5)


def test_repr_shows_the_options() -> None:
    expected = "QuadLinearAPLoss(delta=0.05, rho=0.1, include_self=False, max_positives=None, reduction='mean')"
    assert repr(losses.QuadLinearAPLoss()) == expected


def test_gather_marked_returns_columns_and_filled_slots() -> None:
    marked = torch.tensor([[False, True, True], [False, False, False], [True, False, False]])
    columns, filled = gather_marked(marked, None)
    assert filled.tolist() == [[True, True], [False, False], [True, False]]
    assert sorted(columns[0].tolist()) == [1, 2]
    assert columns[2, 0] == 0


def test_blocks_bound_the_size_of_temporaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.metric.losses.score_pairs.BLOCK_PAIRS", 100)
    sizes: list[int] = []

    def row_sums(values: Tensor) -> Tensor:
        sizes.append(values.shape[0])
        return values.square().sum(dim=1)

    values = torch.arange(50.0).view(10, 5).requires_grad_()
    result = map_row_blocks(row_sums, values, pairs_per_row=30)
    assert sizes == [3, 3, 3, 1]
    result.sum().backward()
    # Every block is recomputed in the backward pass.
    assert sorted(sizes) == sorted([3, 3, 3, 1] * 2)
    torch.testing.assert_close(values.grad, 2 * values.detach())


def test_queries_can_be_scored_against_a_memory_bank() -> None:
    """Every loss that ignores self-pairs accepts queries and a memory bank without them."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(4, 30, generator=generator)
    relevance = (torch.rand(4, 30, generator=generator) < 0.2).float()
    for name, loss in WITHOUT_SELF.items():
        value, gradient = value_and_gradient(loss, scores, relevance)
        assert math.isfinite(value)
        assert gradient.abs().sum() > 0, name


@every(ALL)
def test_no_tensor_is_larger_than_the_scores(loss: LossOnScores, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 256 queries in classes of 8, the differences to all positives would be 7 times as large."""
    monkeypatch.setattr("vidkin.metric.losses.score_pairs.BLOCK_PAIRS", 20_000)
    labels = torch.arange(256) // 8
    scores = torch.rand(256, 256, generator=torch.Generator().manual_seed(0)).requires_grad_()
    relevance = (labels.unsqueeze(1) == labels.unsqueeze(0)).float()
    with LargestTensor() as largest:
        loss(scores, relevance).backward()
    assert largest.elements == scores.numel()


@every(ALL)
def test_losses_do_not_synchronize_with_the_device(loss: LossOnScores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meta tensors make any read of a value fail: counting positives reads one, a bound on their number does not."""
    scores = torch.rand(2000, 2000, device="meta", requires_grad=True)
    relevance = torch.ones(2000, 2000, device="meta")
    if hasattr(loss, "max_positives") and getattr(loss, "mining", "all") == "all":
        with pytest.raises(RuntimeError, match="meta"):
            loss(scores, relevance)
        monkeypatch.setattr(loss, "max_positives", 3)
    loss(scores, relevance).backward()
    assert scores.grad is not None
    assert scores.grad.shape == scores.shape


def test_all_losses_on_scores_are_tested_here() -> None:
    public = {getattr(losses, name) for name in losses.__all__}
    on_scores = {item for item in public if isinstance(item, type) and issubclass(item, LossOnScores)}
    assert on_scores - {losses.FrameQuadLinearAPLoss} == {type(loss) for loss in ALL.values()}
