"""Chamfer similarity of full videos, for one pair or many-to-many, on NumPy arrays or torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import frame_similarity, frame_similarity_many, temporal_chamfer
from vidkin.similarity.frame_maps import AnyArray, namespace_of, split_targets

__all__ = ["video_similarity", "video_similarity_pairwise"]

# Maximum size of the similarity maps that are computed together, for several queries with all targets.
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
    """Compute the similarity of two videos: frame_similarity, then temporal_chamfer with the same ``symmetric``.

    Args:
        query: Features [Tq, Rq, D].
        target: Features [Tt, Rt, D].
        spatial_share, precision, block_bytes: As in frame_similarity.
        temporal_share: As in temporal_chamfer.

    Returns:
        A scalar array; for unit vectors it is in [-1, 1], and 1 for a video with itself if both shares are None.

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
    """Compute the similarity of every query with every target, [Q, G], for videos of any length.

    Args:
        queries: Q feature arrays [T_q, Rq, D].
        targets: G feature arrays [T_g, Rt, D].
        spatial_share, symmetric, precision, block_bytes: As in frame_similarity.
        temporal_share: As in temporal_chamfer; k depends on the length of each target.

    Returns:
        [Q, G], each entry equal to video_similarity of its pair up to rounding; differentiable. Without gradients, only
        the maps of a few queries are in memory at a time: 128 MiB, or the maps of one query if they are larger.

    Raises:
        InvalidArgumentError: There are no queries or no targets, or frame_similarity rejects an argument.
    """
    if not queries:
        raise InvalidArgumentError("queries must not be empty")
    parts = split_targets(targets, None)
    target_lengths = [part.shape[0] for part in parts]
    most_frames = max(1, _MAP_BYTES // (4 * sum(target_lengths)))
    rows = []
    # Group neighboring queries with the same number of regions, up to ``most_frames`` in total where possible.
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
    """Compute scores [Q, G] from the map [all query frames, all target frames], batching pairs of equal lengths."""
    xp = namespace_of(whole)
    query_kinds = _group_by_length(query_lengths, whole)
    target_kinds = _group_by_length(target_lengths, whole)
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


def _group_by_length(lengths: Sequence[int], whole: AnyArray) -> list[tuple[int, AnyArray, AnyArray]]:
    """Return, for each distinct length, the positions of its videos in the concatenated frames, and their indices."""
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
