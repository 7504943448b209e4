"""Videos of an index as queries: read again as densely as a query if that is denser than the stored features."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from dataclasses import dataclass, field

from vidkin.errors import MediaError
from vidkin.features import FrameExtractor, describe_file
from vidkin.index.records import VideoRecord, to_stored
from vidkin.index.sampling_rate import query_rate, sampling_rate
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.query import Query, describe_query, weigh_features
from vidkin.index.storage.contract import VectorStore
from vidkin.similarity import FrameFeatures

__all__ = ["Readings"]

_logger = logging.getLogger(__name__)
# Number of videos whose fine features are cached: pairs are compared in the order of their first video.
_MOST_HELD = 48
# Frames per second that are enough to hit a picture taken while the camera moved.
_STRETCH_RATE = 10.0
# Number of flipped frames used to find candidates for mirrored copies.
_FLIPPED_FRAMES = 16


@dataclass(slots=True)
class Readings:
    """Reads the videos of one index from their files.

    Attributes:
        store, extractor, calibration, common: Parts of the index.
        rate: Frames per second at which the index samples long videos.
    """

    store: VectorStore
    extractor: FrameExtractor
    calibration: Calibration
    common: CommonFrames
    rate: float
    _held: OrderedDict[tuple[int, bool], Query] = field(default_factory=OrderedDict, init=False)

    def is_stored_as_finely(self, record: VideoRecord) -> bool:
        """Whether the stored features are as dense as a query's, so that reading the file adds nothing."""
        return query_rate(record.duration, self.rate) <= sampling_rate(record.duration, self.rate)

    def finest(self, record: VideoRecord, *, mirrored: bool = False) -> Query:
        """Make the densest possible query of a video.

        Args:
            record: Record in the index.
            mirrored: Describe the mirror image as well, which requires reading the file.

        Returns:
            The stored features if they are as dense, or if the file is gone, changed or broken.
        """
        if self.is_stored_as_finely(record) and not mirrored:
            return self._stored(record)
        key = (record.id, mirrored)
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        query = None
        if _is_unchanged(record):
            parts = (self.extractor, self.calibration, self.common)
            try:
                query = describe_query(record.path, *parts, rate=self.rate, mirrored=mirrored)
            except MediaError as error:
                _logger.warning("%s; it is compared by what the index holds of it", error)
        if query is None:
            query = self._stored(record)
        self._held[key] = query
        if len(self._held) > _MOST_HELD:
            self._held.popitem(last=False)
        return query

    def flipped(self, record: VideoRecord) -> FrameFeatures | None:
        """Features of about 16 frames flipped left to right; None if the file is gone, changed or broken."""
        if not _is_unchanged(record):
            return None
        rate = sampling_rate(record.duration, self.rate)
        if record.duration > 0:
            rate = min(rate, _FLIPPED_FRAMES / record.duration)
        try:
            parts = [
                stretch[0]
                for stretch in describe_file(
                    record.path, self.extractor, duration=record.duration, rate=rate, mirrors=(True,)
                )
            ]
        except MediaError as error:
            _logger.warning("%s; it is not searched for mirrored copies", error)
            return None
        if not parts:
            return None
        described = self.calibration.calibrate(to_stored(FrameFeatures.concatenate(parts)))
        return weigh_features(described, self.common, record.duration)

    def stretch(self, record: VideoRecord, start: float, end: float) -> FrameFeatures | None:
        """Features of a stretch at ten frames per second; None if the file is gone, changed or has no frames there."""
        if not _is_unchanged(record):
            return None
        parts = (self.extractor, self.calibration, self.common)
        try:
            query = describe_query(
                record.path, *parts, rate=_STRETCH_RATE, start=start, end=end, mirrored=False
            )
        except MediaError as error:
            _logger.debug("%s", error)
            return None
        return query.plain

    def _stored(self, record: VideoRecord) -> Query:
        return Query(weigh_features(self.store.read(record.id), self.common, record.duration))


def _is_unchanged(record: VideoRecord) -> bool:
    try:
        status = os.stat(record.path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns)
