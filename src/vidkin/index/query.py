"""From a file, a stretch of a file or a stored video to what the two stages of search work on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from vidkin.errors import MediaError
from vidkin.index.calibration import Calibration
from vidkin.index.common import CommonFrames
from vidkin.index.store import StoredFeatures
from vidkin.index.windows import query_rate
from vidkin.similarity import FrameSet

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor, FrameFeatures
    from vidkin.media import Frames

__all__ = ["Query", "frame_set", "query_from_file", "query_from_stored"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query in both views.

    Attributes:
        plain: The frames as they are.
        mirrored: The frames flipped left to right; None where that was not asked for or is not to be had.
    """

    plain: FrameSet
    mirrored: FrameSet | None = None


def query_from_file(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    calibration: Calibration,
    common: CommonFrames,
    *,
    rate: float,
    start: float | None = None,
    end: float | None = None,
    mirrored: bool = True,
) -> Query:
    """Decode and describe a query.

    Args:
        rate: Frames per second of a long video; shorter ones are sampled more densely (:func:`query_rate`).
        start, end: Stretch of the file, seconds; default whole.
        mirrored: Describe the mirror image as well, so that mirrored copies are found.

    Raises:
        MediaError: The file cannot be read, or nothing lies between start and end.
    """
    from vidkin.media import probe, read_frames

    first = start or 0.0
    if end is not None and end <= first:
        raise MediaError(
            path, f"the stretch from {first:g} s to {end:g} s is empty; give an end after the start"
        )
    duration = (probe(path).duration if end is None else end) - first
    frames = read_frames(
        path,
        rate=query_rate(duration, rate),
        start=first,
        end=end,
        short_side=extractor.short_side,
    )
    if len(frames) == 0:
        raise MediaError(
            path, f"there is no frame from {first:g} s to {end if end is not None else 'the end'}"
        )
    return Query(
        _described(frames, extractor, calibration, common, mirror=False),
        _described(frames, extractor, calibration, common, mirror=True) if mirrored else None,
    )


def query_from_stored(features: StoredFeatures, common: CommonFrames) -> Query:
    """A video of the collection as the query; its mirror image is not to be had without decoding."""
    return Query(frame_set(features, common))


def frame_set(features: StoredFeatures, common: CommonFrames) -> FrameSet:
    """Stored features with their weights: information, less what the whole collection shares."""
    values = features.values.float()
    weights = features.information * (1.0 - common.share(values))
    return FrameSet(values, features.timestamps, weights, features.baseline)


def _described(
    frames: Frames, extractor: FrameExtractor, calibration: Calibration, common: CommonFrames, *, mirror: bool
) -> FrameSet:
    found: FrameFeatures = extractor.extract(frames, mirror=mirror)
    # Rounded as the store rounds, so that a video is exactly as similar to itself as to its stored form.
    values = found.values.half().float()
    stored = StoredFeatures(
        values.half(),
        torch.from_numpy(np.asarray(frames.timestamps, dtype=np.float64).copy()),
        found.information.float(),
        calibration.baseline(values),
    )
    return frame_set(stored, common)
