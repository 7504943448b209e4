"""Find stretches of black in a video, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.media.frames import LUMINANCE, is_before
from vidkin.shots.contract import BlackStretch

# A frame is black if at most this share of its luma is brighter than a tenth of the way from black to white, the rule
# of broadcasters and FFmpeg's blackdetect. Samples of planes have the limited range of 16 to 235, images the full one.
_BRIGHT_SHARE, _NARROW, _FULL = 0.02, 38, 25
# Minimum duration of a stretch in seconds.
_MIN_LENGTH = 0.1


class BlackFrames:
    """Finds stretches of black in the frames pushed."""

    def __init__(self) -> None:
        self._black: list[NDArray[np.bool_]] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Take the next frames, sampled from their planes."""
        self._black.append((planes.luma > _NARROW).mean((1, 2)) <= _BRIGHT_SHARE)

    def push_images(self, images: NDArray[np.uint8]) -> None:
        """Take the next frames [T, H, W, 3] as RGB."""
        luma = images[:, ::4, ::4] @ np.array(LUMINANCE, np.float32)
        self._black.append((luma > _FULL).mean((1, 2)) <= _BRIGHT_SHARE)

    def finish(self, times: Sequence[float], *, first: int, end: float) -> tuple[BlackStretch, ...]:
        """The stretches of at least a tenth of a second.

        Args:
            times: Times in seconds of all frames of the video, including frames before the first one pushed.
            first: Number of the first frame pushed.
            end: Time at which the last frame leaves the screen.
        """
        black = np.concatenate([[False], *self._black, [False]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(black)) + first
        moments = [*times, end]
        return tuple(
            BlackStretch(start=moments[begin], end=moments[last], start_frame=begin, end_frame=last)
            for begin, last in edges.reshape(-1, 2).tolist()
            if not is_before(moments[last] - moments[begin], _MIN_LENGTH)
        )
