"""The score of a learned measure: graded, without a demand for evidence of a copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from vidkin.similarity.chamfer import frame_similarity_many
from vidkin.similarity.frame_set import FrameSet, PairScore

__all__ = ["score_kinds"]


def score_kinds(query: FrameSet, targets: Sequence[FrameSet]) -> list[PairScore]:
    """How alike two videos are to a measure that was trained to order: the same, the same kind, something else.

    With unit descriptors the map is ``m = (1 + cos) / 2 = 1 - d^2 / 4``, d the Euclidean distance that the measure was
    trained on. The side with fewer descriptors asks the other: ``score = weighted mean over its frames of the largest
    m with any frame of the other``, with the frames' weights; where both have as many it is the mean of both
    directions. So a clip finds itself in a long video, and either of two videos may be the query.

    Nothing is subtracted for what unrelated videos have in common: scores order the videos of a collection, and their
    scale is the measure's own.

    Args:
        query: Tq frames [Tq, R, D] with their weights.
        targets: Any lengths.

    Returns:
        One PairScore for each target, in their order; score in [0, 1], map [Tq, Tt], no segments.
    """
    if not targets:
        return []
    maps = frame_similarity_many(
        query.values, [target.values.to(query.values.dtype) for target in targets], symmetric=True
    )
    scores = []
    for target, raw in zip(targets, maps, strict=True):
        frame_map = ((1 + raw.float()) / 2).clamp(0, 1)
        asked = _mean(frame_map.amax(1), query.weights)
        answered = _mean(frame_map.amax(0), target.weights)
        score = asked if len(query) < len(target) else answered
        if len(query) == len(target):
            score = (asked + answered) / 2
        scores.append(PairScore(min(1.0, max(0.0, score)), (), frame_map))
    return scores


def _mean(values: torch.Tensor, weights: torch.Tensor) -> float:
    """Weighted mean; the plain one where nothing has any weight."""
    weights = weights.double()
    total = float(weights.sum())
    if total <= 0:
        return float(values.double().mean())
    return float((values.double() * weights).sum()) / total
