"""Which view of one video shows the other: maps of all view pairs in which one side is the whole picture.

Shapes: Tq, Tt frames; Vq, Vt views; R regions; D dimension; P pairs of views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vidkin.similarity.chamfer import frame_similarity_many
from vidkin.similarity.frame_features import FrameFeatures

__all__ = ["PairMaps", "pair_maps"]

# Similarity that two parts reach by chance, as the best of dozens of pairs of views counts.
_PART_FLOOR = 0.15


@dataclass(frozen=True, slots=True)
class PairMaps:
    """Calibrated maps of one pair of videos.

    Attributes:
        views: P pairs (view of the query, view of the target), the pair of whole pictures first.
        maps: [P, Tq, Tt] float32 in [0, 1].
    """

    views: tuple[tuple[int, int], ...]
    maps: torch.Tensor


def pair_maps(
    query: FrameFeatures, targets: Sequence[FrameFeatures], *, spatial_share: float | None = None
) -> list[PairMaps]:
    """Maps of every view of the query with the whole target, and of the whole query with every view of the target.

    Every map is calibrated by both sides' baselines in the compared views: ``clamp((s - b) / (1 - b), 0, 1)``
    with b the larger baseline. The best of many parts is similar by chance, so for parts b is raised by .15 (1 - b).

    Args:
        query: [Tq, Vq, R, D], features of the query.
        targets: Features of the targets, each [Tt, Vt, R, D].
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
    """
    if not targets:
        return []
    whole = _compare(query.values, [target.values[:, :1] for target in targets], spatial_share)
    parts: list[torch.Tensor | None] = [None] * len(targets)
    seen = [at for at, target in enumerate(targets) if target.values.shape[1] > 1]
    compared = _compare(query.values[:, :1], [targets[at].values[:, 1:] for at in seen], spatial_share)
    for at, similarities in zip(seen, compared, strict=True):
        parts[at] = similarities
    results = []
    for target, of_query, of_target in zip(targets, whole, parts, strict=True):
        raw = of_query[:, 0] if of_target is None else torch.cat([of_query[:, 0], of_target[0]])
        query_views, target_views = query.values.shape[1], target.values.shape[1]
        views = (
            *((view, 0) for view in range(query_views)),
            *((0, view) for view in range(1, target_views)),
        )
        first, second = (torch.tensor(side) for side in zip(*views, strict=True))
        baseline = torch.maximum(query.baselines.T[first, :, None], target.baselines.T[second, None, :])
        baseline[1:] += _PART_FLOOR * (1 - baseline[1:])
        results.append(PairMaps(views, ((raw - baseline) / (1 - baseline)).clamp(0, 1)))
    return results


def _compare(
    query: torch.Tensor, targets: Sequence[torch.Tensor], spatial_share: float | None
) -> list[torch.Tensor]:
    """Similarities [Vq, Vt, Tq, Tt] of every view [Tq, Vq, R, D] with every view [Tt, Vt, R, D]."""
    if not targets:
        return []
    rows = query.flatten(0, 1)
    columns = [target.to(query.dtype).flatten(0, 1) for target in targets]
    maps = frame_similarity_many(
        rows,
        columns,
        symmetric=True,
        spatial_share=spatial_share,
        query_mask=content(rows),
        target_masks=contents(columns),
    )
    return [
        raw.float().reshape(*query.shape[:2], *target.shape[:2]).permute(1, 3, 0, 2)
        for raw, target in zip(maps, targets, strict=True)
    ]


def content(values: torch.Tensor) -> torch.Tensor | None:
    """[T, R] True where a region is not empty; None if all are, which is faster to compare."""
    there = values.abs().amax(-1) > 0
    return None if bool(there.all()) else there


def contents(targets: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """The masks of :func:`content`; None if no target has an empty region."""
    masks = [content(values) for values in targets]
    if all(mask is None for mask in masks):
        return None
    return [
        torch.ones(values.shape[:2], dtype=torch.bool) if mask is None else mask
        for values, mask in zip(targets, masks, strict=True)
    ]
