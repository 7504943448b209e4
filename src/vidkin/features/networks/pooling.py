"""Region pooling of a feature pyramid: R-LiMAC, maximum activations of 3 x 3 regions over several stages."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from vidkin.errors import InvalidArgumentError

__all__ = ["region_kernel", "region_max_pool"]

_GRID = 3


def region_max_pool(maps: Sequence[torch.Tensor], *, whole_frame: bool = False) -> torch.Tensor:
    """One descriptor per region of a 3 x 3 grid, from the maps of several stages (R-LiMAC).

    Per stage: max pooling with kernel s = :func:`region_kernel` and stride ceil(s / 2), unit length over channels,
    adaptive max pooling to the 3 x 3 grid, unit length. The channels of all stages are then concatenated and scaled to
    unit length. For 224 x 224 pixels and stages of 56, 28, 14, 7 cells per side the kernels are 28, 14, 6, 3.
    (Kordopatis-Zilos et al., "ViSiL: Fine-grained spatio-temporal video similarity learning", ICCV 2019.)

    Args:
        maps: One tensor [T, C_s, H_s, W_s] per stage.
        whole_frame: Append a tenth region, the maximum over the whole map. Leave it off for descriptors compatible
            with published ones; turn it on for partial matches that are zoomed or moved.

    Returns:
        [T, R, sum of C_s], R = 9 (row by row) or 10; unit vectors (zero where all maps are).

    Raises:
        InvalidArgumentError: There are no maps, a map does not have four axes, or T differs.
    """
    if not maps:
        raise InvalidArgumentError("maps must have at least one stage, got none")
    for stage in maps:
        if stage.ndim != 4 or stage.shape[0] != maps[0].shape[0]:
            raise InvalidArgumentError(
                f"maps must be [T, C, H, W] with one T, got {[list(stage.shape) for stage in maps]}"
            )
    pooled = []
    for stage in maps:
        kernel = (region_kernel(stage.shape[2]), region_kernel(stage.shape[3]))
        windows = functional.max_pool2d(stage, kernel, stride=(_stride(kernel[0]), _stride(kernel[1])))
        regions = functional.adaptive_max_pool2d(functional.normalize(windows, dim=1), _GRID)
        pooled.append(functional.normalize(regions, dim=1).flatten(2))
    if whole_frame:
        whole = [functional.normalize(stage.amax(dim=(2, 3)), dim=1)[..., None] for stage in maps]
        pooled = [torch.cat(pair, dim=2) for pair in zip(pooled, whole, strict=True)]
    return functional.normalize(torch.cat(pooled, dim=1), dim=1).transpose(1, 2).contiguous()


def region_kernel(length: int) -> int:
    """Kernel s for a map of ``length`` cells: the largest s <= length / 2 that still gives 3 regions.

    With stride ceil(s / 2) there are ``(length - s) // stride + 1`` of them: 56 -> 28, 28 -> 14, 14 -> 6, 7 -> 3.
    If no kernel gives exactly 3, one that gives a few more is used (adaptive pooling merges them). Maps of fewer than
    3 cells get a kernel of 1.
    """
    for kernel in range(length // 2, 0, -1):
        if (length - kernel) // _stride(kernel) + 1 >= _GRID:
            return kernel
    return 1


def _stride(kernel: int) -> int:
    return -(-kernel // 2)
