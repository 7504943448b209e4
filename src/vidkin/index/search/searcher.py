"""The reading side of a collection: search, match, duplicates, recall, and what people said about pairs."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.errors import CollectionError, CollectionMismatchError, NotIndexedError
from vidkin.index.ingest.scan import content_hash
from vidkin.index.lock import writer_lock
from vidkin.index.manifest import Manifest
from vidkin.index.match import Comparison, Match
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames, find_common
from vidkin.index.search.compare import compare_query
from vidkin.index.search.decisions import Decisions, Verdict
from vidkin.index.search.duplicates import DuplicateGroup, find_duplicates
from vidkin.index.search.query import Query, frame_set, query_from_file
from vidkin.index.search.recall import RecallReport, measure_recall
from vidkin.index.search.stages import search, with_identical
from vidkin.index.storage.contract import VectorStore, VideoRecord
from vidkin.similarity import Scorer, open_scorer

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor

__all__ = ["SearchingIndex"]

_logger = logging.getLogger(__name__)
# A search that meets videos which are removed meanwhile begins again so many times.
_MOST_SEARCHES = 5

PathLike = str | os.PathLike[str]


class SearchingIndex(ABC):
    """What :class:`vidkin.Index` can do without writing features.

    Attributes:
        path: The folder of the collection.
        manifest: What the collection was made with.
        store: Records, features and windows.
    """

    path: Path
    manifest: Manifest
    store: VectorStore

    @property
    @abstractmethod
    def extractor(self) -> FrameExtractor:
        """What makes the features."""

    @abstractmethod
    def _records_at(self, given: str) -> list[VideoRecord]: ...

    @abstractmethod
    def _check_writable(self) -> None: ...

    def search(
        self,
        query: PathLike,
        *,
        start: float | None = None,
        end: float | None = None,
        limit: int = 10,
        threshold: float = 0.0,
        mirrored: bool = True,
        candidates: int = 100,
    ) -> list[Match]:
        """The videos of the collection that match a file, best first, and where.

        A collection made with a trained model ranks all candidates by kind instead: the same, the same kind, something
        else. Then scores have the model's own scale and matches no segments (:class:`vidkin.similarity.KindScorer`).

        A file of the collection is read again like any other and finds itself first, with a score of 1. A file with
        the same bytes always has a score of 1, even one that shows nothing but black.

        Args:
            query: A video (or picture) file; it need not be in the collection.
            start, end: Only this stretch of it, seconds.
            limit: At most so many matches.
            threshold: Leave out scores below; 0.2 leaves out nearly all that is unrelated.
            mirrored: Find copies that were flipped left to right, too; takes about twice as long.
            candidates: Videos that are compared exactly; more find more where recall is low (`vidkin doctor`).

        Raises:
            MediaError: The query cannot be read.
            InvalidArgumentError: A number is out of its range.
        """
        self.store.refresh()
        asked = self._query(query, start, end, mirrored)
        common = CommonFrames.open(self.path)
        for attempt in range(_MOST_SEARCHES):
            try:
                found = search(
                    self.store,
                    asked,
                    common,
                    limit=limit,
                    threshold=threshold,
                    candidates=candidates,
                    scorer=self._scorer,
                )
                break
            except NotIndexedError:
                # A candidate was removed by another process; what took its place is to be found as well.
                if attempt == _MOST_SEARCHES - 1:
                    raise
                self.store.refresh()
        records = self.store.videos()
        self._warn_of_lost(records)
        if start is None and end is None:
            digest = content_hash(os.fspath(query), os.stat(query).st_size)
            found = with_identical(found, records, digest, limit)
        return found

    def match(
        self,
        query: PathLike,
        target: PathLike,
        *,
        start: float | None = None,
        end: float | None = None,
        mirrored: bool = True,
    ) -> Comparison:
        """One file against one video of the collection (its stored features are used).

        Raises:
            MediaError: The query cannot be read.
            NotIndexedError: The target is not in the collection; :func:`vidkin.compare` takes any two files.
        """
        self.store.refresh()
        record = self._records_at(os.fspath(target))[0]
        common = CommonFrames.open(self.path)
        asked = self._query(query, start, end, mirrored)
        found = frame_set(self.store.read(record.id), common, record.duration)
        return compare_query(asked, found, self._scorer)

    def duplicates(
        self, *, threshold: float = 0.7, on_progress: Callable[[int, int], None] | None = None
    ) -> list[DuplicateGroup]:
        """Groups of videos that hold the same material, without comparing all pairs.

        Args:
            threshold: Score from which on two videos belong together, in (0, 1].
            on_progress: Called with (videos done, videos in all).

        Raises:
            CollectionMismatchError: The collection was made with a measure of kinds, which does not tell copies from
                others.
        """
        if not self._scorer.has_segments:
            raise CollectionMismatchError(
                f"{self.path} was made with {self.manifest.extractor}, a measure of kinds, which does not tell copies "
                "from what is merely alike; index anew into another folder with --extractor classical"
            )
        self.store.refresh()
        self._warn_of_lost(self.store.videos())
        return find_duplicates(
            self.store,
            CommonFrames.open(self.path),
            Decisions.open(self.path),
            threshold=threshold,
            on_progress=on_progress,
        )

    def check_small_files(self) -> None:
        """Open what lies beside the store.

        Raises:
            CollectionDamagedError: One of the files is there and cannot be read.
        """
        if (self.path / Calibration.FILE).is_file():
            Calibration.open(self.path, None)
        CommonFrames.open(self.path)
        Decisions.open(self.path)

    def recall(
        self,
        *,
        queries: int = 50,
        limit: int = 100,
        seed: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> RecallReport:
        """How much the first stage misses, measured against exhaustive search; see :func:`measure_recall`."""
        self.store.refresh()
        return measure_recall(
            self.store,
            CommonFrames.open(self.path),
            queries=queries,
            limit=limit,
            seed=seed,
            scorer=self._scorer,
            on_progress=on_progress,
        )

    def confirm(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Remember that two videos of the collection match, whatever their score."""
        self._decide(first, second, "match", wait)

    def reject(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Remember that two videos of the collection are not duplicates, whatever their score."""
        self._decide(first, second, "not a match", wait)

    def _decide(self, first: PathLike, second: PathLike, verdict: Verdict, wait: float) -> None:
        self._check_writable()
        records = [self._record_at(path) for path in (first, second)]
        with writer_lock(self.path, wait=wait):
            unread = next((record.path for record in records if not record.content_hash), None)
            if unread is not None:
                raise NotIndexedError(f"{unread} changed while it was being read; index it again")
            decisions = Decisions.open(self.path)
            decisions.decide(records[0].content_hash, records[1].content_hash, verdict)
            decisions.save(self.path)

    def _record_at(self, path: PathLike) -> VideoRecord:
        found = self._records_at(os.fspath(path))
        if len(found) > 1:
            raise CollectionError(f"{os.fspath(path)} is a folder with {len(found)} videos; name one file")
        return found[0]

    def _warn_of_lost(self, records: list[VideoRecord]) -> None:
        lost = [record.path for record in records if record.to_be_read_again]
        if lost:
            _logger.warning(
                "%d videos are left out until they are indexed again, the first is %s (`vidkin info --videos` lists "
                "them)",
                len(lost),
                lost[0],
            )

    @property
    def _scorer(self) -> Scorer:
        return open_scorer(self.manifest.measure)

    def _query(self, query: PathLike, start: float | None, end: float | None, mirrored: bool) -> Query:
        return query_from_file(
            query,
            self.extractor,
            Calibration.open(self.path, self.extractor),
            CommonFrames.open(self.path),
            rate=self.manifest.sampling_rate,
            start=start,
            end=end,
            mirrored=mirrored,
        )

    def _note_common(self, paths: list[str]) -> None:
        """Look for frames that these new videos share with many others; the caller holds the writer's lock."""
        if not paths or not self._scorer.has_segments:
            return  # what many videos share is just what makes them of one kind
        ids = [record.id for path in paths if (record := self.store.find(path)) is not None]
        vectors = find_common(self.store, ids)
        if len(vectors):
            CommonFrames.open(self.path).merged(vectors).save(self.path)
