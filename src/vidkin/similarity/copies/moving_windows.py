"""A window that moves over the picture: the column (or row) that each frame of the other video shows.

A reframe for an upright screen follows the action: its window is in one place in one second and elsewhere in the next.
No single view shows it, but views of one size that lie side by side show it in turn.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn import functional

from vidkin.similarity.frame_features import FrameFeatures

__all__ = ["follow_window", "side_by_side"]

# Least number of views of one size for a window to move over.
_FEWEST_PLACES = 4
# Tolerance in shares of the picture: boxes that differ by less have the same size and position.
_SAME = 0.02
# Seconds over which a place of the window is averaged: it moves steadily.
_STEADY = 2.0


def side_by_side(features: FrameFeatures) -> list[list[int]]:
    """Views of one size that span the whole height or the whole width: each list holds the places of one window."""
    described = features.described_parts.nonzero()[:, 0]
    if features.boxes is None or len(described) == 0:
        return []
    boxes = features.boxes[described[0]].float()
    whole, corners, sizes = boxes[0], boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    groups: dict[tuple[int, int], list[int]] = {}
    for axis in (0, 1):
        across = 1 - axis
        full = (corners[:, across] - whole[across]).abs() < _SAME
        full &= (boxes[:, across + 2] - whole[across + 2]).abs() < _SAME
        full &= (sizes[:, axis] > 0) & (sizes[:, axis] < sizes[0, axis] - _SAME)
        for view in full.nonzero()[:, 0].tolist():
            groups.setdefault((axis, round(float(sizes[view, axis]) / _SAME)), []).append(view)
    return [views for views in groups.values() if len(views) >= _FEWEST_PLACES]


def follow_window(
    features: FrameFeatures, views: list[int], maps: torch.Tensor
) -> tuple[FrameFeatures, torch.Tensor]:
    """Features of the window in the place that each frame shows best, and their map.

    Args:
        features: T frames of the video with the whole picture.
        views: The P places of the window, from :func:`side_by_side`.
        maps: [P, T, To] similarity of each place to the To frames of the other video.

    Returns:
        Features with a single view, and its map [T, To].
    """
    strength = maps.amax(2)
    width = 2 * round(_STEADY / 2 / features.period) + 1
    if len(features) > width > 1:
        strength = functional.avg_pool1d(strength, width, 1, width // 2, count_include_pad=False)
    place = strength.argmax(0)
    rows = torch.arange(len(features))
    view = torch.tensor(views)[place]
    window = replace(
        features,
        values=features.values[rows, view][:, None],
        boxes=None if features.boxes is None else features.boxes[rows, view][:, None],
        baseline=None if features.baseline is None else features.baseline[rows, view][:, None],
    )
    return window, maps[place, rows]
