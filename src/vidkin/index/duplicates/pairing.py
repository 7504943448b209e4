"""Compare each video of an index with its nearest neighbors, in this process or in several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from vidkin.errors import NotIndexedError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of
from vidkin.index.duplicates.ignored_ends import IgnoredEnds
from vidkin.index.duplicates.pair_scores import PairJob, PairScorer, is_in_doubt
from vidkin.index.duplicates.scope import Lookups, PairScope
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.query import Readings
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task
from vidkin.similarity import Scorer

_Answers = Iterator[tuple[VideoRecord, Mapping[str, PairResult] | None]]

# Number of evenly spaced frames looked up per video; few are enough, because a whole copy contains all of them.
_FRAMES_LOOKED_UP = 16
# Maximum number of attempts to compare a video if neighbors are removed by other processes.
_MAX_ATTEMPTS = 5
# The search for neighbors in scope is widened up to this multiple of the number of neighbors.
_MAX_WIDENING = 16
# Number of videos per process in a block whose pairs are scored together.
_VIDEOS_PER_PROCESS = 8


@dataclass(slots=True)
class PairSearch:
    """Compares each video with its nearest neighbors.

    Attributes:
        store, scorer: Store and scorer of the index.
        known: Cache of results; cached pairs are not compared again.
        readings: Decodes files again; None to compare stored features only.
        parts: Whether to find excerpts, and videos that share a segment, as well.
        neighbors: Number of neighbors with which each video is compared.
        pairs: Which pairs to compare.
        sound: Audio fingerprints of the index; None if it has none.
        ignored: The ends of each file that are not compared.
        mapper, job: The mapper that scores the pairs, and its job; None to score them in this process.
        scores: Scores pairs in this process.
    """

    store: VectorStore
    scorer: Scorer
    known: Comparisons
    readings: Readings | None = None
    parts: bool = False
    neighbors: int = 20
    pairs: PairScope = field(default_factory=PairScope)
    sound: SoundSearch | None = None
    ignored: IgnoredEnds = field(default_factory=IgnoredEnds)
    mapper: Mapper | None = None
    job: PairJob | None = None
    scores: PairScorer = field(init=False)

    def __post_init__(self) -> None:
        self.scores = PairScorer(self.store, self.scorer, self.readings, ignored=self.ignored)

    def share_work(self, mapper: Mapper | None, spec: WorkerSpec) -> None:
        """Let a mapper score the pairs in blocks.

        Args:
            mapper: Scores the pairs; None to score them in this process.
            spec: Specification for opening the extractor in the mapper's workers.
        """
        if mapper is not None and self.readings is not None:
            readings = self.readings
            parts = readings.calibration, spec, readings.extractor.fingerprint, readings.rate
            self.mapper, self.job = mapper, PairJob(self.scorer, *parts, self.ignored)

    def run(self, videos: Sequence[VideoRecord], *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Compare each video with its neighbors; results are saved even if the run is interrupted.

        Args:
            videos: Videos with frames, only one of each set of byte-identical files.
            on_progress: Callback that receives (videos done, total number of videos); the first call reports the number
                done by earlier runs.
        """
        by_content = {content_of(record): record for record in videos}
        wholes = Lookups(self.pairs, self.known.searched, self.known.scoped, "searched")
        searched = Lookups(self.pairs, self.known.searched_parts, self.known.scoped, "parts") if self.parts else wholes
        pending = searched.pending(by_content)
        waiting, attempts = [by_content[content] for content in pending], Counter[int]()
        done = len(by_content) - len(waiting)
        if on_progress is not None and done:
            on_progress(done, len(by_content))
        size = 1 if self.mapper is None else _VIDEOS_PER_PROCESS * self.mapper.width
        try:
            while waiting:
                block, waiting = waiting[:size], waiting[size:]
                for record, results in self._compare(block, by_content):
                    attempts[record.id] += 1
                    if results is None and attempts[record.id] < _MAX_ATTEMPTS:
                        # The video or one of its neighbors was removed by another process in the meantime.
                        self.store.refresh()
                        waiting.append(record)
                        continue
                    if results is not None:
                        for other, result in results.items():
                            self.known.put(content_of(record), other, result)
                        searched.add([content_of(record)])
                        wholes.add([content_of(record)])
                    done += 1
                    self.known.save_if_due()
                    if on_progress is not None:
                        on_progress(done, len(by_content))
            searched.settle(by_content, pending)
        finally:
            self.known.save()

    def compare(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """Return the result of a pair, comparing it if it is not cached."""
        contents = content_of(first), content_of(second)
        result = self.known.get(*contents)
        if result is None:
            self.known.put(*contents, self.scores.score(first, second, parts=self.parts))
            # Return exactly the value that later runs will load, because results that depend on it are saved as well.
            result = self.known.get(*contents)
            assert result is not None
        return result

    def refine(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """Return the result of a pair from both files sampled as densely as queries, if that is possible."""
        result = self.compare(first, second)
        if result.fine or not self.scores.can_refine(first, second):
            return result
        with suppress(NotIndexedError):  # removed by another process in the meantime
            self.known.put(content_of(first), content_of(second), self.scores.read(first, second))
        return self.compare(first, second)

    def _compare(self, block: Sequence[VideoRecord], others: Mapping[str, VideoRecord]) -> _Answers:
        """Yield each video of a block with its new results, keyed by the neighbor's content; None instead of results if
        any of the videos was removed in the meantime."""
        seen: set[frozenset[int]] = set()
        asked: list[tuple[VideoRecord, list[VideoRecord] | None]] = []
        for record in block:
            try:
                near = self._look_up(record, others)
            except NotIndexedError:
                asked.append((record, None))
                continue
            pairs = {frozenset((record.id, other.id)): other for other in near if not self._is_known(record, other)}
            new = {pair: other for pair, other in pairs.items() if pair not in seen}
            seen.update(new)
            asked.append((record, list(new.values())))
        tasks = [
            Task("compare", (record, found, self.parts), record.id, record.path) for record, found in asked if found
        ]
        answers: Iterator[list[PairResult] | None]
        if self.mapper is None or self.job is None:
            answers = (self.scores.compare(*task.arguments) for task in tasks)
        else:
            answers = self.mapper.run(self.job, tasks)
        for record, found in asked:
            results = next(answers) if found else [] if found is not None else None
            yield record, None if results is None else dict(zip(map(content_of, found or ()), results, strict=True))

    def _is_known(self, first: VideoRecord, second: VideoRecord) -> bool:
        """Whether the result of two videos is cached and cannot be improved by denser sampling."""
        known = self.known.get(content_of(first), content_of(second))
        return known is not None and not (is_in_doubt(known, self.parts) and self.scores.can_refine(first, second))

    def _look_up(self, record: VideoRecord, others: Mapping[str, VideoRecord]) -> list[VideoRecord]:
        """Return the nearest neighbors of a video that are in scope.

        Raises:
            NotIndexedError: The video was removed in the meantime.
        """
        features, content = self.scores.stored([record])[0], content_of(record)
        if not len(features):
            return []
        if not self.parts and len(features) > _FRAMES_LOOKED_UP:
            rows = np.linspace(0, len(features) - 1, _FRAMES_LOOKED_UP)
            features = features.frames(np.rint(rows).astype(np.int64))
        by_id = {other.id: other for name, other in others.items() if self.pairs.allows(content, name)}
        enough = min(self.neighbors, len(by_id) - (record.id in by_id))
        count = self.neighbors + 1
        while True:
            candidates = find_candidates(self.store, features, count)
            found = [by_id[other] for other in candidates if other in by_id and other != record.id]
            # Copies that are out of scope may be nearer than those in scope, so widen the search if too few are found.
            if self.pairs.scope.is_everything or len(found) >= enough or count > _MAX_WIDENING * self.neighbors:
                return found[: self.neighbors]
            count *= 4
