"""TopK-Chamfer over regions: compute a frame similarity map from the region descriptors of two videos.

All functions accept NumPy arrays or torch tensors (on any device, with gradients) and return the same type; torch is
only needed for tensors. Shapes: Tq, Tt frames of query and target; Rq, Rt regions; D dimensions. A block covers several
frames of each video.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError

AnyArray = Any
"""A NumPy array or a torch tensor."""

_MEBIBYTE = 1 << 20

# On a CPU, the product for a block should fit in the last-level cache; a GPU benefits from fewer, larger launches.
_BLOCK_BYTES_CPU = 8 * _MEBIBYTE

_BLOCK_BYTES_ACCELERATOR = 256 * _MEBIBYTE

# A block of at least 1 / 4 of the maximum size is not concatenated with the next target, because that requires a copy.
_SMALLEST_BLOCK = 4


def namespace_of(values: AnyArray) -> Any:
    """Return the array API namespace of an array: NumPy itself, or a namespace of ``array_api_compat``."""
    if isinstance(values, np.ndarray):
        # NumPy 2 follows the standard; array_api_compat.numpy would import f2py and unittest (0.15 s and 20 MB).
        return np
    from array_api_compat import array_namespace

    return array_namespace(values)


@check_arguments
def frame_similarity(
    query: AnyArray,
    target: AnyArray,
    *,
    spatial_share: float | None = None,
    symmetric: bool = False,
    query_mask: AnyArray | None = None,
    target_mask: AnyArray | None = None,
    precision: Any = None,
    block_bytes: int | None = None,
) -> AnyArray:
    """Compute the TopK-Chamfer similarity over regions of every query frame to every target frame.

    ``map[x, y] = mean over query regions i of the mean of the k largest over target regions j of
    <query[x, i], target[y, j]>`` with ``k = max(1, round(spatial_share * valid regions of y))``.

    The full [Tq, Rq, Rt, Tt] product is never stored: it is computed and reduced in blocks of at most ``block_bytes``
    (but at least one frame of each video; k > 1 and masks temporarily need about twice that). Except for rounding, the
    result does not depend on the block size. With gradients and several blocks, each block is recomputed in the
    backward pass, so that only one is in memory at a time. With one region per frame, the map is a plain matrix
    product.

    Args:
        query: [Tq, Rq, D] floating point; for unit vectors, the result is a cosine in [-1, 1].
        target: [Tt, Rt, D] with the same type, device and D; Rt can differ from Rq.
        spatial_share: k_s in the paper, in [0, 1], or k itself if at least 2; None (default) for the plain Chamfer
            similarity, k = 1.
        symmetric: Average both directions, from a single product. Each direction computes k from its own number of
            target regions, so swapping query and target transposes the map.
        query_mask: [Tq, Rq] boolean, True for valid regions; None if all are valid.
        target_mask: [Tt, Rt] boolean, True for valid regions; None if all are valid. A frame without valid regions has
            similarity 0 to all others.
        precision: Data type of the products, from the library of the inputs; None for the type of the inputs.
            torch.bfloat16 roughly halves the time on processors that support it. Products of bfloat16 and float16
            tensors are accumulated in float32, rounded once, compared in half precision, and averaged in float32. NumPy
            supports float32 and float64; float16 is computed in float32, because NumPy has no fast half-precision
            product.
        block_bytes: Maximum size of the temporary product in bytes; None for 8 MiB on a CPU and 256 MiB elsewhere.
            Lower it only if memory is limited.

    Returns:
        [Tq, Tt], float64 for float64 products and float32 otherwise; differentiable for tensors.

    Raises:
        InvalidArgumentError: An input is empty or has the wrong shape, or spatial_share is invalid.

    Source: Chamfer similarity, ViSiL (ICCV 2019); TopK-Chamfer, HAP-VR (ACM MM 2024), equations 2 and 3.
    """
    masks = None if target_mask is None else [target_mask]
    return _similarity_map(
        query, [target], query_mask, masks, _Options(spatial_share, symmetric, precision, block_bytes)
    )


@check_arguments
def frame_similarity_many(
    query: AnyArray,
    targets: AnyArray | Sequence[AnyArray],
    *,
    lengths: Sequence[int] | None = None,
    spatial_share: float | None = None,
    symmetric: bool = False,
    query_mask: AnyArray | None = None,
    target_masks: Sequence[AnyArray] | None = None,
    precision: Any = None,
    block_bytes: int | None = None,
) -> list[AnyArray]:
    """Compute the maps of a query with many targets of any length in one pass, for exact re-ranking.

    Args:
        query: [Tq, Rq, D] descriptors.
        targets: N arrays [T_n, Rt, D] (long ones are not copied, short ones are concatenated block by block), or a
            single concatenated array [sum of T_n, Rt, D] with ``lengths``.
        lengths: T_n of each concatenated target; None for a sequence of arrays.
        target_masks: N boolean arrays [T_n, Rt], or None if all regions are valid.
        spatial_share, symmetric, query_mask, precision, block_bytes: As in :func:`frame_similarity`.

    Returns:
        N maps [Tq, T_n], views of one array [Tq, sum of T_n]; each equals that of :func:`frame_similarity` up to
        rounding.

    Raises:
        InvalidArgumentError: There are no targets, a target is empty or has the wrong shape, or the lengths do not
            match.
    """
    parts = split_targets(targets, lengths)
    if target_masks is not None and len(target_masks) != len(parts):
        raise InvalidArgumentError(
            f"target_masks must have one mask for each of {len(parts)} targets, got {len(target_masks)}"
        )
    options = _Options(spatial_share, symmetric, precision, block_bytes)
    whole = _similarity_map(query, parts, query_mask, target_masks, options)
    return [whole[:, columns] for columns in _slices([part.shape[0] for part in parts])]


def split_targets(targets: AnyArray, lengths: Sequence[int] | None) -> Sequence[AnyArray]:
    """Split concatenated targets into separate arrays; return a sequence of arrays unchanged."""
    if isinstance(targets, list | tuple):
        if lengths is not None:
            raise InvalidArgumentError("lengths must be None if targets is a sequence of arrays")
        if not targets:
            raise InvalidArgumentError("targets must not be empty")
        return targets
    if lengths is None:
        raise InvalidArgumentError("lengths is required for concatenated targets: the number of frames of each target")
    if not lengths or min(lengths) < 1 or sum(lengths) != targets.shape[0]:
        raise InvalidArgumentError(
            f"lengths must be positive and add up to {targets.shape[0]} frames, got {list(lengths)}"
        )
    return [targets[rows] for rows in _slices(lengths)]


def _slices(lengths: Sequence[int]) -> list[slice]:
    """Return the slices of parts with these lengths in their concatenation."""
    ends = list(itertools.accumulate(lengths))
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


@dataclass(frozen=True, slots=True)
class _Options:
    spatial_share: float | None
    symmetric: bool
    precision: Any
    block_bytes: int | None

    def product_type(self, values: AnyArray) -> Any:
        """Return the data type of the products; for NumPy, float32 or float64."""
        if isinstance(values, np.ndarray):
            return np.result_type(self.precision or values.dtype, np.float32)
        return self.precision or values.dtype


# The arguments of _block_similarity: query frames, target frames, their masks, and the options.
_Pair = tuple[AnyArray, AnyArray, AnyArray | None, AnyArray | None, _Options]


class _Blocks:
    """Splits a query and targets into nearly square blocks of limited size, as equal as the query length allows."""

    def __init__(
        self,
        query: AnyArray,
        targets: Sequence[AnyArray],
        query_mask: AnyArray | None,
        target_masks: Sequence[AnyArray] | None,
        options: _Options,
    ) -> None:
        self.query, self.targets = query, targets
        self.query_mask, self.target_masks = query_mask, target_masks
        self.options = options
        self.product_type = options.product_type(query)
        limit = options.block_bytes
        if limit is None:
            on_processor = isinstance(query, np.ndarray) or query.device.type == "cpu"
            limit = _BLOCK_BYTES_CPU if on_processor else _BLOCK_BYTES_ACCELERATOR
        elif limit < 1:
            raise InvalidArgumentError(f"block_bytes must be above 0 or None, got {limit}")
        elements = limit // self.product_type.itemsize
        side = max(1, math.isqrt(elements) // query.shape[1])
        self.query_frames = math.ceil(query.shape[0] / math.ceil(query.shape[0] / side))
        most = max(1, elements // (self.query_frames * query.shape[1] * targets[0].shape[1]))
        self.total = sum(target.shape[0] for target in targets)  # frames of all targets
        self.target_frames = math.ceil(self.total / math.ceil(self.total / most))

    @property
    def is_single(self) -> bool:
        """Whether a single block is enough."""
        return bool(self.query.shape[0] <= self.query_frames and self.total <= self.target_frames)

    def pairs(self) -> Iterator[tuple[tuple[slice, slice], _Pair]]:
        """Yield each block with its rows and columns in the map, row by row."""
        xp = namespace_of(self.query)
        for start in range(0, self.query.shape[0], self.query_frames):
            rows = slice(start, start + self.query_frames)
            part = self.query[rows]
            if self.options.symmetric:
                # [Rq, bq, D], because the reverse direction reduces over query regions.
                part = xp.permute_dims(part, (1, 0, 2))
            part = _convert(part, self.product_type)
            valid = None if self.query_mask is None else self.query_mask[rows]
            first = 0
            for values, mask in self.target_blocks(self.target_frames):
                columns = slice(first, first + values.shape[0])
                yield (rows, columns), (part, _convert(values, self.product_type), valid, mask, self.options)
                first = columns.stop

    def target_blocks(self, most: int) -> Iterator[tuple[AnyArray, AnyArray | None]]:
        """Yield all target frames in blocks [bt, Rt, D] of at most ``most`` frames, with their masks.

        A block within a single target is a view. Only short targets are concatenated, because that copies them.
        """
        buffer: list[AnyArray] = []
        mask_buffer: list[AnyArray] = []
        size = 0
        for number, target in enumerate(self.targets):
            position = 0
            while position < target.shape[0]:
                taken = min(most - size, target.shape[0] - position)
                buffer.append(target[position : position + taken])
                if self.target_masks is not None:
                    mask_buffer.append(self.target_masks[number][position : position + taken])
                position, size = position + taken, size + taken
                is_full = size == most
                if is_full or (position == target.shape[0] and size >= most / _SMALLEST_BLOCK):
                    yield _join(buffer), _join(mask_buffer) if mask_buffer else None
                    buffer, mask_buffer, size = [], [], 0
        if buffer:
            yield _join(buffer), _join(mask_buffer) if mask_buffer else None


def _similarity_map(
    query: AnyArray,
    targets: Sequence[AnyArray],
    query_mask: AnyArray | None,
    target_masks: Sequence[AnyArray] | None,
    options: _Options,
) -> AnyArray:
    check_top_share("spatial_share", options.spatial_share)
    _check_features("query", query, query, query_mask)
    for number, target in enumerate(targets):
        name = "target" if len(targets) == 1 else f"target {number}"
        _check_features(name, target, query, None if target_masks is None else target_masks[number])
        if target.shape[1] != targets[0].shape[1]:
            raise InvalidArgumentError(
                f"{name} must have {targets[0].shape[1]} regions per frame, like the others, got {target.shape[1]}"
            )
    blocks = _Blocks(query, targets, query_mask, target_masks, options)
    if query.shape[1] == targets[0].shape[1] == 1:
        return _product_map(blocks)
    if isinstance(query, np.ndarray):
        return _compute_map(blocks)
    import torch

    if not (torch.is_grad_enabled() and any(item.requires_grad for item in (query, *targets))):
        with torch.no_grad():
            return _compute_map(blocks)
    from torch.utils.checkpoint import checkpoint

    stripes: list[list[AnyArray]] = []
    for (_, columns), pair in blocks.pairs():
        if columns.start == 0:
            stripes.append([])
        if blocks.is_single:
            stripes[-1].append(_block_similarity(*pair))
        else:
            # Products stored for the backward pass would add up to [Tq, Rq, Rt, Tt]; recomputing them avoids that.
            part = checkpoint(_block_similarity, *pair, use_reentrant=False, preserve_rng_state=False)
            stripes[-1].append(part)
    return torch.cat([torch.cat(stripe).T for stripe in stripes])


def _product_map(blocks: _Blocks) -> AnyArray:
    """Compute the map of videos with one region per frame: a matrix product, because the directions and the value of k
    make no difference."""
    query, kind = blocks.query, blocks.product_type
    rows = _convert(query[:, 0], kind)
    if isinstance(query, np.ndarray):
        result: AnyArray = np.empty((query.shape[0], blocks.total), kind)
        first = 0
        # Process a few descriptors at a time, so that converting float16 and concatenating short targets stay in cache.
        for values, _ in blocks.target_blocks(max(1, _BLOCK_BYTES_CPU // (4 * query.shape[2] * kind.itemsize))):
            last = first + values.shape[0]
            np.matmul(rows, _convert(values[:, 0], kind).T, out=result[:, first:last])
            first = last
    else:
        result = rows @ _convert(_join([target[:, 0] for target in blocks.targets]), kind).mT
        result = _convert(result, _mean_type(result))
    xp = namespace_of(query)
    if blocks.query_mask is not None:
        result = xp.where(blocks.query_mask, result, 0.0)
    if blocks.target_masks is not None:
        result = xp.where(_join(list(blocks.target_masks))[:, 0], result, 0.0)
    return result


def _compute_map(blocks: _Blocks) -> AnyArray:
    if blocks.is_single and len(blocks.targets) == 1:
        ((_, pair),) = blocks.pairs()
        similarity = _block_similarity(*pair).T
        return _convert(similarity, similarity.dtype)
    query, xp = blocks.query, namespace_of(blocks.query)
    kind = xp.float64 if blocks.product_type == xp.float64 else xp.float32
    result = xp.empty((query.shape[0], blocks.total), dtype=kind, device=query.device)
    largest = blocks.query_frames * query.shape[1] * blocks.target_frames * blocks.targets[0].shape[1]
    scratch = xp.empty(largest, dtype=blocks.product_type, device=query.device)
    for area, pair in blocks.pairs():
        size = math.prod(pair[0].shape[:2]) * math.prod(pair[1].shape[:2])
        result[area] = _block_similarity(*pair, scratch[:size]).T
    return result


def _block_similarity(
    query: AnyArray,
    target: AnyArray,
    query_mask: AnyArray | None,
    target_mask: AnyArray | None,
    options: _Options,
    scratch: AnyArray | None = None,
) -> AnyArray:
    """Compute similarities [bt, bq] of query frames and target frames [bt, Rt, D], as yielded by _Blocks.pairs().

    In the product [bt, Rt, bq, Rq] (symmetric: [bt, Rt, Rq, bq]), target frames are rows and query frames are columns,
    so that the expensive reductions over regions access contiguous memory, and targets are not copied or transposed.
    """
    xp = namespace_of(query)
    rows, columns = target.reshape(-1, target.shape[2]), query.reshape(-1, query.shape[2]).T
    if scratch is None:
        product = rows @ columns
    else:
        product = xp.matmul(rows, columns, out=scratch.reshape(rows.shape[0], columns.shape[1]))
    product = product.reshape(*target.shape[:2], *query.shape[:2])
    regions = 1 if options.symmetric else 2
    query_valid = None if query_mask is None else (query_mask.T if options.symmetric else query_mask)[None]

    lines = product.reshape(*target.shape[:2], -1)
    line_valid = None if target_mask is None else target_mask[:, :, None]
    best = mean_of_largest(lines, dim=1, share=options.spatial_share, valid=line_valid)
    best = best.reshape(target.shape[0], *query.shape[:2])
    forward = mean_of_valid(best, dim=regions, valid=query_valid)
    if not options.symmetric:
        return forward
    every = None if query_valid is None else query_valid[None]
    best = mean_of_largest(product, dim=2, share=options.spatial_share, valid=every)
    backward = mean_of_valid(best, dim=1, valid=line_valid)
    return (forward + backward) / 2


def _join(parts: list[AnyArray]) -> AnyArray:
    return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts)


def _convert(values: AnyArray, kind: Any) -> AnyArray:
    """Return the values as a contiguous array of this type, without a copy if possible."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values, kind)
    return values.to(kind).contiguous()


