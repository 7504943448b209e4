"""Find pairs of an index with the same material: candidates by stored features, doubtful ones read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.errors import NotIndexedError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Query, Readings, query_from_stored, weigh_features
from vidkin.index.query.stages import find_candidates, score_pair
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import FrameFeatures, PairScore, Scorer

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# From this score and this share of the shorter video on, a finer reading makes no visible difference.
_SURE = 0.97
_SHOWN_WHOLE = 0.95
# Attempts to compare a video whose neighbors are removed meanwhile.
_MOST_READINGS = 5


@dataclass(slots=True)
class PairSearch:
    """Compares each video with those nearest to it.

    Attributes:
        store, common, scorer: Store, common frames and scorer of the index.
        known: Receives the results; known pairs are not compared again.
        readings: Reads files again; None compares stored features only, and finds no mirrored copies.
        mirrored: Also look for copies that were flipped left to right.
        neighbors: Number of videos that each one is compared with.
    """

    store: VectorStore
    common: CommonFrames
    scorer: Scorer
    known: Comparisons
    readings: Readings | None = None
    mirrored: bool = True
    neighbors: int = 20

    def run(
        self,
        videos: Sequence[VideoRecord],
        *,
        threshold: float,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Compare the pairs; results are stored even if this is interrupted.

        Args:
            videos: Videos with frames; only one of those with the same bytes.
            threshold: Minimum score within groups; pairs that may reach it are read again.
            on_progress: Called with (steps done, steps in all), the first time with the steps of earlier runs; the
                second grows when doubtful pairs are known.
        """
        by_content = {content_of(record): record for record in videos}
        flipping = by_content if self.mirrored and self.readings is not None else {}
        searching = [record for content, record in by_content.items() if content not in self.known.searched]
        turning = [record for content, record in flipping.items() if content not in self.known.flipped]
        total = len(by_content) + len(flipping)
        done = total - len(searching) - len(turning)
        if on_progress is not None and done:
            on_progress(done, total)

        def advance() -> None:
            nonlocal done
            done += 1
            self.known.save_now_and_then()
            if on_progress is not None:
                on_progress(done, total)

        try:
            for record in searching:
                self._search(record, by_content)
                advance()
            for record in turning:
                self._search_flipped(record, by_content)
                advance()
            doubtful = self._doubtful(by_content, min(_DOUBTFUL, threshold / 2))
            total += len(doubtful)
            for first, second, flipped in doubtful:
                self._refine(first, second, flipped)
                advance()
        finally:
            self.known.save()

    def compare(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """Compare a pair by stored features, unless its result is known."""
        contents = content_of(first), content_of(second)
        result = self.known.get(*contents)
        if result is None:
            one, other = self._weighed(first), self._weighed(second)
            result = _result(score_pair(Query(one), Query(other), self.scorer), one, other)
            self.known.put(*contents, result)
            # As the next run gets it, to the last digit: what depends on it is stored, too.
            result = self.known.get(*contents) or result
        return result

    def _search(self, record: VideoRecord, others: dict[str, VideoRecord]) -> None:
        for _ in range(_MOST_READINGS):
            try:
                query = query_from_stored(self.store.read(record.id), self.common)
                for other in self._neighbors(query, record, others):
                    self.compare(record, other)
            except NotIndexedError:
                self.store.refresh()  # It, or one of those nearest to it, was removed by another process meanwhile.
                continue
            self.known.searched.add(content_of(record))
            return

    def _search_flipped(self, record: VideoRecord, others: dict[str, VideoRecord]) -> None:
        assert self.readings is not None  # run() looks for mirrored copies only with readings
        features = self.readings.flipped(record)
        if features is None:
            return
        try:
            for other in self._neighbors(Query(features), record, others):
                result = self.known.get(content_of(record), content_of(other))
                target = self._weighed(other)
                score = self.scorer.score(features, [target], mirrored=True)[0]
                # Takes of one scene look alike either way; a mirrored copy is more similar when flipped.
                if score.score >= _DOUBTFUL and (result is None or score.score > result.score):
                    self.known.put(content_of(record), content_of(other), _result(score, features, target, fine=False))
        except NotIndexedError:
            self.store.refresh()
            return
        self.known.flipped.add(content_of(record))

    def _neighbors(self, query: Query, record: VideoRecord, others: dict[str, VideoRecord]) -> Iterable[VideoRecord]:
        by_id = {other.id: other for other in others.values()}
        candidates = find_candidates(self.store, query, self.neighbors + 1)
        return [by_id[other] for other in candidates if other in by_id and other != record.id]

    def _doubtful(self, others: dict[str, VideoRecord], floor: float) -> list[tuple[VideoRecord, VideoRecord, bool]]:
        """Pairs to read again, and whether to flip one of the two."""
        if self.readings is None:
            return []
        doubtful = []
        for first, second, result in self.known.pairs():
            if first not in others or second not in others or result.fine or not floor <= result.score:
                continue
            one, other = others[first], others[second]
            stored = self.readings.is_stored_as_finely(one) and self.readings.is_stored_as_finely(other)
            # Frames of an excerpt fall between those of the film, so stored features may miss part of the match.
            is_sure = result.score >= _SURE and max(result.covered) >= _SHOWN_WHOLE
            if result.mirrored or not (stored or is_sure):
                doubtful.append((one, other, result.mirrored))
        return doubtful

    def _refine(self, first: VideoRecord, second: VideoRecord, flipped: bool) -> None:
        assert self.readings is not None  # else no pair is doubtful
        try:
            # Both mirror images, as in `vidkin match`: a crop may be found from one side and missed from the other.
            one = self.readings.finest(first, mirrored=flipped)
            other = self.readings.finest(second, mirrored=flipped)
        except NotIndexedError:
            return  # removed by another process meanwhile
        score = score_pair(one, other, self.scorer)
        result = _result(score, one.plain, other.plain, fine=True)
        self.known.put(content_of(first), content_of(second), result)

    def _weighed(self, record: VideoRecord) -> FrameFeatures:
        return weigh_features(self.store.read(record.id), self.common, record.duration)


def _result(score: PairScore, first: FrameFeatures, second: FrameFeatures, *, fine: bool = False) -> PairResult:
    covered = (
        _covered(first, [(segment.query_start, segment.query_end) for segment in score.segments]),
        _covered(second, [(segment.target_start, segment.target_end) for segment in score.segments]),
    )
    return PairResult(min(1.0, max(0.0, score.score)), fine, covered, score.segments)


def _covered(features: FrameFeatures, spans: list[tuple[float, float]]) -> float:
    """Share of the informative frames that lie in one of these ranges of seconds."""
    weights = features.information.astype(np.float64)
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    # A frame stands for half a period on both sides of it.
    reach = 0.49 * features.period
    seen = np.zeros(len(features), np.bool_)
    for start, end in spans:
        seen |= (features.timestamps >= start - reach) & (features.timestamps <= end + reach)
    return min(1.0, float(weights[seen].sum()) / total)
