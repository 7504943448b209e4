"""Relevance of clips, and the losses computed from their comparison."""

from __future__ import annotations

import pytest
import torch

from vidkin.metric import losses
from vidkin.models import ComparatorConfig, build_comparator
from vidkin.training import ClipFeatures, ObjectiveRecipe, settle_parameters
from vidkin.training.clip_data import ClipBatch, ComparatorObjective, make_batch

ON_SCORES = {
    "mae": losses.MAELoss(),
    "mse": losses.MSELoss(),
    "score_triplet": losses.ScoreTripletLoss(),
    "contrastive": losses.ContrastiveLoss(),
    "circle": losses.CircleLoss(),
    "fast_ap": losses.FastAPLoss(),
    "quantized_ap": losses.QuantizedAPLoss(),
    "blackbox_ap": losses.BlackBoxAPLoss(),
    "smooth_ap": losses.SmoothAPLoss(),
    "quad_linear_ap": losses.QuadLinearAPLoss(),
    "info_nce": losses.InfoNCELoss(),
    "self_hard_negative": losses.SelfHardNegativeLoss(),
}


def clip(
    length: int,
    windows: tuple[int, ...],
    videos: tuple[int, ...],
    seed: int = 0,
    lent: tuple[tuple[int, int], ...] = (),
) -> ClipFeatures:
    values = torch.randn(length, 1, 8, generator=torch.Generator().manual_seed(seed))
    # The windows of a video are consecutive.
    sources = torch.arange(length) + 10 * (windows[0] % 2)
    return ClipFeatures(torch.nn.functional.normalize(values, dim=-1), sources, windows, videos, lent)


def batch_of_six() -> ClipBatch:
    """Weak and strong views of windows 0 and 1 (video 0) and 2 (video 1); the last view has window 0 as an inset."""
    clips = [
        clip(6, (0,), (0,), 1), clip(5, (1,), (0,), 2), clip(6, (2,), (1,), 3),
        clip(4, (0,), (0,), 4), clip(6, (1,), (0,), 5), clip(6, (2, 0), (1, 0), 6, lent=((0, 6),)),
    ]  # fmt: skip
    generator = torch.Generator().manual_seed(9)
    teacher = [torch.nn.functional.normalize(torch.randn(16, 4, generator=generator), dim=-1) for _ in range(2)]
    clips[0].sources[2] = -1
    return make_batch(clips, teacher)


def objective(*names: str) -> ComparatorObjective:
    return ComparatorObjective(
        [ObjectiveRecipe(name=name, weight=2.0, parameters=settle_parameters(name, {})) for name in names]
    )


def test_clips_of_one_window_are_positives_and_other_clips_of_its_video_are_ignored() -> None:
    batch = batch_of_six()
    assert batch.relevance.tolist() == [
        [1, -1, 0, 1, -1, 1],
        [-1, 1, 0, -1, 1, -1],
        [0, 0, 1, 0, 0, 1],
        [1, -1, 0, 1, -1, 1],
        [-1, 1, 0, -1, 1, -1],
        [1, -1, 1, 1, -1, 1],
    ]
    # Frames of a clip with an inset are labeled only by its main window.
    assert batch.same_window.nonzero().tolist() == [
        [0, 0], [0, 3], [1, 1], [1, 4], [2, 2], [2, 5], [3, 0], [3, 3], [4, 1], [4, 4], [5, 2], [5, 5],
    ]  # fmt: skip
    assert batch.lengths.tolist() == [6, 5, 6, 4, 6, 6]
    assert batch.labeled[0].tolist() == [True, True, False, True, True, True]
    assert batch.labeled[3].tolist() == [True] * 4 + [False] * 2
    assert not batch.values[3, 4:].any()


@pytest.mark.parametrize("name", ON_SCORES)
def test_score_losses_receive_scores_and_relevance(name: str) -> None:
    batch = batch_of_six()
    model = build_comparator(ComparatorConfig(dimension=8), weights="random")
    terms = objective(name)(model, batch)
    scores = model(batch.values, batch.lengths).scores
    expected = ON_SCORES[name](scores, batch.relevance, self_offset=0)
    torch.testing.assert_close(terms[name], expected)
    torch.testing.assert_close(terms["loss"], 2 * expected)
    torch.autograd.backward(terms["loss"])
    others = ~torch.eye(6, dtype=torch.bool)
    torch.testing.assert_close(terms["positives"], scores[(batch.relevance == 1) & others].mean())
    torch.testing.assert_close(terms["negatives"], scores[batch.relevance == 0].mean())


def test_regularizer_receives_learned_maps_before_clipping() -> None:
    batch = batch_of_six()
    model = build_comparator(ComparatorConfig(dimension=8), weights="random")
    assert model.visil_head is not None
    torch.nn.init.constant_(model.visil_head.fconv.bias, 3.0)
    maps = model(batch.values, batch.lengths).learned_maps
    found = objective("similarity_regularizer")(model, batch)["similarity_regularizer"]
    assert found.item() > 30
    torch.testing.assert_close(found, (maps - 1).clamp(min=0).sum() + (-1 - maps).clamp(min=0).sum())


def test_frame_loss_receives_pairs_of_views_and_teacher_similarities() -> None:
    batch = batch_of_six()
    config = ComparatorConfig(dimension=8, weighting="attention")
    model = build_comparator(config, weights="random")
    found = objective("frame_quad_linear_ap")(model, batch)["frame_quad_linear_ap"]
    assert batch.teacher is not None
    maps = model(batch.values, batch.lengths).frame_maps
    alone = []
    for first, second in ((0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)):
        rows, columns = batch.labeled[first], batch.labeled[second]
        alone.append(
            losses.FrameQuadLinearAPLoss(include_self=True)(
                maps[first, second][rows][:, columns][None, None],
                (batch.teacher[first][rows] @ batch.teacher[second][columns].T)[None, None],
                torch.ones(1, 1),
            )
        )
    torch.testing.assert_close(found, torch.stack(alone).mean())
    torch.autograd.backward(found)
    assert model.attention.get_parameter("context_vector.weight").grad is not None