def _check_features(name: str, values: AnyArray, query: AnyArray, mask: AnyArray | None) -> None:
    xp = namespace_of(values)
    if values.ndim != 3 or not xp.isdtype(values.dtype, "real floating"):
        raise InvalidArgumentError(f"{name} must be [T, R, D] floating point, got {list(values.shape)} {values.dtype}")
    if 0 in values.shape:
        raise InvalidArgumentError(f"{name} must not be empty, got {list(values.shape)}")
    if values.shape[2] != query.shape[2] or values.dtype != query.dtype or values.device != query.device:
        raise InvalidArgumentError(
            f"{name} must agree with query in dimension, type and device, got D = {values.shape[2]}, "
            f"{values.dtype}, {values.device} for a query with D = {query.shape[2]}, {query.dtype}, {query.device}"
        )
    if mask is not None and (mask.shape != values.shape[:2] or mask.dtype != xp.bool):
        raise InvalidArgumentError(
            f"the mask of {name} must be {list(values.shape[:2])} boolean, got {list(mask.shape)} {mask.dtype}"
        )


# Selection along a short dimension is faster than sorting up to this number of elementwise passes.
_SELECTION_PASSES = 64


def top_count(share: float | None, size: int, longest: int | None = None) -> int:
    """Return the number of values, out of ``size``, that TopK-Chamfer averages: ``max(1, round(share * size))``.

    Halves are rounded to even, as in Python's ``round``. Sizes above ``longest`` count as ``longest``. If ``share`` is
    above 1, it is the number itself, limited to ``size``; if it is None, the number is 1.
    """
    if share is not None and share > 1.0:
        return max(1, min(size, int(share)))
    counted = size if longest is None else min(size, longest)
    return 1 if share is None else max(1, round(share * counted))


