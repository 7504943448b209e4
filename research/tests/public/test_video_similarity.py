"""Video-level similarity of single pairs and of sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.similarity.test_frame_maps import features, naive
from vidkin.errors import InvalidArgumentError
from vidkin_research.public import video_similarity as video_module
from vidkin_research.public.video_similarity import video_similarity, video_similarity_pairwise


def naive_score(query: torch.Tensor, target: torch.Tensor, spatial: float | None, temporal: float | None) -> float:
    k = 1 if temporal is None else max(1, round(temporal * len(target)))
    rows = naive(query, target, spatial).tolist()
    return sum(sum(sorted(row)[-k:]) / k for row in rows) / len(rows)


@pytest.mark.parametrize(("spatial", "temporal"), [(None, None), (0.35, 0.3), (1.0, 1.0)])
def test_single_pair_equals_a_plain_loop(spatial: float | None, temporal: float | None) -> None:
    query, target = features(5, 4, 8), features(11, 4, 8, seed=1)
    options: dict[str, Any] = {"spatial_share": spatial, "temporal_share": temporal}
    forth, back = naive_score(query, target, spatial, temporal), naive_score(target, query, spatial, temporal)
    assert video_similarity(query, target, **options).item() == pytest.approx(forth, abs=1e-6)
    # Symmetric at both levels is not the mean of both directions, but independent of their order.
    both = video_similarity(query, target, symmetric=True, **options).item()
    assert both == pytest.approx(video_similarity(target, query, symmetric=True, **options).item(), abs=1e-6)
    if spatial == temporal == 1.0:
        assert both == pytest.approx((forth + back) / 2, abs=1e-6)


def test_video_has_similarity_one_to_itself_and_its_excerpts() -> None:
    video = features(30, 9, 32)
    assert video_similarity(video, video).item() == pytest.approx(1.0)
    assert video_similarity(video[7:9], video).item() == pytest.approx(1.0)
    assert video_similarity(video, video[7:9]).item() < 0.9  # only two of thirty frames have a match


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("map_bytes", [1, 1_000, 1 << 20])
def test_pairwise_equals_pair_by_pair(symmetric: bool, map_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_module, "_MAP_BYTES", map_bytes)
    queries = [features(length, 3, 8, seed=length) for length in (4, 1, 4, 7)]
    targets = [features(length, 5, 8, seed=20 + length) for length in (3, 12, 3, 1, 12)]
    options: dict[str, Any] = {"spatial_share": 0.4, "temporal_share": 0.25, "symmetric": symmetric}
    similarities = video_similarity_pairwise(queries, targets, **options)
    expected = [[video_similarity(q, t, **options).item() for t in targets] for q in queries]
    assert similarities.shape == (4, 5)
    for row, line in zip(similarities.tolist(), expected, strict=True):
        assert row == pytest.approx(line, abs=1e-6)


def test_pairwise_accepts_queries_with_different_numbers_of_regions() -> None:
    queries = [features(3, 4, 8), features(2, 9, 8, seed=1)]
    targets = [features(5, 2, 8, seed=2)]
    similarities = video_similarity_pairwise(queries, targets)
    expected = [naive_score(query, targets[0], None, None) for query in queries]
    assert similarities[:, 0].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
def test_pairwise_has_gradients(symmetric: bool) -> None:
    videos = [features(length, 2, 2, seed=length, dtype=torch.float64).requires_grad_() for length in (2, 3, 2)]
    assert torch.autograd.gradcheck(
        lambda *items: video_similarity_pairwise(
            items[:2], items, spatial_share=0.5, temporal_share=0.5, symmetric=symmetric, block_bytes=200
        ),
        tuple(videos),
    )


def test_invalid_arguments_are_rejected() -> None:
    video = features(3, 2, 4)
    with pytest.raises(InvalidArgumentError, match="queries must not be empty"):
        video_similarity_pairwise([], [video])
    with pytest.raises(InvalidArgumentError, match="targets must not be empty"):
        video_similarity_pairwise([video], [])


@pytest.mark.parametrize("share", [None, 0.5, 2.0])
def test_numpy_equals_torch(share: float | None) -> None:
    videos = [features(length, 3, 8, seed=length) for length in (5, 4, 7, 4)]
    options: dict[str, Any] = {"spatial_share": share, "temporal_share": share, "symmetric": True}
    found = video_similarity_pairwise(
        [video.numpy() for video in videos], [video.numpy() for video in videos], **options
    )
    np.testing.assert_allclose(found, video_similarity_pairwise(videos, videos, **options).numpy(), atol=1e-6)
