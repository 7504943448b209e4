"""What the searches of one index share: loaded once, and kept until the index changes."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from vidkin.errors import MediaError
from vidkin.features import FrameExtractor, describe_file
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.common import CommonFrames, find_common
from vidkin.index.query.query import Query, describe_query, weigh_features
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord, query_rate, sampling_rate, to_stored
from vidkin.similarity import LEARNED, FrameFeatures, Scorer, fingerprint_of_scores, open_scorer, scorer_of
from vidkin.similarity.reviewed import MEASURE_FILE, ReviewedScorer, ReviewMeasure

__all__ = ["Readings", "SearchParts"]

_logger = logging.getLogger(__name__)


class SearchParts:
    """Extractor, calibration, common frames and scorer of an index, each opened when it is first needed.

    Args:
        place: Place of the index.
        manifest: Manifest of the index.
        store: Records, features and windows.
        open_extractor: Opens the extractor; called on first use, as duplicates and recall need none.

    Attributes:
        common: Frames that many videos of the index share, as of the last :meth:`refresh`.
    """

    def __init__(
        self,
        place: Place,
        manifest: Manifest,
        store: VectorStore,
        open_extractor: Callable[[], FrameExtractor],
    ) -> None:
        self.common = CommonFrames()
        self._place = place
        self._manifest = manifest
        self._store = store
        self._open_extractor = open_extractor
        self._extractor: FrameExtractor | None = None
        self._calibration: Calibration | None = None
        self._scorer: Scorer | None = None
        self._versions: dict[str, Hashable | None] = {}

    @property
    def extractor(self) -> FrameExtractor:
        """What makes the features."""
        if self._extractor is None:
            self._extractor = self._open_extractor()
        return self._extractor

    @property
    def calibration(self) -> Calibration:
        """Baselines for the features of the extractor."""
        if self._calibration is None:
            self._calibration = Calibration.open(self._place, self.extractor)
        return self._calibration

    @property
    def scorer(self) -> Scorer:
        """What turns two videos into a score."""
        if self._scorer is None:
            # A learned scorer is part of the model; any other is known without opening the extractor.
            is_learned = self._manifest.measure == LEARNED
            self._scorer = scorer_of(self.extractor) if is_learned else open_scorer(self._manifest.measure)
            if self._manifest.reviewed:
                measure = ReviewMeasure.read(self._place.address(MEASURE_FILE))
                self._scorer = ReviewedScorer(self._scorer, measure)
        return self._scorer

    @property
    def of_queries(self) -> tuple[FrameExtractor, Calibration, CommonFrames]:
        """What :func:`~vidkin.index.query.query.describe_query` needs besides the file."""
        return self.extractor, self.calibration, self.common

    def readings(self) -> Readings:
        """Reads videos of the index again, as finely as queries."""
        return Readings(self._store, *self.of_queries, self._manifest.sampling_rate)

    def state_of_scores(self) -> str:
        """Identifies what the score of two videos of the index depends on besides the two files."""
        digest = hashlib.sha256(fingerprint_of_scores(self._manifest.fingerprint, self.scorer).encode())
        digest.update(repr(self._manifest.sampling_rate).encode())
        digest.update(self.common.vectors.numpy().tobytes())
        return digest.hexdigest()[:16]

    def refresh(self) -> bool:
        """Load what other processes have written since; True if there is something new."""
        if self._has_changed(CommonFrames.FILE):
            self.common = CommonFrames.open(self._place)
        if self._has_changed(MEASURE_FILE):
            self._scorer = None
        return self._store.refresh()

    def records(self) -> list[VideoRecord]:
        """All records of the index; warns of those that no search finds until their files are read again."""
        records = self._store.videos()
        stale = [record.path for record in records if record.needs_reindex]
        if stale:
            _logger.warning(
                "%d videos are left out until they are indexed again, the first is %s (`vidkin info --videos` lists "
                "them)",
                len(stale),
                stale[0],
            )
        return records

    def update_common(self, paths: Sequence[str]) -> None:
        """Find frames that these new videos share with many others; the caller holds the writer's lock."""
        if not paths or not self.scorer.has_segments:
            return  # what many videos share is exactly what makes them the same kind
        ids = [record.id for path in paths if (record := self._store.find(path)) is not None]
        vectors = find_common(self._store, ids)
        if len(vectors):
            CommonFrames.open(self._place).merge(vectors).save(self._place)

    def _has_changed(self, name: str) -> bool:
        """Whether a file of the index was written or removed since the last call."""
        version = self._place.version(name)
        changed = version != self._versions.get(name)
        self._versions[name] = version
        return changed


# Videos of an index as queries: read again as densely as a query if that is denser than the stored features.


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
