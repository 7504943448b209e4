"""From the regional descriptors of videos to one similarity per pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.chamfer.frame_maps import frame_similarity, frame_similarity_many, split_targets
from vidkin.similarity.chamfer.temporal_chamfer import temporal_chamfer

__all__ = [
    "video_similarity",
    "video_similarity_pairwise",
]

# Maps of several queries with all targets are computed together up to this size.
_MAP_BYTES = 128 << 20


def video_similarity(
    query: torch.Tensor,
    target: torch.Tensor,
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
    symmetric: bool = False,
    precision: torch.dtype | None = None,
    block_bytes: int | None = None,
) -> torch.Tensor:
    """Similarity of two videos: frame_similarity, then temporal_chamfer with the same ``symmetric``.

    Args:
        query: [Tq, Rq, D] descriptors.
        target: [Tt, Rt, D] descriptors.
        spatial_share, precision, block_bytes: As in frame_similarity.
        temporal_share: As in temporal_chamfer.

    Returns:
        A scalar tensor, in [-1, 1] for unit vectors, and 1 for a video with itself if both shares are None.

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
    queries: Sequence[torch.Tensor],
    targets: Sequence[torch.Tensor],
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
    symmetric: bool = False,
    precision: torch.dtype | None = None,
    block_bytes: int | None = None,
) -> torch.Tensor:
    """Similarity of every query with every target, [Q, G], for videos of any length.

    Args:
        queries: Q tensors [T_q, Rq, D].
        targets: G tensors [T_g, Rt, D].
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
    groups: list[list[torch.Tensor]] = []
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
            group[0] if len(group) == 1 else torch.cat(group),
            parts,
            spatial_share=spatial_share,
            symmetric=symmetric,
            precision=precision,
            block_bytes=block_bytes,
        )
        lengths = [query.shape[0] for query in group]
        rows.append(
            _pairwise_chamfer(torch.cat(maps, dim=1), lengths, target_lengths, temporal_share, symmetric)
        )
    return torch.cat(rows)


def _pairwise_chamfer(
    whole: torch.Tensor,
    query_lengths: Sequence[int],
    target_lengths: Sequence[int],
    share: float | None,
    symmetric: bool,
) -> torch.Tensor:
    """Scores [Q, G] from the map [sum of query lengths, sum of target lengths]; pairs of equal lengths are batched."""
    query_kinds = _by_length(query_lengths, whole.device)
    target_kinds = _by_length(target_lengths, whole.device)
    rows = []
    for query_length, query_frames, _ in query_kinds:
        stripe = whole if len(query_kinds) == 1 else whole[query_frames]
        pieces = []
        for target_length, target_frames, _ in target_kinds:
            part = stripe if len(target_kinds) == 1 else stripe[:, target_frames]
            maps = part.reshape(-1, query_length, part.shape[1] // target_length, target_length).transpose(
                1, 2
            )
            pieces.append(temporal_chamfer(maps, temporal_share=share, symmetric=symmetric))
        rows.append(torch.cat(pieces, dim=1))
    order = [torch.cat([items for _, _, items in kinds]).argsort() for kinds in (query_kinds, target_kinds)]
    return torch.cat(rows)[order[0]][:, order[1]]


def _by_length(lengths: Sequence[int], device: torch.device) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
    """For each distinct length, the frames of its videos in the joined line, and the numbers of these videos."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    groups = []
    for kind in dict.fromkeys(lengths):
        items = [number for number, length in enumerate(lengths) if length == kind]
        first = torch.tensor([starts[number] for number in items])
        frames = (first[:, None] + torch.arange(kind)).flatten()
        groups.append((kind, frames.to(device), torch.tensor(items, device=device)))
    return groups
