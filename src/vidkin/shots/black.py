"""Find runs of black frames in a video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.media.frames import LUMINANCE, is_before
from vidkin.shots.contract import BlackStretch

# A frame is black if at most this fraction of its luma samples is brighter than a tenth of the way from black to white,
# which is the rule of broadcasters and FFmpeg's blackdetect. Planes have limited range (16 to 235), images full range.
_BRIGHT_SHARE, _NARROW, _FULL = 0.02, 38, 25
# Minimum duration of a run of black frames in seconds.
_MIN_LENGTH = 0.1


class BlackFrames:
    """Finds runs of black frames in the frames pushed."""

    def __init__(self) -> None:
        self._black: list[NDArray[np.bool_]] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames, given as samples of their planes."""
        self._black.append((planes.luma > _NARROW).mean((1, 2)) <= _BRIGHT_SHARE)

    def push_images(self, images: NDArray[np.uint8]) -> None:
        """Process the next frames, given as RGB images [T, H, W, 3]."""
        luma = images[:, ::4, ::4] @ np.array(LUMINANCE, np.float32)
        self._black.append((luma > _FULL).mean((1, 2)) <= _BRIGHT_SHARE)

    def finish(self, times: Sequence[float], *, first: int, end: float) -> tuple[BlackStretch, ...]:
        """Return the runs of black frames that last at least a tenth of a second.

        Args:
            times: Times of all frames of the video in seconds, including frames before the first one pushed.
            first: Number of the first frame pushed.
            end: End time of the last frame in seconds.
        """
        black = np.concatenate([[False], *self._black, [False]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(black)) + first
        moments = [*times, end]
        return tuple(
            BlackStretch(start=moments[begin], end=moments[last], start_frame=begin, end_frame=last)
            for begin, last in edges.reshape(-1, 2).tolist()
            if not is_before(moments[last] - moments[begin], _MIN_LENGTH)
        )
