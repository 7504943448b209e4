"""Frame similarities equal a slow, naive implementation."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import frame_similarity, frame_similarity_many


def features(
    frames: int, regions: int, dimension: int, *, seed: int = 0, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(frames, regions, dimension, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(values, dim=-1).to(dtype)


def naive(
    query: torch.Tensor,
    target: torch.Tensor,
    share: float | None = None,
    query_mask: torch.Tensor | None = None,
    target_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """The definition, computed element by element in float64."""
    result = torch.zeros(len(query), len(target), dtype=torch.float64)
    for x, query_frame in enumerate(query.double()):
        for y, target_frame in enumerate(target.double()):
            if query_mask is not None:
                query_frame = query.double()[x][query_mask[x]]
            if target_mask is not None:
                target_frame = target_frame[target_mask[y]]
            if len(query_frame) == 0 or len(target_frame) == 0:
                continue
            k = 1 if share is None else max(1, round(share * len(target_frame)))
            best = [sorted((row @ target_frame.T).tolist())[-k:] for row in query_frame]
            result[x, y] = sum(sum(row) / k for row in best) / len(best)
    return result


def test_map_matches_hand_computed_values() -> None:
    # Two regions per frame; the products of the first query frame with the first target frame are [[1, 0.6], [0, 0.8]].
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    target = torch.tensor([[[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0], [0.0, -1.0]]])
    # (1 + 0.8) / 2 and (0 + 1) / 2.
    assert frame_similarity(query, target).tolist() == [[pytest.approx(0.9), 0.5]]
    # With all regions: ((1 + 0.6) + (0 + 0.8)) / 4, and 0.
    assert frame_similarity(query, target, spatial_share=1.0).tolist() == [[pytest.approx(0.6), 0.0]]
    # In the other direction: (max(1, 0) + max(0.6, 0.8)) / 2 = 0.9 and (max(0, 1) + max(0, -1)) / 2 = 0.5.
    assert frame_similarity(query, target, symmetric=True).tolist() == [[pytest.approx(0.9), 0.5]]


@pytest.mark.parametrize("share", [None, 0.1, 0.35, 0.6, 1.0])
@pytest.mark.parametrize(("query_regions", "target_regions"), [(9, 9), (4, 9), (9, 1), (1, 25)])
def test_map_equals_the_naive_implementation(share: float | None, query_regions: int, target_regions: int) -> None:
    query, target = features(5, query_regions, 16), features(7, target_regions, 16, seed=1)
    expected = naive(query, target, share)
    torch.testing.assert_close(
        frame_similarity(query, target, spatial_share=share).double(), expected, atol=1e-6, rtol=0
    )
    both = (expected + naive(target, query, share).T) / 2
    similarity = frame_similarity(query, target, spatial_share=share, symmetric=True)
    torch.testing.assert_close(similarity.double(), both, atol=1e-6, rtol=0)


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("symmetric", [False, True])
def test_masked_regions_are_ignored(share: float | None, symmetric: bool) -> None:
    query, target = features(4, 5, 8), features(6, 3, 8, seed=1)
    generator = torch.Generator().manual_seed(2)
    query_mask = torch.rand(4, 5, generator=generator) < 0.6
    target_mask = torch.rand(6, 3, generator=generator) < 0.6
    query_mask[1], target_mask[2] = False, False
    expected = naive(query, target, share, query_mask, target_mask)
    if symmetric:
        expected = (expected + naive(target, query, share, target_mask, query_mask).T) / 2
    similarity = frame_similarity(
        query,
        target,
        spatial_share=share,
        symmetric=symmetric,
        query_mask=query_mask,
        target_mask=target_mask,
    )
    torch.testing.assert_close(similarity.double(), expected, atol=1e-6, rtol=0)
    assert similarity[1].tolist() == [0.0] * 6  # a frame without a valid region has zero similarity
    assert similarity[:, 2].tolist() == [0.0] * 4


@pytest.mark.parametrize("block_bytes", [1, 700, 5_000, 40_000])
@pytest.mark.parametrize("share", [None, 0.35])
@pytest.mark.parametrize("symmetric", [False, True])
def test_blocks_do_not_change_the_map_of_a_long_target(block_bytes: int, share: float | None, symmetric: bool) -> None:
    # A known pitfall: averaging scores of blocks would dilute a short clip in a long video.
    target = features(61, 9, 16)
    query = target[40:45]
    whole = frame_similarity(query, target, spatial_share=share, symmetric=symmetric, block_bytes=1 << 30)
    blocked = frame_similarity(query, target, spatial_share=share, symmetric=symmetric, block_bytes=block_bytes)
    torch.testing.assert_close(blocked, whole, atol=3e-7, rtol=0)
    if share is None:
        assert blocked.argmax(1).tolist() == [40, 41, 42, 43, 44]
        assert blocked.amax(1).tolist() == pytest.approx([1.0] * 5)


@given(
    query_frames=st.integers(1, 6),
    target_frames=st.integers(1, 9),
    query_regions=st.integers(1, 5),
    target_regions=st.integers(1, 5),
    share=st.one_of(st.none(), st.floats(0, 1)),
    block_bytes=st.integers(1, 4000),
    seed=st.integers(0, 100),
)
def test_any_shape_fraction_and_block_size_equals_the_naive_map(
    query_frames: int,
    target_frames: int,
    query_regions: int,
    target_regions: int,
    share: float | None,
    block_bytes: int,
    seed: int,
) -> None:
    query = features(query_frames, query_regions, 6, seed=seed, dtype=torch.float64)
    target = features(target_frames, target_regions, 6, seed=seed + 1, dtype=torch.float64)
    similarity = frame_similarity(query, target, spatial_share=share, block_bytes=block_bytes)
    torch.testing.assert_close(similarity, naive(query, target, share))


def test_order_of_regions_does_not_matter() -> None:
    query, target = features(5, 9, 16), features(6, 9, 16, seed=1)
    shuffled = target[:, torch.randperm(9, generator=torch.Generator().manual_seed(3))]
    for share in (None, 0.35):
        torch.testing.assert_close(
            frame_similarity(query, target, spatial_share=share),
            frame_similarity(query, shuffled, spatial_share=share),
        )


def test_swapping_arguments_transposes_a_symmetric_map() -> None:
    query, target = features(4, 9, 16), features(6, 5, 16, seed=1)
    forth = frame_similarity(query, target, spatial_share=0.4, symmetric=True)
    back = frame_similarity(target, query, spatial_share=0.4, symmetric=True)
    torch.testing.assert_close(forth, back.T)


@pytest.mark.parametrize("lengths", [[1, 2, 3], [50], [3, 40, 1, 17, 2]])
@pytest.mark.parametrize("block_bytes", [1, 3_000, None])
def test_targets_of_many_lengths_equal_one_by_one(lengths: list[int], block_bytes: int | None) -> None:
    query = features(4, 3, 8)
    targets = [features(length, 5, 8, seed=number) for number, length in enumerate(lengths, 1)]
    expected = [frame_similarity(query, target, spatial_share=0.4) for target in targets]
    options = {"spatial_share": 0.4, "block_bytes": block_bytes}
    for found in (
        frame_similarity_many(query, targets, **options),
        frame_similarity_many(query, torch.cat(targets), lengths=lengths, **options),
    ):
        assert [tuple(item.shape) for item in found] == [(4, length) for length in lengths]
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=3e-7, rtol=0)


def test_masks_apply_to_each_of_many_targets() -> None:
    query, targets = features(3, 4, 8), [features(2, 4, 8, seed=1), features(5, 4, 8, seed=2)]
    masks = [torch.ones(2, 4, dtype=torch.bool), torch.arange(4).expand(5, 4) < 2]
    similarities = frame_similarity_many(query, targets, target_masks=masks, block_bytes=100)
    torch.testing.assert_close(similarities[0].double(), naive(query, targets[0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(similarities[1].double(), naive(query, targets[1][:, :2]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("share", [None, 0.35, 0.8])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block_bytes", [150, None])
def test_gradients_equal_numeric_ones(share: float | None, symmetric: bool, block_bytes: int | None) -> None:
    query = features(2, 3, 2, dtype=torch.float64).requires_grad_()
    target = features(3, 4, 2, seed=1, dtype=torch.float64).requires_grad_()
    query_mask = torch.ones(2, 3, dtype=torch.bool)
    query_mask[0, 1] = False
    target_mask = torch.ones(3, 4, dtype=torch.bool)
    target_mask[2, 2:] = False
    for masks in ((None, None), (query_mask, target_mask)):
        assert torch.autograd.gradcheck(
            lambda q, t, masks=masks: frame_similarity(
                q,
                t,
                spatial_share=share,
                symmetric=symmetric,
                query_mask=masks[0],
                target_mask=masks[1],
                block_bytes=block_bytes,
            ),
            (query, target),
        )


def test_gradient_path_and_fast_path_agree() -> None:
    query, target = features(20, 9, 32), features(30, 9, 32, seed=1)
    fast = frame_similarity(query, target, spatial_share=0.35, block_bytes=50_000)
    learning = frame_similarity(query.requires_grad_(), target, spatial_share=0.35, block_bytes=50_000)
    assert not fast.requires_grad
    assert learning.requires_grad
    torch.testing.assert_close(learning.detach(), fast, atol=3e-7, rtol=0)


def test_backward_pass_keeps_one_block_in_memory() -> None:
    """The whole product would take 60 * 60 * 9 * 9 * 4 B = 1.2 MB; far less is saved for the backward pass."""
    query = features(60, 9, 8).requires_grad_()
    target = features(60, 9, 8, seed=1)
    saved = 0

    def pack(item: torch.Tensor) -> torch.Tensor:
        nonlocal saved
        saved += item.numel() * item.element_size()
        return item

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda item: item):
        result = frame_similarity(query, target, block_bytes=100_000)
    assert saved < 200_000
    result.sum().backward()
    assert query.grad is not None
    assert float(query.grad.abs().sum()) > 0


def test_bfloat16_keeps_the_ranking_of_candidates() -> None:
    # The candidates share 10 %, 20 %, ... 100 % of the query's frames.
    query = features(20, 9, 64)
    candidates = [torch.cat([query[: 2 * n], features(20 - 2 * n, 9, 64, seed=n)]) for n in range(1, 11)]
    exact = torch.stack([m.amax(1).mean() for m in frame_similarity_many(query, candidates)])
    rough = frame_similarity_many(query, candidates, precision=torch.bfloat16)
    assert rough[0].dtype == torch.float32
    scores = torch.stack([m.amax(1).mean() for m in rough])
    assert scores.argsort().tolist() == exact.argsort().tolist() == list(range(10))
    assert float((scores - exact).abs().max()) < 2e-3
    halves = frame_similarity_many(query.bfloat16(), [c.bfloat16() for c in candidates])
    assert all(torch.equal(one, other) for one, other in zip(halves, rough, strict=True))


def test_float64_inputs_give_a_float64_map() -> None:
    query = features(2, 2, 4, dtype=torch.float64)
    assert frame_similarity(query, query).dtype == torch.float64


def test_invalid_arguments_are_refused() -> None:
    query = features(2, 3, 4)
    with pytest.raises(InvalidArgumentError, match=r"query must not be empty, got \[0, 3, 4\]"):
        frame_similarity(query[:0], query)
    with pytest.raises(InvalidArgumentError, match=r"target must not be empty, got \[2, 0, 4\]"):
        frame_similarity(query, query[:, :0])
    with pytest.raises(InvalidArgumentError, match=r"target must be \[T, R, D\] floating point, got \[2, 3\]"):
        frame_similarity(query, query[..., 0])
    with pytest.raises(InvalidArgumentError, match=r"query must be .* torch.int64"):
        frame_similarity(query.long(), query)
    with pytest.raises(
        InvalidArgumentError, match=r"target must agree with query in dimension, type and device, got D = 3"
    ):
        frame_similarity(query, query[..., :3])
    with pytest.raises(
        InvalidArgumentError, match=r"got D = 4, torch\.float64, cpu for a query with D = 4, torch.float32"
    ):
        frame_similarity(query, query.double())
    with pytest.raises(InvalidArgumentError, match=r"the mask of query must be \[2, 3\] boolean, got \[3, 2\]"):
        frame_similarity(query, query, query_mask=torch.ones(3, 2, dtype=torch.bool))
    with pytest.raises(InvalidArgumentError, match=r"the mask of target must be .* torch.float32"):
        frame_similarity(query, query, target_mask=torch.ones(2, 3))
    with pytest.raises(InvalidArgumentError, match=r"spatial_share must be None .*, got 2"):
        frame_similarity(query, query, spatial_share=2.5)
    with pytest.raises(InvalidArgumentError, match="block_bytes must be above 0 or None, got 0"):
        frame_similarity(query, query, block_bytes=0)


def test_invalid_targets_are_refused() -> None:
    query = features(2, 3, 4)
    with pytest.raises(InvalidArgumentError, match="targets must not be empty"):
        frame_similarity_many(query, [])
    with pytest.raises(InvalidArgumentError, match=r"target 1 must not be empty, got \[0, 3, 4\]"):
        frame_similarity_many(query, [query, query[:0]])
    with pytest.raises(InvalidArgumentError, match="target 1 must have 3 regions per frame, like the others, got 2"):
        frame_similarity_many(query, [query, query[:, :2]])
    with pytest.raises(InvalidArgumentError, match="lengths is required for concatenated targets"):
        frame_similarity_many(query, query)
    with pytest.raises(InvalidArgumentError, match=r"add up to 2 frames, got \[1, 2\]"):
        frame_similarity_many(query, query, lengths=[1, 2])
    with pytest.raises(InvalidArgumentError, match="lengths must be None if targets is a sequence"):
        frame_similarity_many(query, [query], lengths=[2])
    with pytest.raises(InvalidArgumentError, match="target_masks must have one mask for each of 2 targets, got 1"):
        frame_similarity_many(query, [query, query], target_masks=[torch.ones(2, 3, dtype=torch.bool)])
