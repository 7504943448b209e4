"""Find pairs of an index with the same material: candidates by stored features, doubtful ones read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from vidkin.errors import NotIndexedError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of, relation_of
from vidkin.index.duplicates.grouping import Families, in_order
from vidkin.index.duplicates.pair_scores import (
    SURE_AS_STORED,
    PairJob,
    PairScorer,
    Reading,
    ScoresAhead,
)
from vidkin.index.duplicates.scope import Lookups, PairScope
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Readings
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper
from vidkin.similarity import FrameFeatures, Scorer

_WithNear = tuple[VideoRecord, list[VideoRecord] | None]

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# Share of the shorter video from which on, with a score of SURE_AS_STORED, a finer reading makes no visible difference.
_SHOWN_WHOLE = 0.95
# A pair this far above the threshold of groups, shown nearly whole on both sides, stays what it is however finely it is
# read.
_CLEAR = 0.05
# A pair of which less is shown, by stored features, is no copy as a whole however finely it is read.
_MAYBE_WHOLE = 0.4
# With how many files of one family a family is compared: one that was cropped may look less like the other.
_MOST_OF_FAMILY = 2
# Frames that are looked up for a video, evenly spread: a copy as a whole shows all of them.
_FRAMES_LOOKED_UP = 16
# Attempts to compare a video whose neighbors are removed meanwhile.
_MOST_READINGS = 5
# Times the number of neighbors up to which is searched for those in scope.
_MOST_WIDENED = 16
# Videos whose comparisons are asked for ahead, and pairs that are read ahead, for each process that computes them.
_VIDEOS_AHEAD, _READINGS_AHEAD = 8, 2


@dataclass(slots=True)
class PairSearch:
    """Compares each video with those nearest to it.

    Attributes:
        store, common, scorer: Store, common frames and scorer of the index.
        known: Receives the results; known pairs are not compared again.
        readings: Reads files again; None compares stored features only.
        parts: Also look for excerpts, and for videos that share a part.
        neighbors: Number of videos that each one is compared with.
        pairs: Which pairs are compared.
        sound: Sound of the files; None where it is not known.
    """

    store: VectorStore
    common: CommonFrames
    scorer: Scorer
    known: Comparisons
    readings: Readings | None = None
    parts: bool = False
    neighbors: int = 20
    pairs: PairScope = field(default_factory=PairScope)
    sound: SoundSearch | None = None
    scores: ScoresAhead = field(init=False)
    _families: Families = field(default_factory=Families, init=False)
    _met: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        self.scores = ScoresAhead(PairScorer(self.store, self.common, self.scorer, self.readings))

    def compute_ahead(self, mapper: Mapper | None, spec: WorkerSpec) -> None:
        """Have a mapper compute what will be asked; None computes everything here, when it is asked.

        Args:
            mapper: Computes ahead.
            spec: What opens the extractor there.
        """
        if mapper is not None and self.readings is not None:
            readings = self.readings
            parts = readings.calibration, spec, readings.extractor.fingerprint, readings.rate
            self.scores = ScoresAhead(self.scores.here, mapper, PairJob(self.common, self.scorer, *parts))

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
        wholes = Lookups(self.pairs, self.known.searched, self.known.scoped, "searched")
        searched = Lookups(self.pairs, self.known.searched_parts, self.known.scoped, "parts") if self.parts else wholes
        searching = [by_content[content] for content in searched.pending(by_content)]
        total = len(by_content)
        done = total - len(searching)
        self._families = Families()
        for first, second, result in self.known.pairs():
            one, other = by_content.get(first), by_content.get(second)
            if one is not None and other is not None and self._is_final(one, other, result, threshold):
                self._join(first, second)
        if on_progress is not None and done:
            on_progress(done, total)

        def advance() -> None:
            nonlocal done
            done += 1
            self.known.save_now_and_then()
            if on_progress is not None:
                on_progress(done, total)

        try:
            for record, near in self._ahead(searching, by_content):
                if self._search(record, by_content, threshold, near):
                    searched.add([content_of(record)])
                    wholes.add([content_of(record)])
                advance()
            doubtful = self._doubtful(by_content, threshold)
            total += len(doubtful)
            # Families that an earlier run found to be two are not read again.
            tried = Counter(
                self._families.pair(first, second) for first, second, result in self.known.pairs() if result.fine
            )
            for place, reading in enumerate(doubtful):
                if self.scores.width:
                    self._read_ahead(doubtful, place, tried)
                self._settle(reading, threshold, tried)
                advance()
            searched.settle(by_content, map(content_of, searching))
        finally:
            self.scores.forget()
            self.known.save()

    def compare(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """Compare a pair by stored features, unless its result is known."""
        contents = content_of(first), content_of(second)
        result = self.known.get(*contents)
        if result is None:
            self.known.put(*contents, self.scores.score(first, second))
            # As the next run gets it, to the last digit: what depends on it is stored, too.
            result = self.known.get(*contents)
            assert result is not None
        return result

    def refine(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """The result of a pair by reading both files as finely as queries, unless that is known or impossible."""
        result = self.compare(first, second)
        if self.readings is None or result.fine or self._is_stored_finely(first, second):
            return result
        self._refine((first, second))
        return self.compare(first, second)

    def stored(self, records: Sequence[VideoRecord]) -> list[FrameFeatures]:
        """Stored features of these videos, ready for scoring; those read last are held.

        Raises:
            NotIndexedError: One of them was removed meanwhile.
        """
        return self.scores.stored(records)

    def _join(self, first: str, second: str) -> None:
        """Make one family of two, unless every pair must speak for itself as others are out of scope."""
        if self.pairs.scope.is_everything:
            self._families.join(first, second)

    def _is_final(self, first: VideoRecord, second: VideoRecord, result: PairResult, threshold: float) -> bool:
        """Whether two videos are copies as a whole, however finely they are read."""
        is_whole = result.score >= threshold and relation_of(result, (first.duration, second.duration)) == "whole"
        return is_whole and (is_clear(result, threshold) or result.fine or self._is_stored_finely(first, second))

    def _is_stored_finely(self, first: VideoRecord, second: VideoRecord) -> bool:
        return self.readings is None or (
            self.readings.is_stored_as_finely(first) and self.readings.is_stored_as_finely(second)
        )

    def _search(
        self,
        record: VideoRecord,
        others: dict[str, VideoRecord],
        threshold: float,
        neighbors: list[VideoRecord] | None = None,
    ) -> bool:
        """Compare a video with its neighbors, which are looked up if they are not known; whether that is done."""
        for _ in range(_MOST_READINGS):
            try:
                if neighbors is None:
                    neighbors = self._look_up(record, others)
                self._compare_neighbors(record, neighbors, threshold)
            except NotIndexedError:
                # It, or one of those nearest to it, was removed by another process meanwhile.
                self.store.refresh()
                neighbors = None
                continue
            return True
        return False

    def _compare_neighbors(self, record: VideoRecord, neighbors: Sequence[VideoRecord], threshold: float) -> None:
        """Compare a video with those of its neighbors whose family it has not met."""
        content = content_of(record)
        for other in neighbors:
            if not self._is_unknown(*in_order(content, content_of(other))):
                continue
            result = self.scores.score(record, other)
            self.known.put(content, content_of(other), result)
            if self._is_final(record, other, result, threshold):
                self._join(content, content_of(other))
            else:
                self._met[self._families.pair(content, content_of(other))] += 1

    def _is_unknown(self, first: str, second: str) -> bool:
        """Whether it is still to be found out if two contents, in their order, are copies. Those of one family are
        compared when one of them is chosen to be kept."""
        families = self._families.pair(first, second)
        is_met = families[0] == families[1] or self._met[families] >= _MOST_OF_FAMILY
        return not (is_met or self.known.get(first, second) is not None)

    def _look_up(self, record: VideoRecord, others: dict[str, VideoRecord]) -> list[VideoRecord]:
        """The videos nearest to one, as many as it is compared with."""
        features, content = self.stored([record])[0], content_of(record)
        if not self.parts and len(features) > _FRAMES_LOOKED_UP:
            spread = np.linspace(0, len(features) - 1, _FRAMES_LOOKED_UP)
            features = features.frames(np.rint(spread).astype(np.int64))
        by_id = {other.id: other for name, other in others.items() if self.pairs.allows(content, name)}
        count = self.neighbors + 1
        while True:
            candidates = find_candidates(self.store, features, count)
            found = [by_id[other] for other in candidates if other in by_id and other != record.id]
            if self.pairs.scope.is_everything:
                return found
            # Copies that are out of scope may be nearer than those in it.
            enough = min(self.neighbors, len(by_id) - (record.id in by_id))
            if len(found) >= enough or count > _MOST_WIDENED * self.neighbors:
                return found[: self.neighbors]
            count *= 4

    def _doubtful(self, others: dict[str, VideoRecord], threshold: float) -> list[Reading]:
        """Pairs to read again if their families are not one by then, the most promising of each family first."""
        if self.readings is None:
            return []
        doubtful: dict[tuple[str, str], float] = {}
        floor = min(_DOUBTFUL, threshold / 2)
        for first, second, result in self.known.pairs():
            if first not in others or second not in others or result.fine or not floor <= result.score:
                continue
            if not self.pairs.allows(first, second):
                continue
            # Frames of an excerpt fall between those of the film, so stored features may miss part of the match.
            is_sure = result.score >= SURE_AS_STORED and max(result.covered) >= _SHOWN_WHOLE
            if is_clear(result, threshold) or not (self.parts or min(result.covered) >= _MAYBE_WHOLE):
                continue
            if not (is_sure or self._is_stored_finely(others[first], others[second])):
                doubtful[first, second] = result.score
        # Those that are connected after each other, so that what was read of a file is still held when its next pair
        # comes.
        connected = Families()
        for pair in doubtful:
            connected.join(*pair)
        ranked = sorted(doubtful, key=lambda pair: (connected.name(pair[0]), -doubtful[pair], pair))
        return [(others[first], others[second]) for first, second in ranked]

    def _settle(self, reading: Reading, threshold: float, tried: Counter[tuple[str, str]]) -> None:
        """Read a pair again, unless its families are one already or were found to be two."""
        first, second = map(content_of, reading)
        families = self._families.pair(first, second)
        if not self._is_open(reading, tried):
            return
        self._refine(reading)
        result = self.known.get(first, second)
        if result is not None and self._is_final(*reading, result, threshold):
            self._join(first, second)
        else:
            tried[families] += 1

    def _refine(self, reading: Reading) -> None:
        result = self.scores.read(reading)
        if result is not None:  # else it was removed by another process meanwhile
            self.known.put(content_of(reading[0]), content_of(reading[1]), result)

    # What is asked next, computed ahead where there is a mapper: a little more than what one process asks, as what the
    # pairs of a block say is not known yet.

    def _ahead(self, videos: Sequence[VideoRecord], others: dict[str, VideoRecord]) -> Iterator[_WithNear]:
        """The videos, block by block, when what will be asked of those of a block has been computed; with their
        neighbors where these were looked up for it."""
        if not self.scores.width:
            yield from ((record, None) for record in videos)
            return
        left = iter(videos)
        while block := list(islice(left, _VIDEOS_AHEAD * self.scores.width)):
            self.scores.forget()
            yield from self._ask_compare(block, others)

    def _ask_compare(self, block: Sequence[VideoRecord], others: dict[str, VideoRecord]) -> list[_WithNear]:
        """Have videos compared with their neighbors, which are looked up here."""
        asked: list[tuple[VideoRecord, list[VideoRecord]]] = []
        found: list[_WithNear] = []
        seen: set[tuple[str, str]] = set()
        for record in block:
            near = None
            with suppress(NotIndexedError):  # it is noticed again when it is its turn
                near = self._look_up(record, others)
            found.append((record, near))
            pairs = {in_order(content_of(record), content_of(other)): other for other in near or ()}
            new = {pair: other for pair, other in pairs.items() if pair not in seen and self._is_unknown(*pair)}
            seen.update(new)
            asked.append((record, list(new.values())))
        self.scores.ask_compare(asked)
        return found

    def _read_ahead(self, readings: Sequence[Reading], place: int, tried: Counter[tuple[str, str]]) -> None:
        """Have this pair and the next ones read, unless that is done: those of which none makes another one needless
        if it turns out to be copies."""
        if not self._is_open(readings[place], tried) or self.scores.has_read(readings[place]):
            return
        most, joined = _READINGS_AHEAD * self.scores.width, Families()
        asked: list[Reading] = []
        for reading in readings[place:]:
            if len(asked) == most:
                break
            one, other = joined.pair(*self._families.pair(*map(content_of, reading)))
            if one != other and self._is_open(reading, tried) and not self.scores.has_read(reading):
                asked.append(reading)
                joined.join(one, other)
        self.scores.ask_readings(asked)

    def _is_open(self, reading: Reading, tried: Counter[tuple[str, str]]) -> bool:
        """Whether a pair is still to be read: its families are neither one nor known to be two."""
        families = self._families.pair(*map(content_of, reading))
        return families[0] != families[1] and tried[families] < _MOST_OF_FAMILY


def is_clear(result: PairResult, threshold: float) -> bool:
    """Whether a finer reading would leave this pair above the threshold of groups."""
    return result.score >= threshold + _CLEAR and min(result.covered) >= _SHOWN_WHOLE
