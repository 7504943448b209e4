"""Frames of a video at even distances, as edits take them in."""

from __future__ import annotations

import os
from collections.abc import Iterator

from vidkin.media.decode import iter_frames
from vidkin.media.editing.picture_edits import Image, covering
from vidkin.media.probe import probe
from vidkin.media.time import is_before

__all__ = ["endless_frames", "steady_frames"]


def steady_frames(
    path: str | os.PathLike[str], start: float, step: float, count: int, short_side: int | None, threads: int
) -> Iterator[Image]:
    """Exactly ``count`` frames: those on screen at start + k step seconds, repeated where none is new."""
    index = 0
    shown: Image | None = None
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


def endless_frames(
    path: str | os.PathLike[str], rate: float, threads: int, width: int, height: int
) -> Iterator[Image]:
    """Frames of a video at this rate, filling this size, from the start again when it ends."""
    count = max(1, round(probe(path).duration * rate))
    while True:
        for image in steady_frames(path, 0.0, 1 / rate, count, None, threads):
            yield covering(image, width, height)