def check_top_share(name: str, share: float | None) -> None:
    """Raise InvalidArgumentError unless share is None, in [0, 1], or an integer of at least 2."""
    if share is not None and not (0.0 <= share <= 1.0 or (share > 1.0 and float(share).is_integer())):
        raise InvalidArgumentError(
            f"{name} must be None (only the largest value), a fraction in [0, 1], or a count of at least 2, got {share}"
        )


def mean_of_largest(
    values: AnyArray,
    *,
    dim: int,
    share: float | None,
    valid: AnyArray | None = None,
    longest: int | None = None,
) -> AnyArray:
    """Compute the mean of the ``k = max(1, round(share * n))`` largest values along ``dim``, out of n valid ones.

    Args:
        values: Floating point, any shape; bfloat16 and float16 are averaged in float32.
        dim: The dimension to reduce, not negative.
        share: k_s or k_t in the paper, or k itself if above 1; None for only the largest value.
        valid: Boolean mask with as many dimensions as values, broadcastable to their shape; None if all are valid.
        longest: Maximum n for computing k; None sets no limit.

    Returns:
        Means, without ``dim``; 0 if no value is valid. Means are float64 for float64 values and float32 otherwise;
        without a mask, the maximum (k = 1) keeps its type.
    """
    xp = namespace_of(values)
    size = values.shape[dim]
    count = top_count(share, size, longest)
    if valid is None:
        if count == 1:
            return xp.max(values, axis=dim)
        if count == size:
            return mean_of_valid(values, dim=dim)
        if count * size <= _SELECTION_PASSES:
            # Insert each slice along ``dim`` into a sorted list of the largest; elementwise, so fast for few slices.
            best: list[AnyArray] = []
            for item in xp.moveaxis(values, dim, 0):
                for rank, value in enumerate(best):
                    best[rank] = xp.maximum(value, item)
                    if rank + 1 < count:
                        item = xp.minimum(value, item)
                if len(best) < count:
                    best.append(item)
            return mean_of_valid(xp.stack(best), dim=0)
        return mean_of_valid(_largest(values, count, dim, in_order=False), dim=dim)
    available = xp.sum(valid, axis=dim, keepdims=True)
    values = xp.where(valid, values, -math.inf)
    if share is None:
        largest = xp.max(values, axis=dim, keepdims=True)
        return _convert(xp.where(available > 0, largest, 0.0), _mean_type(values)).squeeze(dim)
    # Tabulate k for every number of valid values, to avoid a copy from the device.
    counts = [top_count(share, valid_count, longest) for valid_count in range(size + 1)]
    k = xp.asarray(counts, device=values.device)[available]
    rank = xp.arange(count, device=values.device).reshape([-1 if d == dim else 1 for d in range(values.ndim)])
    largest = _largest(values, count, dim, in_order=True)
    kept = xp.where((rank < k) & (available > 0), largest, 0.0)
    return xp.sum(kept, axis=dim, dtype=_mean_type(values)) / _convert(k.squeeze(dim), _mean_type(values))


