"""Stretches of videos from which the views of one clip are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from vidkin.training.clips.squares import VideoSquares

__all__ = ["Window", "cut_windows", "split_windows"]


@dataclass(frozen=True, slots=True)
class Window:
    """Frames ``start`` to before ``stop`` of one video.

    Attributes:
        number: Number of this window among all; windows with different numbers are different clips.
        video: Number of the window's video.
        start: First frame.
        stop: First frame after the window.
    """

    number: int
    video: int
    start: int
    stop: int


def cut_windows(videos: Sequence[VideoSquares], frames: int) -> list[Window]:
    """Cut every video into equal stretches of about this many frames; a shorter video is one stretch."""
    windows: list[Window] = []
    for number, video in enumerate(videos):
        parts = max(1, round(video.count / frames))
        edges = [round(position * video.count / parts) for position in range(parts + 1)]
        for start, stop in pairwise(edges):
            windows.append(Window(len(windows), number, start, stop))
    return windows


def split_windows(
    windows: Sequence[Window], *, share: float, seed: int
) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """Divide windows into (training, validation); each video is entirely in one part.

    Args:
        windows: All windows.
        share: Share of the videos for validation, (0, 1).
        seed: Seed of the choice.

    Returns:
        All windows and none, if one part would have fewer than two videos.
    """
    videos = sorted({window.video for window in windows})
    count = round(share * len(videos))
    if min(count, len(videos) - count) < 2:
        return tuple(windows), ()
    order = torch.randperm(len(videos), generator=torch.Generator().manual_seed(seed))
    held = {videos[position] for position in order[:count].tolist()}
    return (
        tuple(window for window in windows if window.video not in held),
        tuple(window for window in windows if window.video in held),
    )
