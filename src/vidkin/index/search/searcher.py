"""Searches of one index: shared parts are loaded once and kept until the index changes."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from vidkin.errors import CollectionMismatchError, InvalidArgumentError, NotIndexedError
from vidkin.features import FrameExtractor
from vidkin.index.decisions import Decisions
from vidkin.index.duplicates.comparisons import Comparisons
from vidkin.index.duplicates.files import present_files
from vidkin.index.duplicates.find import find_duplicates
from vidkin.index.duplicates.groups import DuplicateGroup
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.ingest.files.content import content_hash, has_same_bytes
from vidkin.index.ingest.files.scan import is_gone
from vidkin.index.manifest import Manifest
from vidkin.index.records import VideoRecord
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames, find_common
from vidkin.index.search.match import Comparison, Match
from vidkin.index.search.pairs import compare_pair
from vidkin.index.search.queries.frame_queries import QuerySource, query_file
from vidkin.index.search.queries.query import Query, describe_query
from vidkin.index.search.queries.readings import Readings
from vidkin.index.search.stage_recall import RecallReport, measure_recall
from vidkin.index.search.stages import Ranker, find_matches, put_identical_first
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.lookup import find_records
from vidkin.index.storage.places.contract import Place
from vidkin.similarity import LEARNED, Scorer, open_scorer, scorer_of
from vidkin.similarity.reviewed import MEASURE_FILE, ReviewedScorer, ReviewMeasure

__all__ = ["Searcher"]

_logger = logging.getLogger(__name__)
# Attempts at a search whose candidates are removed meanwhile.
_MOST_SEARCHES = 5
# Version of stored comparisons: raise it when the same pair would get another score, doubt or missing part.
_REVISION = 4

PathLike = str | os.PathLike[str]


class Searcher:
    """Search, comparison, duplicates and recall; see the methods of the same names of :class:`vidkin.Index`.

    Args:
        place: Place of the index.
        manifest: Manifest of the index.
        store: Records, features and windows.
        open_extractor: Opens the extractor; called on first use, as duplicates and recall need none.

    Attributes:
        ranker: Scores the candidates of searches; None scores them in this process.
    """

    def __init__(
        self,
        place: Place,
        manifest: Manifest,
        store: VectorStore,
        open_extractor: Callable[[], FrameExtractor],
    ) -> None:
        self.ranker: Ranker | None = None
        self._place = place
        self._manifest = manifest
        self._store = store
        self._open_extractor = open_extractor
        self._extractor: FrameExtractor | None = None
        self._calibration: Calibration | None = None
        self._common = CommonFrames()
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

    def refresh(self) -> bool:
        """Load what other processes have written since; True if there is something new."""
        if self._has_changed(CommonFrames.FILE):
            self._common = CommonFrames.open(self._place)
        if self._has_changed(MEASURE_FILE):
            self._scorer = None
        return self._store.refresh()

    def _has_changed(self, name: str) -> bool:
        """Whether a file of the index was written or removed since the last call."""
        version = self._place.version(name)
        changed = version != self._versions.get(name)
        self._versions[name] = version
        return changed

    def search(
        self,
        query: QuerySource,
        *,
        start: float | None,
        end: float | None,
        frame_rate: float | None,
        limit: int,
        offset: int,
        threshold: float,
        mirrored: bool,
        candidates: int,
    ) -> list[Match]:
        """See :meth:`vidkin.Index.search`."""
        if offset < 0:
            raise InvalidArgumentError(f"offset must be at least 0, got {offset}")
        with query_file(query, frame_rate) as path:
            matches = self._search_file(
                path,
                start,
                end,
                limit=limit + offset if limit > 0 else limit,
                threshold=threshold,
                mirrored=mirrored,
                candidates=candidates,
            )
        return [replace(match, missing=is_gone(match.path)) for match in matches[offset:]]

    def _search_file(
        self,
        path: PathLike,
        start: float | None,
        end: float | None,
        *,
        limit: int,
        threshold: float,
        mirrored: bool,
        candidates: int,
    ) -> list[Match]:
        self.refresh()
        query = self._describe(path, start, end, mirrored)
        for attempt in range(_MOST_SEARCHES):
            try:
                matches = find_matches(
                    self._store,
                    query,
                    self._common,
                    self.scorer,
                    limit=limit,
                    threshold=threshold,
                    candidates=candidates,
                    read=self._readings().stretch,
                    rank=self.ranker,
                )
                break
            except NotIndexedError:
                # A candidate was removed by another process: search again for what takes its place.
                if attempt == _MOST_SEARCHES - 1:
                    raise
                self._store.refresh()
        records = self._store.videos()
        _warn_of_stale(records)
        if start is None and end is None:
            matches = put_identical_first(matches, _identical(records, path), limit)
        return matches

    def match(
        self, path: PathLike, target: PathLike, *, start: float | None, end: float | None, mirrored: bool
    ) -> Comparison:
        """See :meth:`vidkin.Index.match`."""
        self.refresh()
        record = find_records(self._store, target)[0]
        query = self._describe(path, start, end, mirrored)
        readings = self._readings()
        again = mirrored and not readings.is_stored_as_finely(record)
        return compare_pair(query, readings.finest(record, mirrored=again), self.scorer)

    def duplicates(
        self,
        *,
        threshold: float,
        parts: bool,
        mirrored: bool,
        keep: str,
        on_progress: Callable[[int, int], None] | None,
    ) -> list[DuplicateGroup]:
        """See :meth:`vidkin.Index.duplicates`."""
        if not self.scorer.has_segments:
            raise CollectionMismatchError(
                f"{self._place.uri} was made with {self._manifest.extractor}, whose scores order kinds of videos and "
                "do not tell copies from what is merely similar; make another index with --extractor classical"
            )
        self.refresh()
        records = self._store.videos()
        _warn_of_stale(records)
        files, gone = present_files(
            record for record in records if record.status == "ok" and record.frames > 0
        )
        if gone:
            _logger.warning(
                "%d videos are left out because their files are gone, the first is %s (`vidkin index PATH... --prune` "
                "forgets them)",
                len(gone),
                gone[0],
            )
        # Identifies what scores depend on besides the two files.
        digest = hashlib.sha256(repr((_REVISION, self._manifest.fingerprint, self.scorer)).encode())
        digest.update(repr(self._manifest.sampling_rate).encode())
        digest.update(self._common.vectors.numpy().tobytes())
        return find_duplicates(
            files,
            PairSearch(
                self._store,
                self._common,
                self.scorer,
                Comparisons.open(self._place, digest.hexdigest()[:16]),
                self._readings(),
                mirrored=mirrored,
            ),
            Decisions.open(self._place),
            threshold=threshold,
            parts=parts,
            keep=keep,
            on_progress=on_progress,
        )

    def recall(
        self, *, queries: int, limit: int, seed: int, on_progress: Callable[[int, int], None] | None
    ) -> RecallReport:
        """See :meth:`vidkin.Index.recall`."""
        self.refresh()
        return measure_recall(
            self._store,
            self._common,
            self.scorer,
            queries=queries,
            limit=limit,
            seed=seed,
            on_progress=on_progress,
        )

    def update_common(self, paths: Sequence[str]) -> None:
        """Find frames that these new videos share with many others; the caller holds the writer's lock."""
        if not paths or not self.scorer.has_segments:
            return  # what many videos share is exactly what makes them the same kind
        ids = [record.id for path in paths if (record := self._store.find(path)) is not None]
        vectors = find_common(self._store, ids)
        if len(vectors):
            CommonFrames.open(self._place).merge(vectors).save(self._place)

    def _readings(self) -> Readings:
        rate = self._manifest.sampling_rate
        return Readings(self._store, self.extractor, self.calibration, self._common, rate)

    def _describe(self, path: PathLike, start: float | None, end: float | None, mirrored: bool) -> Query:
        return describe_query(
            path,
            self.extractor,
            self.calibration,
            self._common,
            rate=self._manifest.sampling_rate,
            start=start,
            end=end,
            mirrored=mirrored,
        )


def _identical(records: list[VideoRecord], path: PathLike) -> list[VideoRecord]:
    """Records of files with the same bytes; files are read only if their sizes are equal.

    A partial hash is not enough: then all bytes are compared, so that the file must exist. None if the query, which was
    described before, cannot be read any more.
    """
    try:
        size = os.stat(path).st_size
        candidates = [record for record in records if record.status == "ok" and record.size == size]
        if not candidates:
            return []
        content = content_hash(os.fspath(path), size)
    except OSError:
        return []
    return [
        record
        for record in candidates
        if record.content_hash == content.text
        and (content.is_whole or has_same_bytes(os.fspath(path), record.path))
    ]


def _warn_of_stale(records: list[VideoRecord]) -> None:
    stale = [record.path for record in records if record.needs_reindex]
    if stale:
        _logger.warning(
            "%d videos are left out until they are indexed again, the first is %s (`vidkin info --videos` lists them)",
            len(stale),
            stale[0],
        )
