"""Queries: features of a file, of a stretch of a file or of a stored video, ready for both stages of search."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import FrameExtractor, Phase, describe_file
from vidkin.features.describe import HANG_TIMEOUT
from vidkin.index.records import describe_cut_off, to_stored
from vidkin.index.sampling_rate import query_rate, sampling_rate
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.watching import HangError, run_watched
from vidkin.media import open_probed
from vidkin.similarity import FrameFeatures, scorer_of

__all__ = ["Query", "describe_query", "query_from_stored", "weigh_features"]

_logger = logging.getLogger(__name__)
# A query has several frames per second, to find where a match begins; parts of the picture need fewer.
_PARTS_A_SECOND = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    """Features of a query, as it is and flipped.

    Attributes:
        plain: The frames as they are.
        mirrored: The frames flipped left to right; None if not requested or impossible.
    """

    plain: FrameFeatures
    mirrored: FrameFeatures | None = None


def describe_query(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    calibration: Calibration,
    common: CommonFrames,
    *,
    rate: float,
    start: float | None = None,
    end: float | None = None,
    mirrored: bool = True,
    hang_timeout: float = HANG_TIMEOUT,
) -> Query:
    """Decode a query and extract its features.

    Args:
        path: A video or an image.
        extractor, calibration, common: Extractor, calibration and common frames of the index.
        rate: Frames per second of a long video; shorter ones are sampled more densely (:func:`query_rate`; if the
            scorer has no segments, as densely as a video of the index).
        start, end: Stretch of the file, seconds; default whole.
        mirrored: Describe the mirror image as well, so that mirrored copies are found; ignored if the scorer has
            no segments.
        hang_timeout: Seconds without progress after which the decoder counts as hung, five times as many for the
            extractor.

    Raises:
        MediaError: The file cannot be read, has no frame between start and end, or makes its decoder hang.
        InvalidArgumentError: ``end`` is not after ``start``.
    """
    first = start or 0.0
    if end is not None and end <= first:
        raise InvalidArgumentError(f"end must be after start, {first:g} s, got {end:g} s")

    def read(beat: Callable[[Phase], None]) -> Query:
        parts, last = _read(path, extractor, rate, first, end, mirrored, beat)
        described = (to_stored(FrameFeatures.concatenate(stretch)) for stretch in zip(*parts, strict=True))
        return Query(*(weigh_features(calibration.calibrate(view), common, last) for view in described))

    try:
        return run_watched(read, hang_timeout=hang_timeout)
    except HangError as error:
        raise MediaError(path, str(error), temporary=True) from error


def _read(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    rate: float,
    first: float,
    end: float | None,
    mirrored: bool,
    beat: Callable[[Phase], None],
) -> tuple[list[tuple[FrameFeatures, ...]], float]:
    """Features of all stretches of the query, at least one, and the time at which the last one ends, seconds."""
    with open_probed(path, on_read=lambda: beat("decoding")) as video:
        info = video.info
        if info.cut_off:
            _logger.warning("%s: %s", os.fspath(path), describe_cut_off(info))
        copies = scorer_of(extractor).has_segments
        last = info.duration if end is None else min(end, info.duration) if info.duration > 0 else end
        parts = list(
            describe_file(
                video,
                extractor,
                duration=info.duration,
                rate=query_rate(last - first, rate) if copies else sampling_rate(last - first, rate),
                start=first,
                end=end,
                # For kinds, the mirror image is another view of the same thing, not an edit.
                mirrors=(False, True) if mirrored and copies else (False,),
                views=extractor.views != "none",
                part_rate=_PARTS_A_SECOND,
                beat=beat,
            )
        )
    if not parts:
        stop = "the end" if end is None else f"{end:g} s"
        raise MediaError(path, f"there is no frame from {first:g} s to {stop}")
    return parts, last


def query_from_stored(features: FrameFeatures, common: CommonFrames) -> Query:
    """Make a query from stored features; a mirror image would need decoding."""
    return Query(weigh_features(features, common))


def weigh_features(features: FrameFeatures, common: CommonFrames, end: float = 0.0) -> FrameFeatures:
    """Prepare stored features for scoring: frames common to many videos of the index count less.

    Args:
        features: Features as stored.
        common: Common frames of the index.
        end: Time at which the video (or the stretch of it) ends according to its container, seconds; 0 if unknown.

    Returns:
        Values in single precision; the information of each frame is multiplied by one minus its commonness.
    """
    values = features.values.float()
    return replace(
        features,
        values=values,
        information=features.information * (1.0 - common.share(values[:, 0])),
        # A container may state a wrong end; no existing frame is beyond the end.
        end=max(end, float(features.timestamps[-1])) if end > 0 else None,
    )
