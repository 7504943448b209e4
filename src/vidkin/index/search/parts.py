"""What the searches of one index share: loaded once, and kept until the index changes."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Hashable, Sequence

from vidkin.features import FrameExtractor
from vidkin.index.manifest import Manifest
from vidkin.index.records import VideoRecord
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames, find_common
from vidkin.index.search.queries.readings import Readings
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.places.contract import Place
from vidkin.similarity import LEARNED, Scorer, fingerprint_of_scores, open_scorer, scorer_of
from vidkin.similarity.reviewed import MEASURE_FILE, ReviewedScorer, ReviewMeasure

__all__ = ["SearchParts"]

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
        """What :func:`~vidkin.index.search.queries.query.describe_query` needs besides the file."""
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
