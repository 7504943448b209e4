"""Compute the features of a video as an index would store them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vidkin._base.arguments import check_arguments
from vidkin._base.blas import one_blas_thread
from vidkin._base.values import check_positive
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import describe_file, open_extractor
from vidkin.index.storage.records import sampling_rate
from vidkin.media import Time, open_probed, open_source
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Source


@check_arguments
@one_blas_thread()
def embed(
    source: Source,
    *,
    start: float | str | None = None,
    end: float | str | None = None,
    frame_rate: float | None = None,
    rate: float | None = None,
    extractor: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    whitening: str | os.PathLike[str] | None = None,
) -> FrameFeatures:
    """Extract features from the sampled frames of a video: one vector for each region of the whole frame.

    Args:
        source: A video or an image, see :data:`vidkin.media.Source`.
        start, end: Start and end of the clip to use, in seconds or as ``"1:02:03.5"``.
        frame_rate: Frames per second of an array or an iterator of frames.
        rate: Sampling rate in frames per second; default: 1, or more for short videos.
        extractor, weights, whitening: As in :func:`vidkin.features.open_extractor`.

    Returns:
        `vidkin.similarity.FrameFeatures`: ``values`` [T, 1, R, D], ``timestamps`` [T] in seconds, and ``information``
        [T] of each frame.

    Raises:
        MediaError: The video cannot be read, or has no frames in the clip.
        InvalidArgumentError: The source has an unsupported type, or ``end`` is not after ``start``.
    """
    first, last = (float(Time.parse(time)) if isinstance(time, str) else time for time in (start, end))
    first = first or 0.0
    if not (first >= 0 and (last is None or last > first)):
        raise InvalidArgumentError(f"end must be after start, and start at least 0 s, got {start} and {end}")
    if rate is not None:
        check_positive(rate=rate)
    maker = open_extractor(extractor, weights=weights, whitening=whitening)
    with open_source(source, frame_rate) as path, open_probed(path) as video:
        duration = video.info.duration
        length = (duration if last is None else min(last, duration)) - first
        found = describe_file(
            video, maker, duration=duration, rate=rate or sampling_rate(length), start=first, end=last
        )
        # Process batches one at a time, so that only one batch of frames is in memory.
        parts = list(found)
        if not parts:
            raise MediaError(path, f"it has no frames from {first:g} s to {'the end' if last is None else last}")
    return FrameFeatures.concatenate(parts)
