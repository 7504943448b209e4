"""One implementation of Chamfer similarity serves NumPy arrays and torch tensors; scores only need NumPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.arrays import unit
from vidkin.errors import InvalidArgumentError
from vidkin.similarity import (
    frame_similarity,
    frame_similarity_many,
    length_mask,
    temporal_chamfer,
)
from vidkin.similarity.frame_maps import mean_of_largest, mean_of_valid


def features(frames: int, regions: int, dimension: int = 8, *, seed: int = 0) -> NDArray[np.float32]:
    return unit(np.random.default_rng(seed).standard_normal((frames, regions, dimension)))


def naive(
    query: NDArray[np.float32],
    target: NDArray[np.float32],
    share: float | None,
    query_mask: NDArray[np.bool_],
    target_mask: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The definition, computed element by element."""
    result = np.zeros((len(query), len(target)))
    for x, y in np.ndindex(result.shape):
        product = query[x][query_mask[x]].astype(np.float64) @ target[y][target_mask[y]].T
        if product.size:
            k = 1 if share is None else max(1, round(share * product.shape[1]))
            result[x, y] = np.sort(product, axis=1)[:, -k:].mean()
    return result


@given(
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5)),
    share=st.one_of(st.none(), st.floats(0, 1)),
    symmetric=st.booleans(),
    masked=st.booleans(),
    block_bytes=st.integers(1, 4000),
    seed=st.integers(0, 100),
)
def test_numpy_maps_equal_the_naive_implementation(
    sizes: tuple[int, int, int, int], share: float | None, symmetric: bool, masked: bool, block_bytes: int, seed: int
) -> None:
    query, target = features(sizes[0], sizes[2], seed=seed), features(sizes[1], sizes[3], seed=seed + 1)
    draw = np.random.default_rng(seed)
    masks = [draw.random(values.shape[:2]) < (0.6 if masked else 1.0) for values in (query, target)]
    expected = naive(query, target, share, masks[0], masks[1])
    if symmetric:
        expected = (expected + naive(target, query, share, masks[1], masks[0]).T) / 2
    found = frame_similarity(
        query,
        target,
        spatial_share=share,
        symmetric=symmetric,
        query_mask=masks[0] if masked else None,
        target_mask=masks[1] if masked else None,
        block_bytes=block_bytes,
    )
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.parametrize("share", [None, 0.5, 2.0])
@pytest.mark.parametrize("masked", [False, True])
def test_torch_gives_the_same_values_as_numpy(regions: int, share: float | None, masked: bool) -> None:
    torch = pytest.importorskip("torch")
    query, targets = features(5, regions), [features(count, regions, seed=count) for count in (4, 7, 4)]
    options: dict[str, Any] = {"spatial_share": share, "symmetric": True, "block_bytes": 500}
    masks = [np.random.default_rng(len(values)).random(values.shape[:2]) < 0.7 for values in (query, *targets)]
    kept: dict[str, Any] = {"query_mask": masks[0], "target_masks": masks[1:]} if masked else {}
    maps = frame_similarity_many(query, targets, **options, **kept)
    kept = {"query_mask": torch.tensor(masks[0]), "target_masks": [*map(torch.tensor, masks[1:])]} if masked else {}
    twins = frame_similarity_many(torch.tensor(query), [*map(torch.tensor, targets)], **options, **kept)
    for one, twin in zip(maps, twins, strict=True):
        np.testing.assert_allclose(one, twin.numpy(), atol=1e-6)


@pytest.mark.parametrize("share", [None, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("longest", [None, 3])
def test_padded_maps_have_the_same_means_and_scores_in_torch(share: float | None, longest: int | None) -> None:
    torch = pytest.importorskip("torch")
    maps = np.random.default_rng(0).random((3, 6, 40)).astype(np.float32)
    rows, columns = np.array([6, 2, 1]), np.array([40, 30, 1])
    masks = {"query_mask": length_mask(rows, 6), "target_mask": length_mask(columns, 40)}
    sides = torch.tensor(rows), torch.tensor(columns)
    twin_masks = {"query_mask": length_mask(sides[0], 6), "target_mask": length_mask(sides[1], 40)}
    options: dict[str, Any] = {"temporal_share": share, "symmetric": True, "longest": longest}
    for kept, twins in (({}, {}), (masks, twin_masks)):
        found = temporal_chamfer(maps, **options, **kept)
        np.testing.assert_allclose(found, temporal_chamfer(torch.tensor(maps), **options, **twins).numpy(), atol=1e-6)
    largest = mean_of_largest(maps, dim=2, share=share, longest=longest)
    twin = mean_of_largest(torch.tensor(maps), dim=2, share=share, longest=longest)
    np.testing.assert_allclose(largest, twin.numpy(), atol=1e-6)
    np.testing.assert_allclose(mean_of_valid(maps, dim=1), torch.tensor(maps).mean(1).numpy(), atol=1e-6)


@pytest.mark.parametrize("regions", [1, 3])
def test_numpy_computes_half_precision_in_float32(regions: int) -> None:
    query, target = features(4, regions).astype(np.float16), features(6, regions, seed=1).astype(np.float16)
    wide = query.astype(np.float32), target.astype(np.float32)
    for precision in (None, np.float16, np.float32):
        found = frame_similarity(query, target, precision=precision)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, frame_similarity(*wide), atol=1e-6)
    assert frame_similarity(*wide, precision=np.float64).dtype == np.float64


def test_arrays_of_different_types_are_refused() -> None:
    query = features(2, 3)
    with pytest.raises(InvalidArgumentError, match="got D = 8, float64, cpu for a query with D = 8, float32"):
        frame_similarity(query, query.astype(np.float64))
    with pytest.raises(InvalidArgumentError, match=r"query must be .* int64"):
        frame_similarity(query.astype(np.int64), query)
    with pytest.raises(InvalidArgumentError, match=r"the mask of query must be \[2, 3\] boolean, got \[2, 3\] float32"):
        frame_similarity(query, query, query_mask=np.ones((2, 3), np.float32))


SCORES_IN_A_NEW_PROCESS = """
import sys
import numpy as np
from vidkin.match import KindScorer, open_scorer
from vidkin.similarity import FrameFeatures, frame_similarity, temporal_chamfer

values = np.random.default_rng(1).standard_normal((12, 2, 1, 16)).astype(np.float16)
values /= np.linalg.norm(values.astype(np.float32), axis=-1, keepdims=True).astype(np.float16)
boxes = np.broadcast_to(np.array([(0, 0, 1, 1), (0, 0, 0.5, 1)], np.float32), (12, 2, 4))
video = FrameFeatures(values, np.arange(12.0), np.ones(12, np.float32), boxes=boxes)
assert open_scorer("copies").score(video, [video, video])[1].score > 0.7
assert KindScorer().score(video, [video])[0].score > 0.99
assert temporal_chamfer(frame_similarity(values[:, 0], values[:, 0])) > 0.99
heavy = {"torch", "scipy", "sklearn", "array_api_compat.torch", "numpy.f2py", "unittest"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.process
def test_two_videos_are_scored_without_torch() -> None:
    subprocess.run([sys.executable, "-c", SCORES_IN_A_NEW_PROCESS], check=True)
