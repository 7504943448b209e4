"""From a file, a stretch of a file or a stored video to what the two stages of search work on."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.ingest.worker import cut_off_note
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.storage.contract import StoredFeatures
from vidkin.index.windows import query_rate, sampling_rate
from vidkin.similarity import FrameFeatures, open_scorer

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor

__all__ = ["Query", "frame_set", "query_from_file", "query_from_stored"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Query:
    """A query in both views.

    Attributes:
        plain: The frames as they are.
        mirrored: The frames flipped left to right; None where that was not asked for or is not to be had.
    """

    plain: FrameFeatures
    mirrored: FrameFeatures | None = None


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
        rate: Frames per second of a long video; shorter ones are sampled more densely (:func:`query_rate`; to a
            measure of kinds as densely as what is stored).
        start, end: Stretch of the file, seconds; default whole.
        mirrored: Describe the mirror image as well, so that mirrored copies are found; not for a measure of kinds.

    Raises:
        MediaError: The file cannot be read, or has no frame between start and end.
        InvalidArgumentError: The end is not after the start.
    """
    from vidkin.features import describe_file
    from vidkin.media import probe

    first = start or 0.0
    if end is not None and end <= first:
        raise InvalidArgumentError(
            f"the stretch from {first:g} s to {end:g} s of {os.fspath(path)} is empty; give an end after the start"
        )
    info = probe(path)
    duration = info.duration
    if info.cut_off:
        _logger.warning("%s: %s", os.fspath(path), cut_off_note(info))
    kinds = not open_scorer(extractor.scorer).has_segments
    last = duration if end is None else min(end, duration) if duration > 0 else end
    length = last - first
    # To a measure of kinds the mirror image is another view of the same thing, not an edit to be undone.
    mirrors = (False, True) if mirrored and not kinds else (False,)
    parts = list(
        describe_file(
            path,
            extractor,
            duration=duration,
            rate=sampling_rate(length, rate) if kinds else query_rate(length, rate),
            start=first,
            end=end,
            mirrors=mirrors,
        )
    )
    if not parts:
        stop = end if end is not None else "the end"
        raise MediaError(path, f"there is no frame from {first:g} s to {stop}")
    described = (FrameFeatures.concatenate(stretch) for stretch in zip(*parts, strict=True))
    return Query(*(_prepared(features, calibration, common, last) for features in described))


def query_from_stored(features: StoredFeatures, common: CommonFrames) -> Query:
    """A video of the collection as the query; its mirror image is not to be had without decoding."""
    return Query(frame_set(features, common))


def frame_set(features: StoredFeatures, common: CommonFrames, end: float = 0.0) -> FrameFeatures:
    """Stored features with their weights: information, less what the whole collection shares.

    Args:
        end: Second at which the video (or the stretch of it) ends, as its container says; 0 for unknown.
    """
    values, times = features.values.float(), features.timestamps
    weights = features.information * (1.0 - common.share(values))
    # A container may be wrong about its end; a frame that is there is not beyond it.
    known = max(end, float(times[-1])) if end > 0 else None
    return FrameFeatures.of_whole(values, times, weights, baseline=features.baseline, end=known)


def _prepared(
    found: FrameFeatures, calibration: Calibration, common: CommonFrames, end: float
) -> FrameFeatures:
    # Rounded as the store rounds, so that a video is exactly as similar to itself as to its stored form.
    values = found.whole.half().float()
    stored = StoredFeatures(
        values.half(),
        found.timestamps.double(),
        found.information.float(),
        calibration.baseline(values),
    )
    return frame_set(stored, common, end)
