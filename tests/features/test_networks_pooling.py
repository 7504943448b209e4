"""Region pooling matches a naive implementation and hand-computed values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.features import region_max_pool
from vidkin.features.networks import region_kernel


def unit(vector: torch.Tensor) -> torch.Tensor:
    return vector / vector.norm().clamp_min(1e-12)


def naive_stage(stage: torch.Tensor) -> list[torch.Tensor]:
    """Nine vectors [C] of a map [C, H, W], computed window by window as in the paper."""
    channels, height, width = stage.shape
    size = {56: 28, 28: 14, 14: 6, 7: 3}
    rows, columns = size[height], size[width]
    windows = []
    for top in range(0, height - rows + 1, math.ceil(rows / 2)):
        line = []
        for left in range(0, width - columns + 1, math.ceil(columns / 2)):
            window = stage[:, top : top + rows, left : left + columns]
            line.append(unit(torch.stack([window[c].max() for c in range(channels)])))
        windows.append(line)
    assert (len(windows), len(windows[0])) == (3, 3)  # adaptive pooling to 3 x 3 changes nothing
    return [unit(vector) for line in windows for vector in line]


def pyramid(count: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(count, channels, side, side, generator=generator)
        for channels, side in ((3, 56), (4, 28), (5, 14), (6, 7))
    ]


def test_pooling_equals_a_naive_implementation() -> None:
    maps = pyramid()
    result = region_max_pool(maps)
    assert result.shape == (2, 9, 18)
    for frame in range(2):
        stages = [naive_stage(stage[frame]) for stage in maps]
        for region in range(9):
            expected = unit(torch.cat([stage[region] for stage in stages]))
            torch.testing.assert_close(result[frame, region], expected)


def test_numpy_and_torch_give_the_same_result() -> None:
    """``onnx:`` networks return NumPy arrays, other networks tensors on their device."""
    maps = [*pyramid(), torch.rand(2, 7, 2, 11)]
    of_arrays = region_max_pool([stage.numpy() for stage in maps], whole_frame=True)
    assert isinstance(of_arrays, np.ndarray)
    assert of_arrays.dtype == np.float32
    np.testing.assert_allclose(of_arrays, region_max_pool(maps, whole_frame=True).numpy(), atol=1e-6)


def test_pooling_matches_torch() -> None:
    pool = torch.nn.functional
    for height, width in ((13, 9), (2, 1), (71, 40), (56, 28)):
        stage = torch.randn(2, 5, height, width)
        rows, columns = region_kernel(height), region_kernel(width)
        windows = pool.max_pool2d(stage, (rows, columns), (-(-rows // 2), -(-columns // 2)))
        regions = pool.normalize(pool.adaptive_max_pool2d(pool.normalize(windows, dim=1), 3), dim=1)
        torch.testing.assert_close(region_max_pool([stage]), regions.flatten(2).transpose(1, 2))


def test_whole_frame_is_a_tenth_region() -> None:
    maps = pyramid()
    result = region_max_pool(maps, whole_frame=True)
    torch.testing.assert_close(result[:, :9], region_max_pool(maps))
    expected = unit(torch.cat([unit(stage[1].flatten(1).max(dim=1).values) for stage in maps]))
    torch.testing.assert_close(result[1, 9], expected)


@pytest.mark.parametrize(
    ("length", "kernel"), [(56, 28), (28, 14), (14, 6), (7, 3), (112, 56), (64, 32), (8, 4), (3, 1), (1, 1)]
)
def test_kernels_match_the_documented_sizes(length: int, kernel: int) -> None:
    assert region_kernel(length) == kernel


def test_any_map_size_gives_nine_unit_vectors() -> None:
    for height, width in ((1, 1), (2, 3), (4, 5), (6, 10), (9, 33), (71, 40)):
        result = region_max_pool([torch.rand(1, 4, height, width), torch.rand(1, 2, 7, 7)])
        assert result.shape == (1, 9, 6)
        torch.testing.assert_close(result.norm(dim=-1), torch.ones(1, 9))
    for length in range(3, 300):
        kernel = region_kernel(length)
        assert 3 <= (length - kernel) // math.ceil(kernel / 2) + 1 <= 5


def test_regions_are_in_reading_order() -> None:
    # One channel is active at the top right, the other at the bottom left: regions 2 and 6.
    stage = torch.zeros(1, 2, 28, 28)
    stage[0, 0, 0, 27] = 1
    stage[0, 1, 27, 0] = 1
    expected = torch.zeros(9, 2)
    expected[2, 0] = expected[6, 1] = 1
    assert torch.equal(region_max_pool([stage])[0], expected)


def test_mirrored_maps_give_mirrored_regions() -> None:
    maps = [
        stage for stage in pyramid() if stage.shape[-1] != 14
    ]  # six-wide windows on 14 columns leave two columns uncovered
    mirrored = region_max_pool([stage.flip(-1) for stage in maps])
    torch.testing.assert_close(mirrored, region_max_pool(maps)[:, [2, 1, 0, 5, 4, 3, 8, 7, 6]])


def test_region_pooling_refuses_maps_with_different_batch_sizes() -> None:
    with pytest.raises(InvalidArgumentError, match="maps must have at least one stage, got none"):
        region_max_pool([])
    with pytest.raises(InvalidArgumentError, match=r"with one T, got \[\[1, 2, 7, 7\], \[2, 2, 7, 7\]\]"):
        region_max_pool([torch.rand(1, 2, 7, 7), torch.rand(2, 2, 7, 7)])
    with pytest.raises(InvalidArgumentError, match=r"got \[\[2, 7, 7\]\]"):
        region_max_pool([torch.rand(2, 7, 7)])