def mean_of_valid(values: AnyArray, *, dim: int, valid: AnyArray | None = None) -> AnyArray:
    """Compute the mean of the valid values along ``dim``; 0 if there are none. Float64 for float64, else float32."""
    xp, kind = namespace_of(values), _mean_type(values)
    if valid is None:
        return xp.sum(values, axis=dim, dtype=kind) / values.shape[dim]
    total = xp.sum(xp.where(valid, values, 0.0), axis=dim, dtype=kind)
    return total / _convert(xp.clip(xp.sum(valid, axis=dim), 1, None), kind)


def _largest(values: AnyArray, count: int, dim: int, *, in_order: bool) -> AnyArray:
    """Return the ``count`` largest values along ``dim``, in descending order if ``in_order``; the array API has no such
    function."""
    if not isinstance(values, np.ndarray):
        return values.topk(count, dim=dim, sorted=in_order).values
    first = values.shape[dim] - count
    ordered = np.sort(values, axis=dim) if in_order else np.partition(values, first, axis=dim)
    largest = np.moveaxis(ordered, dim, 0)[first:]
    return np.moveaxis(largest[::-1] if in_order else largest, 0, dim)


def _mean_type(values: AnyArray) -> Any:
    xp = namespace_of(values)
    return xp.float64 if values.dtype == xp.float64 else xp.float32
