"""Frames of a video at regular intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.media.decode import iter_frames
from vidkin.media.frames import is_before


@check_arguments
def steady_frames(
    path: PathLike, start: float, step: float, count: int, short_side: int | None, threads: int
) -> Iterator[NDArray[np.uint8]]:
    """Yield exactly ``count`` frames: the frame on screen at each start + k * step seconds, repeated if it stays."""
    index = 0
    shown: NDArray[np.uint8] | None = None
    end = start + (count - 0.5) * step
    for piece in iter_frames(
        path, rate=1 / step, start=start, end=end, short_side=short_side, batch=8, threads=threads
    ):
        for image, time in zip(piece.images, piece.timestamps, strict=True):
            while shown is not None and is_before(start + index * step, time):
                yield shown
                index += 1
            shown = image
    while shown is not None and index < count:
        yield shown
        index += 1
