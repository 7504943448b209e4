"""Find pairs of an index with the same material: candidates by stored features, doubtful ones read again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidkin.errors import NotIndexedError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of
from vidkin.index.duplicates.scope import Lookups, PairScope
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Query, Readings, weigh_features
from vidkin.index.query.stages import find_candidates, score_pair, swap_sides
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import FrameFeatures, PairScore, Scorer

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# From this score and this share of the shorter video on, a finer reading makes no visible difference.
_SURE = 0.97
_SHOWN_WHOLE = 0.95
# A pair this far above the threshold of groups, shown nearly whole on both sides, stays what it is however finely it is
# read.
_CLEAR = 0.15
# How far the score of a predicted mirror image may be below that of the true one.
_PREDICTED_LESS = 0.25
# Attempts to compare a video whose neighbors are removed meanwhile.
_MOST_READINGS = 5
# Times the number of neighbors up to which is searched for those in scope.
_MOST_WIDENED = 16
# Bytes of features that are held, in single precision.
_MOST_HELD = 128 << 20


@dataclass(slots=True)
class PairSearch:
    """Compares each video with those nearest to it.

    Attributes:
        store, common, scorer: Store, common frames and scorer of the index.
        known: Receives the results; known pairs are not compared again.
        readings: Reads files again; None compares stored features only, and finds no mirrored copies.
        mirrored: Also look for copies that were flipped left to right.
        neighbors: Number of videos that each one is compared with.
        pairs: Which pairs are compared.
    """

    store: VectorStore
    common: CommonFrames
    scorer: Scorer
    known: Comparisons
    readings: Readings | None = None
    mirrored: bool = True
    neighbors: int = 20
    pairs: PairScope = field(default_factory=PairScope)
    _held: OrderedDict[int, FrameFeatures] = field(default_factory=OrderedDict, init=False)
    _held_bytes: int = field(default=0, init=False)
    _flips: set[tuple[str, str]] = field(default_factory=set, init=False)
    _predicted: set[str] = field(default_factory=set, init=False)

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
        searched = Lookups(self.pairs, self.known.searched, self.known.scoped, "searched")
        flipped = Lookups(self.pairs, self.known.flipped, self.known.scoped, "flipped")
        searching = [by_content[content] for content in searched.pending(by_content)]
        turning = [by_content[content] for content in flipped.pending(flipping)]
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
                if self._search(record, by_content):
                    searched.add([content_of(record)])
                advance()
            for record in turning:
                if self._search_flipped(record, by_content, threshold):
                    flipped.add([content_of(record)])
                advance()
            doubtful = self._doubtful(by_content, threshold)
            total += len(doubtful)
            for reading in doubtful:
                self._refine(reading, threshold)
                advance()
            # Only now: a pair that was not read is found again by the next run.
            flipped.add(self._predicted)
            for lookups, asked in ((searched, searching), (flipped, turning)):
                lookups.settle(by_content, map(content_of, asked))
        finally:
            self.known.save()

    def compare(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """Compare a pair by stored features, unless its result is known."""
        contents = content_of(first), content_of(second)
        result = self.known.get(*contents)
        if result is None:
            self._compare_many(first, [second])
            # As the next run gets it, to the last digit: what depends on it is stored, too.
            result = self.known.get(*contents)
            assert result is not None
        return result

    def _search(self, record: VideoRecord, others: dict[str, VideoRecord]) -> bool:
        """Compare a video with its neighbors; whether that is done."""
        for _ in range(_MOST_READINGS):
            try:
                query = Query(self._weighed(record))
                self._compare_many(record, self._neighbors(query, record, others))
            except NotIndexedError:
                # It, or one of those nearest to it, was removed by another process meanwhile.
                self.store.refresh()
                continue
            return True
        return False

    def _compare_many(self, record: VideoRecord, others: Sequence[VideoRecord]) -> None:
        """Compare a video with others by stored features, where that is not known yet."""
        content = content_of(record)
        others = [other for other in others if self.known.get(content, content_of(other)) is None]
        one, targets = self._weighed(record), self._weighed_many(others)
        for other, target, score in zip(others, targets, self.scorer.score(one, targets), strict=True):
            best = score
            # As in score_pair: the other direction may find a line that this one misses by a frame. Where nothing at
            # all is similar, there is none.
            if score.map.max(initial=0.0) > 0:
                best = max(score, swap_sides(self.scorer.score(target, [one])[0]), key=lambda found: found.score)
            self.known.put(content, content_of(other), _result(best, one, target))

    def _search_flipped(self, record: VideoRecord, others: dict[str, VideoRecord], threshold: float) -> bool:
        """Compare the mirror image of a video with its neighbors; whether nothing of that is left to be read."""
        assert self.readings is not None  # run() looks for mirrored copies only with readings
        try:
            predicted = self.readings.predict_flipped(self._weighed(record))
            features = self.readings.flipped(record) if predicted is None else predicted
            if features is None:
                return False
            neighbors = self._neighbors(Query(features), record, others)
            targets = self._weighed_many(neighbors)
        except NotIndexedError:
            self.store.refresh()
            return False
        content = content_of(record)
        for other, target, score in zip(
            neighbors, targets, self.scorer.score(features, targets, mirrored=True), strict=True
        ):
            result = self.known.get(content, content_of(other))
            known = 0.0 if result is None else result.score
            if score.score < _DOUBTFUL:
                continue
            # Takes of one scene look alike either way; a mirrored copy is more similar when flipped.
            if predicted is not None:
                # A pair that is in one group as it is needs no other reason.
                if known < min(threshold, score.score + _PREDICTED_LESS):
                    first, second = sorted((content, content_of(other)))
                    self._flips.add((first, second))
            elif score.score > known:
                self.known.put(content, content_of(other), _result(score, features, target, fine=False))
        if predicted is not None:
            self._predicted.add(content)
        return predicted is None

    def _neighbors(self, query: Query, record: VideoRecord, others: dict[str, VideoRecord]) -> list[VideoRecord]:
        content = content_of(record)
        by_id = {other.id: other for name, other in others.items() if self.pairs.allows(content, name)}
        count = self.neighbors + 1
        while True:
            candidates = find_candidates(self.store, query, count)
            found = [by_id[other] for other in candidates if other in by_id and other != record.id]
            if self.pairs.scope.is_everything:
                return found
            # Copies that are out of scope may be nearer than those in it.
            enough = min(self.neighbors, len(by_id) - (record.id in by_id))
            if len(found) >= enough or count > _MOST_WIDENED * self.neighbors:
                return found[: self.neighbors]
            count *= 4

    def _doubtful(self, others: dict[str, VideoRecord], threshold: float) -> list[_Reading]:
        """Pairs to read again."""
        if self.readings is None:
            return []
        flips = Counter(content for pair in self._flips for content in pair)
        doubtful = {
            (first, second): _Reading(others[first], others[second], (flips[first] < flips[second]) + 1)
            for first, second in self._flips
        }
        floor = min(_DOUBTFUL, threshold / 2)
        for first, second, result in self.known.pairs():
            if first not in others or second not in others or result.fine or not floor <= result.score:
                continue
            if not self.pairs.allows(first, second):
                continue
            one, other = others[first], others[second]
            stored = self.readings.is_stored_as_finely(one) and self.readings.is_stored_as_finely(other)
            # Frames of an excerpt fall between those of the film, so stored features may miss part of the match.
            is_sure = result.score >= _SURE and max(result.covered) >= _SHOWN_WHOLE
            is_clear = result.score >= threshold + _CLEAR and min(result.covered) >= _SHOWN_WHOLE
            if result.mirrored:
                doubtful.setdefault((first, second), _Reading(one, other, 3))
            elif not (stored or is_sure or is_clear):
                doubtful.setdefault((first, second), _Reading(one, other, 0))
        # Family by family, so that what was read of a file is still held when its next pair comes.
        family = _families(doubtful)
        return [doubtful[pair] for pair in sorted(doubtful, key=lambda pair: (family[pair[0]], pair))]

    def _refine(self, reading: _Reading, threshold: float) -> None:
        assert self.readings is not None  # else no pair is doubtful
        sides = reading.flipped
        try:
            score, one, other = self._read(reading, sides)
            if sides in (1, 2) and score.score < threshold:
                # As in `vidkin match`: a crop may be found from one side and missed from the other.
                score, one, other = self._read(reading, 3)
        except NotIndexedError:
            return  # removed by another process meanwhile
        result = _result(score, one.plain, other.plain, fine=True)
        self.known.put(content_of(reading.first), content_of(reading.second), result)

    def _read(self, reading: _Reading, sides: int) -> tuple[PairScore, Query, Query]:
        assert self.readings is not None
        one = self.readings.finest(reading.first, mirrored=bool(sides & 1))
        other = self.readings.finest(reading.second, mirrored=bool(sides & 2))
        return score_pair(one, other, self.scorer), one, other

    def _weighed(self, record: VideoRecord) -> FrameFeatures:
        return self._weighed_many([record])[0]

    def _weighed_many(self, records: Sequence[VideoRecord]) -> list[FrameFeatures]:
        """Features ready for scoring; those read last are held."""
        missing = [record for record in records if record.id not in self._held]
        found = {record.id: self._held[record.id] for record in records if record.id in self._held}
        for record, features in zip(missing, self.store.read_many([each.id for each in missing]), strict=True):
            weighed = weigh_features(features, self.common, record.duration)
            self._held[record.id] = found[record.id] = weighed
            self._held_bytes += weighed.values.nbytes
        for record in records:
            self._held.move_to_end(record.id)
        while self._held_bytes > _MOST_HELD and len(self._held) > 1:
            self._held_bytes -= self._held.popitem(last=False)[1].values.nbytes
        return [found[record.id] for record in records]


def _families(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each content a name of all that are connected with it by pairs: the first of them."""
    names: dict[str, str] = {}

    def name(content: str) -> str:
        while (parent := names.setdefault(content, content)) != content:
            content = parent
        return content

    for pair in pairs:
        first, second = sorted(map(name, pair))
        names[second] = first
    return {content: name(content) for content in names}


@dataclass(frozen=True, slots=True)
class _Reading:
    """A pair to read again.

    Attributes:
        first, second: The videos.
        flipped: Which of them to flip as well: 0 none, 1 the first, 2 the second, 3 both.
    """

    first: VideoRecord
    second: VideoRecord
    flipped: int


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
