"""Calibration: how similar unrelated frames are, and frame maps with that baseline removed.

Shapes: Tq, Tt frames of query and target; R regions; D dimension; N background frames.
"""

from __future__ import annotations

import math

import torch

from vidkin.similarity.chamfer import frame_similarity
from vidkin.similarity.copies.view_pairs import content

__all__ = ["background_baseline", "calibrated_map"]


def background_baseline(
    values: torch.Tensor, background: torch.Tensor, *, share: float = 0.9, spatial_share: float | None = None
) -> torch.Tensor:
    """How similar unrelated frames are to each frame, [T]: the ``share`` quantile over a background set.

    A quantile below one rather than the maximum, so that a few related frames in the background do no harm.

    Args:
        values: [T, R, D] descriptors of the frames.
        background: [N, R, D], background photographs (:func:`vidkin.features.background_frames`).
        share: Quantile in [0, 1].
        spatial_share: k_s, the same as in the comparison.
    """
    if len(values) == 0:
        return torch.zeros(0)
    if values.shape[1] == 1 and background.shape[1] == 1:
        # With one region this is a cosine. Most parts of the picture are not described, and zeros need no comparison.
        rows = values.flatten(1).abs().amax(1) > 0
        baseline = torch.zeros(len(values))
        cosines = values[rows].flatten(1).float() @ background.flatten(1).float().T
        baseline[rows] = _high_quantile(cosines, share).clamp(-1.0, 0.95)
        return baseline
    similarities = frame_similarity(
        values.float(),
        background.float(),
        symmetric=True,
        spatial_share=spatial_share,
        query_mask=content(values),
        target_mask=content(background),
    )
    return _high_quantile(similarities.float(), share).clamp(-1.0, 0.95)


def calibrated_map(
    similarities: torch.Tensor, query_baseline: torch.Tensor, target_baseline: torch.Tensor
) -> torch.Tensor:
    """Calibrated map [Tq, Tt]: ``clamp((s - b) / (1 - b), 0, 1)`` with b the larger of both frames' baselines.

    Equal frames stay at 1; frames no more similar than unrelated ones get 0.
    """
    floor = torch.maximum(query_baseline[:, None], target_baseline[None, :]).to(similarities)
    return ((similarities - floor) / (1 - floor)).clamp(0, 1)


def _high_quantile(values: torch.Tensor, share: float) -> torch.Tensor:
    """``torch.quantile(values, share, dim=1)`` of [T, N], faster for shares near 1: only the largest are sorted."""
    place = share * (values.shape[1] - 1)
    largest = values.topk(values.shape[1] - math.floor(place), dim=1).values
    below, above = largest[:, -1], largest[:, -2 if largest.shape[1] > 1 else -1]
    return torch.lerp(below, above, place - math.floor(place))
