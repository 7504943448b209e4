"""From the regional descriptors of videos to one similarity per pair; all functions take NumPy arrays or torch
tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.frame_maps import (
    AnyArray,
    check_top_share,
    frame_similarity,
    frame_similarity_many,
    mean_of_largest,
    mean_of_valid,
    namespace_of,
    split_targets,
)

# Maps of several queries with all targets are computed together up to this size.
_MAP_BYTES = 128 << 20


def video_similarity(
    query: AnyArray,
    target: AnyArray,
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
    symmetric: bool = False,
    precision: Any = None,
    block_bytes: int | None = None,
) -> AnyArray:
    """Similarity of two videos: frame_similarity, then temporal_chamfer with the same ``symmetric``.

    Args:
        query: [Tq, Rq, D] descriptors.
        target: [Tt, Rt, D] descriptors.
        spatial_share, precision, block_bytes: As in frame_similarity.
        temporal_share: As in temporal_chamfer.

    Returns:
        A scalar array, in [-1, 1] for unit vectors, and 1 for a video with itself if both shares are None.

    Raises:
        InvalidArgumentError: frame_similarity or temporal_chamfer rejects an argument.
    """
    similarity = frame_similarity(
        query,
        target,
        spatial_share=spatial_share,
        symmetric=symmetric,
        precision=precision,
        block_bytes=block_bytes,
    )
    return temporal_chamfer(similarity, temporal_share=temporal_share, symmetric=symmetric)


def video_similarity_pairwise(
    queries: Sequence[AnyArray],
    targets: Sequence[AnyArray],
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
    symmetric: bool = False,
    precision: Any = None,
    block_bytes: int | None = None,
) -> AnyArray:
    """Similarity of every query with every target, [Q, G], for videos of any length.

    Args:
        queries: Q arrays [T_q, Rq, D].
        targets: G arrays [T_g, Rt, D].
        spatial_share, symmetric, precision, block_bytes: As in frame_similarity.
        temporal_share: As in temporal_chamfer; k follows each target's own length.

    Returns:
        [Q, G], each entry equal to video_similarity of its pair up to rounding; differentiable. Without gradients the
        maps of a few queries are held at a time: 128 MiB, or the maps of one query if they are larger.

    Raises:
        InvalidArgumentError: There are no queries or no targets, or frame_similarity rejects an argument.
    """
    if not queries:
        raise InvalidArgumentError("queries must not be empty")
    parts = split_targets(targets, None)
    target_lengths = [part.shape[0] for part in parts]
    most_frames = max(1, _MAP_BYTES // (4 * sum(target_lengths)))
    rows = []
    # Neighboring queries with the same regions, together no longer than ``most_frames`` if possible.
    groups: list[list[AnyArray]] = []
    size = 0
    for item in queries:
        if groups and size + item.shape[0] <= most_frames and item.shape[1:] == groups[-1][0].shape[1:]:
            groups[-1].append(item)
            size += item.shape[0]
        else:
            groups.append([item])
            size = item.shape[0]
    for group in groups:
        maps = frame_similarity_many(
            group[0] if len(group) == 1 else namespace_of(group[0]).concat(group),
            parts,
            spatial_share=spatial_share,
            symmetric=symmetric,
            precision=precision,
            block_bytes=block_bytes,
        )
        whole = namespace_of(maps[0]).concat(maps, axis=1)
        lengths = [query.shape[0] for query in group]
        rows.append(_pairwise_chamfer(whole, lengths, target_lengths, temporal_share, symmetric))
    return namespace_of(rows[0]).concat(rows)


def _pairwise_chamfer(
    whole: AnyArray,
    query_lengths: Sequence[int],
    target_lengths: Sequence[int],
    share: float | None,
    symmetric: bool,
) -> AnyArray:
    """Scores [Q, G] from the map [sum of query lengths, sum of target lengths]; pairs of equal lengths are batched."""
    xp = namespace_of(whole)
    query_kinds = _by_length(query_lengths, whole)
    target_kinds = _by_length(target_lengths, whole)
    rows = []
    for query_length, query_frames, _ in query_kinds:
        stripe = whole if len(query_kinds) == 1 else whole[query_frames]
        pieces = []
        for target_length, target_frames, _ in target_kinds:
            part = stripe if len(target_kinds) == 1 else stripe[:, target_frames]
            maps = part.reshape(-1, query_length, part.shape[1] // target_length, target_length)
            maps = xp.permute_dims(maps, (0, 2, 1, 3))
            pieces.append(temporal_chamfer(maps, temporal_share=share, symmetric=symmetric))
        rows.append(xp.concat(pieces, axis=1))
    order = [xp.argsort(xp.concat([items for _, _, items in kinds])) for kinds in (query_kinds, target_kinds)]
    return xp.concat(rows)[order[0]][:, order[1]]


def _by_length(lengths: Sequence[int], whole: AnyArray) -> list[tuple[int, AnyArray, AnyArray]]:
    """For each distinct length, the frames of its videos in the joined line, and the numbers of these videos; where
    ``whole`` is."""
    xp = namespace_of(whole)
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    groups = []
    for kind in dict.fromkeys(lengths):
        items = [number for number, length in enumerate(lengths) if length == kind]
        first = xp.asarray([starts[number] for number in items], device=whole.device)
        frames = (first[:, None] + xp.arange(kind, device=whole.device)).reshape(-1)
        groups.append((kind, frames, xp.asarray(items, device=whole.device)))
    return groups


def temporal_chamfer(
    similarity: AnyArray,
    *,
    temporal_share: float | None = None,
    symmetric: bool = False,
    query_mask: AnyArray | None = None,
    target_mask: AnyArray | None = None,
    longest: int | None = None,
) -> AnyArray:
    """Similarity of two videos from their map: for each query time the best target times, averaged.

    ``score = mean over query times x of the mean of the k largest of map[x, :]`` with ``k = max(1,
    round(temporal_share * T'))`` where T' is the number of *valid* target times, so that padding changes nothing.

    Args:
        similarity: [..., Tq, Tt] floating point; leading dimensions are a batch.
        temporal_share: The paper's k_t in [0, 1], or k itself if at least 2; None (default) is the plain Chamfer
            similarity, k = 1.
        symmetric: Average both directions; the share is the same and k counts the times of the searched side, so that
            a map and its transpose give the same number.
        query_mask: [..., Tq] boolean, True where a time is valid; None if all are.
        target_mask: [..., Tt] boolean, the same for the target. Without any valid time the score is 0.
        longest: Largest T' used to compute k, at least 1; None sets no limit. A clip contained in a long video fills
            few of its times, so a k that grows with the length of the video dilutes the match.

    Returns:
        [...] (a scalar array for one map), float64 for float64 maps and float32 otherwise; differentiable.

    Raises:
        InvalidArgumentError: The map is empty, masks have another shape, a share is outside [0, 1], or longest is
            below 1.

    Source: HAP-VR (ACM MM 2024), equation 5, with the factor 1/K of its equation 3.
    """
    check_top_share("temporal_share", temporal_share)
    xp = namespace_of(similarity)
    if similarity.ndim < 2 or not xp.isdtype(similarity.dtype, "real floating"):
        raise InvalidArgumentError(
            f"similarity must be [..., Tq, Tt] floating point, got {list(similarity.shape)} {similarity.dtype}"
        )
    if 0 in similarity.shape[-2:]:
        raise InvalidArgumentError(f"similarity must not be empty, got {list(similarity.shape)}")
    for name, mask, size in (("query_mask", query_mask, -2), ("target_mask", target_mask, -1)):
        expected = (*similarity.shape[:-2], similarity.shape[size])
        if mask is not None and (tuple(mask.shape) != expected or mask.dtype != xp.bool):
            raise InvalidArgumentError(f"{name} must be {list(expected)} boolean, got {list(mask.shape)} {mask.dtype}")
    if longest is not None and longest < 1:
        raise InvalidArgumentError(f"longest must be at least 1 or None, got {longest}")
    forward = _one_way(similarity, temporal_share, query_mask, target_mask, longest)
    if not symmetric:
        return forward
    return (forward + _one_way(similarity.mT, temporal_share, target_mask, query_mask, longest)) / 2


def length_mask(lengths: AnyArray, size: int) -> AnyArray:
    """Boolean [..., size], True below each of lengths [...]: the mask of padded videos."""
    return namespace_of(lengths).arange(size, device=lengths.device) < lengths[..., None]


def _one_way(
    similarity: AnyArray,
    share: float | None,
    query_mask: AnyArray | None,
    target_mask: AnyArray | None,
    longest: int | None,
) -> AnyArray:
    valid = None if target_mask is None else target_mask[..., None, :]
    best = mean_of_largest(similarity, dim=similarity.ndim - 1, share=share, valid=valid, longest=longest)
    return mean_of_valid(best, dim=best.ndim - 1, valid=query_mask)
