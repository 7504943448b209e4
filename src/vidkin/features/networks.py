"""Input normalization and pooling of feature maps for networks, for both NumPy and torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from array_api_compat import array_namespace

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError

Triple = tuple[float, float, float]
"""One number per color channel."""

A = TypeVar("A", bound=Any)
"""A NumPy array or a torch tensor; functions return the type that they receive."""

_GRID = 3


def triple(values: Any) -> Triple:
    """Convert three values to floats, one per color channel."""
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def optional_triple(source: Mapping[str, str], key: str) -> Triple | None:
    """Read one number or three from a mapping of strings, as one number per color channel; None if the key is missing.

    Raises:
        InvalidArgumentError: The text is not one number or three, or ``std`` is not positive.
    """
    if key not in source:
        return None
    try:
        numbers = [float(part) for part in source[key].split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3) or (key == "std" and min(numbers) <= 0):
        raise InvalidArgumentError(
            f"{key} must be one number or three, separated by commas{' and positive' if key == 'std' else ''}, "
            f"got {source[key]!r}"
        )
    return (numbers[0], numbers[0], numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1], numbers[2])


@check_arguments
def region_max_pool(maps: Sequence[A], *, whole_frame: bool = False) -> A:
    """Compute one descriptor per region of a 3 x 3 grid from the feature maps of several stages (R-LiMAC).

    Per stage: max pooling with kernel s = :func:`region_kernel` and stride ceil(s / 2), normalization to unit length
    over channels, adaptive max pooling to the 3 x 3 grid, normalization. The channels of all stages are then
    concatenated and normalized. For 224 x 224 pixels and stages with 56, 28, 14, 7 cells per side, the kernels are
    28, 14, 6, 3. (Kordopatis-Zilos et al., "ViSiL: Fine-grained spatio-temporal video similarity learning", ICCV 2019.)

    Args:
        maps: One array [T, C_s, H_s, W_s] per stage, in NumPy, or in torch on any device.
        whole_frame: Append a tenth region, the maximum over the whole map. Disable it for compatibility with published
            descriptors; enable it for partial matches that are zoomed or moved.

    Returns:
        [T, R, sum of C_s], R = 9 (row by row) or 10; unit vectors (zero if all maps are zero).

    Raises:
        InvalidArgumentError: There are no maps, a map does not have four axes, or T differs between maps.
    """
    if not len(maps):
        raise InvalidArgumentError("maps must have at least one stage, got none")
    for stage in maps:
        if getattr(stage, "ndim", 0) != 4 or stage.shape[0] != maps[0].shape[0]:
            shapes = [list(getattr(stage, "shape", ())) for stage in maps]
            raise InvalidArgumentError(f"maps must be arrays [T, C, H, W] with one T, got {shapes}")
    xp = array_namespace(*maps)
    pooled = []
    for stage in maps:
        windows = unit_vectors(_window_maxima(xp, stage), axis=1)
        regions = unit_vectors(_grid_maxima(xp, windows), axis=1)
        regions = xp.reshape(regions, (*regions.shape[:2], _GRID * _GRID))
        if whole_frame:
            whole = unit_vectors(xp.max(stage, axis=(2, 3)), axis=1)
            regions = xp.concat([regions, whole[:, :, None]], axis=2)
        pooled.append(regions)
    regions_first: A = xp.permute_dims(xp.concat(pooled, axis=1), (0, 2, 1))
    return unit_vectors(regions_first, axis=2)


def region_kernel(length: int) -> int:
    """Return the kernel s for a map of ``length`` cells: the largest s <= length / 2 that still gives 3 regions.

    With stride ceil(s / 2), there are ``(length - s) // stride + 1`` regions: 56 -> 28, 28 -> 14, 14 -> 6, 7 -> 3. If
    no kernel gives exactly 3 regions, the largest that gives more is used, and adaptive pooling merges them. Maps with
    fewer than 3 cells get a kernel of 1.
    """
    for kernel in range(length // 2, 0, -1):
        if (length - kernel) // _stride(kernel) + 1 >= _GRID:
            return kernel
    return 1


def unit_vectors(values: A, *, axis: int = -1) -> A:
    """Scale vectors along an axis to unit length; zero vectors stay zero."""
    xp = array_namespace(values)
    lengths = xp.sqrt(xp.sum(values * values, axis=axis, keepdims=True))
    units: A = values / xp.clip(lengths, 1e-12, None)
    return units


def _window_maxima(xp: Any, stage: A) -> A:
    """Compute maxima of the windows of :func:`region_kernel`, rows first: [T, C, H, W] to [T, C, M, N]."""
    for axis in (2, 3):
        length = int(stage.shape[axis])
        kernel = region_kernel(length)
        starts = range(0, length - kernel + 1, _stride(kernel))
        stage = _slice_maxima(xp, stage, axis, [(start, start + kernel) for start in starts])
    return stage


def _grid_maxima(xp: Any, windows: A) -> A:
    """Apply adaptive max pooling from [T, C, M, N] to [T, C, 3, 3], with cells of nearly equal size."""
    for axis in (2, 3):
        length = int(windows.shape[axis])
        ends = [(cell * length // _GRID, -(-(cell + 1) * length // _GRID)) for cell in range(_GRID)]
        windows = _slice_maxima(xp, windows, axis, ends)
    return windows


def _slice_maxima(xp: Any, values: A, axis: int, ends: Sequence[tuple[int, int]]) -> A:
    """Compute the maxima of slices along an axis, in order."""
    before = (slice(None),) * axis
    maxima: A = xp.stack([xp.max(values[(*before, slice(*end))], axis=axis) for end in ends], axis=axis)
    return maxima


def _stride(kernel: int) -> int:
    return -(-kernel // 2)
