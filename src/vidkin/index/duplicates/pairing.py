"""Find pairs of an index with the same material: candidates by stored features, doubtful ones read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from vidkin.errors import NotIndexedError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of, relation_of
from vidkin.index.duplicates.grouping import Families, in_order
from vidkin.index.duplicates.pair_scores import (
    SURE_AS_STORED,
    PairJob,
    PairScorer,
    Reading,
    ScoresAhead,
    predict,
    result_of,
    turn_of,
)
from vidkin.index.duplicates.scope import Lookups, PairScope
from vidkin.index.duplicates.signatures import PoseName, Signatures
from vidkin.index.query.candidates import SURE_ENOUGH, TURN_MARGIN, find_candidates
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import Query, Readings
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task
from vidkin.similarity import FrameFeatures, Scorer
from vidkin.similarity.contracts import PromisingScorer

_WithNear = tuple[VideoRecord, list[VideoRecord] | None]

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# Share of the shorter video from which on, with a score of SURE_AS_STORED, a finer reading makes no visible difference.
_SHOWN_WHOLE = 0.95
# A pair this far above the threshold of groups, shown nearly whole on both sides, stays what it is however finely it is
# read.
_CLEAR = 0.15
# A pair of which less is shown, by stored features, is no copy as a whole however finely it is read.
_MAYBE_WHOLE = 0.4
# With how many files of one family a family is compared: one that was cropped may look less like the other.
_MOST_OF_FAMILY = 2
# How far the score of a predicted mirror image may be below that of the true one.
_PREDICTED_LESS = 0.25
# Number of videos, and of those to look up among them, from which all are compared at once by what they show on
# average: reading that of all takes about as long as looking up one of 500, at least five, of them. With fewer, a
# search for each costs little.
_FEWEST_JOINED, _FEWEST_ASKING, _SHARE_ASKING = 512, 5, 500
# Then the true ones come earlier: of 196 edited copies among 1,268 videos, no family fell apart with ten neighbors in
# place of twenty. What is flipped or turned is nearest of all to the few that show it so.
_FEWER_JOINED, _TURNED_JOINED = 2, 6
# The same where each video is looked up by itself.
_TURNED_ALONE = 8
# Turns that are looked for, in the order in which they are tried, and least score of a prediction that is read.
_TURNS: tuple[PoseName, ...] = (
    *("turned 90", "turned 270", "turned 180"),
    *("turned 180, mirrored", "turned 90, mirrored", "turned 270, mirrored"),
)
_LEAST_PREDICTED = 0.2
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
        readings: Reads files again; None compares stored features only, and finds no mirrored or turned copies.
        mirrored: Also look for copies that were flipped left to right, or turned.
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
    mirrored: bool = True
    parts: bool = False
    neighbors: int = 20
    pairs: PairScope = field(default_factory=PairScope)
    sound: SoundSearch | None = None
    scores: ScoresAhead = field(init=False)
    _flips: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    _predicted: set[str] = field(default_factory=set, init=False)
    # The most promising pair of two families of which one may be turned, its score as predicted, and the degrees.
    _turns: dict[tuple[str, str], tuple[float, Reading]] = field(default_factory=dict, init=False)
    _families: Families = field(default_factory=Families, init=False)
    _met: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _unlike: set[tuple[str, str]] = field(default_factory=set, init=False)
    # Whether each video is looked up in this run, so that a part of a picture is found by those that show it whole.
    _all_ask: bool = field(default=False, init=False)
    # What all videos show on average, if so many are looked up that this is less work.
    _signatures: Signatures | None = field(default=None, init=False)

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
        flipping = by_content if self.mirrored and self.readings is not None else {}
        wholes = Lookups(self.pairs, self.known.searched, self.known.scoped, "searched")
        searched = Lookups(self.pairs, self.known.searched_parts, self.known.scoped, "parts") if self.parts else wholes
        flipped = Lookups(self.pairs, self.known.flipped, self.known.scoped, "flipped")
        turned = Lookups(self.pairs, self.known.turned, self.known.scoped, "turned")
        searching = [by_content[content] for content in searched.pending(by_content)]
        turning = [by_content[content] for content in flipped.pending(flipping)]
        rotating = [by_content[content] for content in turned.pending(flipping)]
        self._all_ask = len(searching) == len(by_content)
        total = len(by_content) + 2 * len(flipping)
        done = total - len(searching) - len(turning) - len(rotating)
        self._families = Families()
        self._signatures = None
        asking = max(len(searching), len(turning), len(rotating))
        enough = max(_FEWEST_ASKING, len(by_content) // _SHARE_ASKING)
        is_worth = len(by_content) >= _FEWEST_JOINED and asking >= enough
        if is_worth and self.pairs.scope.is_everything and not self.parts:
            self._signatures = self._read_signatures(by_content.values())
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
            for record, near in self._ahead(
                self._in_blocks(searching, by_content), partial(self._ask_compare, by_content)
            ):
                if self._search(record, by_content, threshold, near):
                    searched.add([content_of(record)])
                    wholes.add([content_of(record)])
                advance()
            for record, near in self._ahead(
                self._in_blocks(turning, by_content, "mirrored"), partial(self._ask_flips, by_content)
            ):
                if self._search_flipped(record, by_content, threshold, near):
                    flipped.add([content_of(record)])
                advance()
            for turn in _TURNS:
                for record, near in self._ahead(
                    self._in_blocks(rotating, by_content, turn), partial(self._ask_turns, by_content, turn)
                ):
                    self._search_turned(record, by_content, turn, near)
                    if turn == _TURNS[-1]:
                        advance()
            doubtful = self._doubtful(by_content, threshold)
            total += len(doubtful)
            # Families that an earlier run found to be two are not read again.
            tried = Counter(
                self._families.pair(first, second) for first, second, result in self.known.pairs() if result.fine
            )
            for place, reading in enumerate(doubtful):
                if self.scores.width:
                    self._read_ahead(doubtful, place, threshold, tried)
                self._settle(reading, threshold, tried)
                advance()
            # Only now: a pair that was not read is found again by the next run.
            flipped.add(self._predicted)
            turned.add(map(content_of, rotating))
            for lookups, asked in ((searched, searching), (flipped, turning), (turned, rotating)):
                lookups.settle(by_content, map(content_of, asked))
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
        is_stored = self._is_stored_finely(first, second) and not result.mirrored
        if self.readings is None or result.fine or is_stored:
            return result
        self._refine(Reading(first, second, 3 if result.mirrored else 0), 0.0)
        return self.compare(first, second)

    def find_flipped(self, first: VideoRecord, second: VideoRecord, threshold: float) -> PairResult:
        """The result of a pair of which other copies say that one is a mirror image of the other: by predicted features
        where they leave no doubt, otherwise by reading both files."""
        result = self.compare(first, second)
        if self.readings is None or result.fine or result.mirrored:
            return result
        one, other = self.stored([first, second])
        predicted = self.readings.predict_turned(one, "mirrored")
        if predicted is not None:
            found = result_of(self.scorer.score(predicted, [other], mirrored=True)[0], predicted, other)
            if is_clear(found, threshold) and result.score <= found.score - _PREDICTED_LESS:
                self.known.put(content_of(first), content_of(second), found)
                return self.compare(first, second)
        self._refine(Reading(first, second, 3), 0.0)
        return self.compare(first, second)

    def find_turned(
        self, first: VideoRecord, second: VideoRecord, degrees: int, *, mirrored: bool = False
    ) -> PairResult:
        """The result of a pair of which other copies say that the first has to be turned by so many degrees, and
        flipped afterwards or not."""
        result = self.compare(first, second)
        if self.readings is None or result.fine or not result.is_upright:
            return result
        self._refine(Reading(first, second, int(mirrored), degrees), 0.0)
        found = self.compare(first, second)
        if not found.turned:
            # It was looked at; what is known of the pair as it is stays.
            self.known.put(content_of(first), content_of(second), replace(found, fine=True))
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
        if is_clear(result, threshold):
            return is_whole
        return is_whole and (result.fine or (not result.mirrored and self._is_stored_finely(first, second)))

    def _is_stored_finely(self, first: VideoRecord, second: VideoRecord) -> bool:
        return self.readings is None or (
            self.readings.is_stored_as_finely(first) and self.readings.is_stored_as_finely(second)
        )

    def _read_signatures(self, records: Iterable[VideoRecord]) -> Signatures | None:
        """What these videos show on average; None if one of them was removed meanwhile."""
        try:
            ids = [record.id for record in records]
            if self.readings is None:
                return Signatures.of(self.store, ids)
            turns: list[PoseName] = ["mirrored", *_TURNS] if self.mirrored else []
            # What two videos share is only foreseen for a scorer that compares pictures as single vectors.
            can_foresee = isinstance(self.scorer, PromisingScorer) and self.readings.has_single_vectors
            measure = self.readings.measure_baseline if can_foresee else None
            return Signatures.of(self.store, ids, partial(predict, self.readings), turns, measure)
        except NotIndexedError:
            self.store.refresh()
            return None

    def _in_blocks(
        self, records: Sequence[VideoRecord], others: dict[str, VideoRecord], turn: PoseName | None = None
    ) -> Iterator[tuple[VideoRecord, list[VideoRecord] | None]]:
        """Videos with their neighbors, which are found for many at once; None where each is looked up by itself."""
        if self._signatures is None or (turn is not None and turn not in self._signatures.turned):
            yield from ((record, None) for record in records)
            return
        by_id = {record.id: record for record in others.values()}
        count = max(1, self.neighbors // _FEWER_JOINED) if turn is None else _TURNED_JOINED
        # Of a family one is looked up after a turn, and who is not its first now will not be later.
        asking = [record for record in records if turn is None or self._is_first(record)]
        ids, both = [record.id for record in asking], not self._all_ask
        if self.scores.mapper is None:
            found = self._signatures.neighbors(ids, count, turn=turn, both=both)
        else:
            tasks = [Task("neighbors_of", (block, count, turn, both)) for block in self._signatures.blocks(ids)]
            found = chain.from_iterable(self.scores.mapper.run(self._signatures, tasks))
        asked = set(ids)
        for record in records:
            near = next(found)[1] if record.id in asked else []
            yield record, [by_id[other] for other in near]

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
        """Compare a video with those of its neighbors that can be copies and whose family it has not met."""
        content = content_of(record)
        pairs = {content_of(other): in_order(content, content_of(other)) for other in neighbors}
        neighbors = [other for other in neighbors if self._is_unknown(*pairs[content_of(other)])]
        if not neighbors:
            return  # of hundreds of videos most have none: nothing is read for them
        met = []
        for other, promises in zip(neighbors, self.scores.promises(record, neighbors, self.parts), strict=True):
            if promises:
                met.append(other)
            else:
                self._unlike.add(pairs[content_of(other)])
        for other in met:
            if not self._is_unknown(*pairs[content_of(other)]):
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
        return not (is_met or (first, second) in self._unlike or self.known.get(first, second) is not None)

    def _search_flipped(
        self,
        record: VideoRecord,
        others: dict[str, VideoRecord],
        threshold: float,
        near: list[VideoRecord] | None = None,
    ) -> bool:
        """Compare the mirror image of a video with its neighbors; whether nothing of that is left to be read."""
        assert self.readings is not None  # run() looks for mirrored copies only with readings
        content = content_of(record)
        # One of a family is enough: what it is a mirror image of, the others are, too.
        if self._families.name(content) != content:
            self._predicted.add(content)
            return False
        if near is not None:
            near = self._other_families(content, near)
        if near is not None and not near:
            self._predicted.add(content)  # whatever it shows flipped, no other video is like it
            return False
        try:
            look = None
            if near is None:
                image, look = self._mirror_image(record)
                if image is None:
                    return False
                near = self._other_families(content, self._neighbors(self._query(image), record, others, _TURNED_ALONE))
            flips = self.scores.flips(record, near, look, self.parts)
        except NotIndexedError:
            self.store.refresh()
            return False
        if flips is None:
            return False
        is_predicted, results = flips
        for other, found in zip(near, results, strict=True):
            result = self.known.get(content, content_of(other))
            known = 0.0 if result is None else result.score
            if found is None or found.score < _DOUBTFUL:
                continue
            # Takes of one scene look alike either way; a mirrored copy is more similar when flipped.
            if is_predicted:
                # A pair that is in one group as it is needs no other reason.
                if known < min(threshold, found.score + _PREDICTED_LESS):
                    self._keep_flip(record, other, found, known, threshold)
            elif found.score > known:
                self.known.put(content, content_of(other), found)
        if is_predicted:
            self._predicted.add(content)
        return not is_predicted

    def _mirror_image(self, record: VideoRecord) -> tuple[FrameFeatures | None, FrameFeatures | None]:
        """The mirror image of a video, if it can be told; and the same if its file was read for it."""
        predicted = self.scores.predict_flipped(record)
        look = self.scores.flipped_look(record) if predicted is None else None
        return (look if predicted is None else predicted), look

    def _other_families(self, content: str, near: Sequence[VideoRecord]) -> list[VideoRecord]:
        """Those of other families than a video, of which no flip is known either."""
        return [
            other
            for other in near
            if self._families.name(content_of(other)) != content
            and in_order(content, content_of(other)) not in self._flips
        ]

    def _keep_flip(
        self, record: VideoRecord, other: VideoRecord, result: PairResult, known: float, threshold: float
    ) -> None:
        """Note what a predicted mirror image says of a pair: it is a copy, or it deserves a reading."""
        first, second = in_order(content_of(record), content_of(other))
        if is_clear(result, threshold) and known <= result.score - _PREDICTED_LESS:
            self.known.put(content_of(record), content_of(other), result)
            self._join(first, second)
        elif self.parts or min(result.covered) >= _MAYBE_WHOLE:
            self._flips[first, second] = max(result.score, self._flips.get((first, second), 0.0))

    def _search_turned(
        self, record: VideoRecord, others: dict[str, VideoRecord], turn: PoseName, near: list[VideoRecord] | None
    ) -> None:
        """Compare whole pictures of a video after a turn, as they are predicted, with its neighbors: pairs that may
        match are noted, the best of each two families."""
        assert self.readings is not None  # as for mirrored copies
        content, (degrees, flipped) = content_of(record), turn_of(turn)
        if self._families.name(content) != content:
            return  # one of a family is enough
        unsure = None if near is None else self._maybe_turned(content, near)
        if unsure is not None and not unsure:
            return  # before anything is read: so it is for most of hundreds of videos
        try:
            if unsure is None:
                predicted = self.scores.predict_turned(record, turn)
                if predicted is None:
                    return
                unsure = self._maybe_turned(content, self._neighbors(Query(predicted), record, others, _TURNED_ALONE))
            results = self.scores.turns(record, turn, unsure, self.parts)
        except NotIndexedError:
            self.store.refresh()
            return
        for other, found in zip(unsure, results, strict=True):
            families = self._families.pair(content, content_of(other))
            if found is None or found.score < _LEAST_PREDICTED or found.score <= self._turns.get(families, (0.0,))[0]:
                continue
            if self.parts or min(found.covered) >= _MAYBE_WHOLE:
                self._turns[families] = found.score, Reading(record, other, int(flipped), degrees)

    def _maybe_turned(self, content: str, near: Sequence[VideoRecord]) -> list[VideoRecord]:
        """Those of other families than a video that are not known to be like it as it is."""
        found = []
        for other in near:
            result = self.known.get(content, content_of(other))
            one, family = self._families.pair(content, content_of(other))
            if one != family and (result is None or result.score < SURE_ENOUGH):
                found.append(other)
        return found

    def _query(self, features: FrameFeatures) -> Query:
        """What is looked up for a video: its whole pictures and their parts, which are twenty times as many."""
        return Query(features.views([0]) if self._all_ask else features)

    def _neighbors(
        self, query: Query, record: VideoRecord, others: dict[str, VideoRecord], most: int | None = None
    ) -> list[VideoRecord]:
        """The videos nearest to what is looked up for one, at most this many or as many as it is compared with."""
        content, most = content_of(record), self.neighbors if most is None else min(most, self.neighbors)
        by_id = {other.id: other for name, other in others.items() if self.pairs.allows(content, name)}
        count = most + 1
        while True:
            candidates = find_candidates(self.store, query, count)
            found = [by_id[other] for other in candidates if other in by_id and other != record.id]
            if self.pairs.scope.is_everything:
                return found
            # Copies that are out of scope may be nearer than those in it.
            enough = min(most, len(by_id) - (record.id in by_id))
            if len(found) >= enough or count > _MOST_WIDENED * most:
                return found[:most]
            count *= 4

    def _doubtful(self, others: dict[str, VideoRecord], threshold: float) -> list[Reading]:
        """Pairs to read again if their families are not one by then, the most promising of each family first."""
        if self.readings is None:
            return []
        doubtful: dict[tuple[str, str], tuple[float, Reading]] = {}
        flips = Counter(content for pair in self._flips for content in pair)
        for (first, second), score in self._flips.items():
            reading = Reading(others[first], others[second], (flips[first] < flips[second]) + 1)
            doubtful[first, second] = score, reading
        floor = min(_DOUBTFUL, threshold / 2)
        for first, second, result in self.known.pairs():
            if first not in others or second not in others or result.fine or not floor <= result.score:
                continue
            if not self.pairs.allows(first, second):
                continue
            one, other = others[first], others[second]
            # Frames of an excerpt fall between those of the film, so stored features may miss part of the match.
            is_sure = result.score >= SURE_AS_STORED and max(result.covered) >= _SHOWN_WHOLE
            if is_clear(result, threshold) or not (self.parts or min(result.covered) >= _MAYBE_WHOLE):
                continue
            if result.mirrored:
                doubtful.setdefault((first, second), (result.score, Reading(one, other, 3)))
            elif not (self._is_stored_finely(one, other) or is_sure):
                doubtful.setdefault((first, second), (result.score, Reading(one, other, 0)))
        for score, reading in self._turns.values():
            pair = in_order(content_of(reading.first), content_of(reading.second))
            doubtful.setdefault(pair, (score, reading))
        # Those that are connected after each other, so that what was read of a file is still held when its next pair
        # comes.
        connected = Families()
        for pair in doubtful:
            connected.join(*pair)
        return [
            doubtful[pair][1]
            for pair in sorted(doubtful, key=lambda pair: (connected.name(pair[0]), -doubtful[pair][0], pair))
        ]

    def _settle(self, reading: Reading, threshold: float, tried: Counter[tuple[str, str]]) -> None:
        """Read a pair again, unless its families are one already or were found to be two."""
        first, second = content_of(reading.first), content_of(reading.second)
        families = self._families.pair(first, second)
        if not self._is_open(reading, tried):
            return
        self._refine(reading, threshold)
        result = self.known.get(first, second)
        if result is not None and self._is_final(reading.first, reading.second, result, threshold):
            self._join(first, second)
        else:
            tried[families] += 1

    def _refine(self, reading: Reading, threshold: float) -> None:
        """Read a pair; a turned one counts if its score is clearly higher than as it is."""
        assert self.readings is not None  # else no pair is doubtful
        result = self.scores.read(reading, threshold)
        if result is None:
            return  # removed by another process meanwhile
        first, second = content_of(reading.first), content_of(reading.second)
        if reading.turned:
            known = self.known.get(first, second)
            if result.score <= (0.0 if known is None else known.score) + TURN_MARGIN:
                return
        self.known.put(first, second, result)

    # What is asked next, computed ahead where there is a mapper: a little more than what one process asks, as what the
    # pairs of a block say is not known yet.

    def _ahead(self, videos: Iterator[_WithNear], ask: Callable[[list[_WithNear]], None]) -> Iterator[_WithNear]:
        """The same videos, block by block, when what will be asked of those of a block has been computed."""
        if not self.scores.width:
            yield from videos
            return
        while block := list(islice(videos, _VIDEOS_AHEAD * self.scores.width)):
            self.scores.forget()
            ask(block)
            yield from block

    def _ask_compare(self, others: dict[str, VideoRecord], block: list[_WithNear]) -> None:
        """Have videos compared with their neighbors, which are looked up here if they are not known."""
        asked: list[tuple[VideoRecord, list[VideoRecord]]] = []
        seen: set[tuple[str, str]] = set()
        for place, (record, near) in enumerate(block):
            with suppress(NotIndexedError):  # it is noticed again when it is its turn
                if near is None:
                    near = self._look_up(record, others)
                    block[place] = record, near
            pairs = {in_order(content_of(record), content_of(other)): other for other in near or ()}
            new = {pair: other for pair, other in pairs.items() if pair not in seen and self._is_unknown(*pair)}
            seen.update(new)
            asked.append((record, list(new.values())))
        self.scores.ask_compare(asked, self.parts)

    def _ask_flips(self, others: dict[str, VideoRecord], block: list[_WithNear]) -> None:
        """Have the mirror images of videos compared with their neighbors."""
        self.scores.ask_flipped_looks([record for record, near in block if near is None and self._is_first(record)])
        asked: list[tuple[VideoRecord, list[VideoRecord], FrameFeatures | None]] = []
        for place, (record, near) in enumerate(block):
            if not self._is_first(record):
                continue
            look = None
            with suppress(NotIndexedError):
                if near is None:
                    image, look = self._mirror_image(record)
                    near = None if image is None else self._neighbors(self._query(image), record, others, _TURNED_ALONE)
                    block[place] = record, near
            asked.append((record, self._other_families(content_of(record), near or ()), look))
        self.scores.ask_flips(asked, self.parts)

    def _ask_turns(self, others: dict[str, VideoRecord], turn: PoseName, block: list[_WithNear]) -> None:
        """Have videos compared with their neighbors after a turn."""
        asked: list[tuple[VideoRecord, list[VideoRecord]]] = []
        for place, (record, near) in enumerate(block):
            if not self._is_first(record):
                continue
            with suppress(NotIndexedError):
                if near is None and (predicted := self.scores.predict_turned(record, turn)) is not None:
                    near = self._neighbors(Query(predicted), record, others, _TURNED_ALONE)
                    block[place] = record, near
            asked.append((record, self._maybe_turned(content_of(record), near or ())))
        self.scores.ask_turns(asked, turn, self.parts)

    def _read_ahead(
        self, readings: Sequence[Reading], place: int, threshold: float, tried: Counter[tuple[str, str]]
    ) -> None:
        """Have this pair and the next ones read, unless that is done: those of which none makes another one needless
        if it turns out to be copies."""
        if not self._is_open(readings[place], tried) or self.scores.has_read(readings[place]):
            return
        most, joined = _READINGS_AHEAD * self.scores.width, Families()
        asked: list[Reading] = []
        for reading in readings[place:]:
            if len(asked) == most:
                break
            one, other = joined.pair(*self._families.pair(content_of(reading.first), content_of(reading.second)))
            if one != other and self._is_open(reading, tried) and not self.scores.has_read(reading):
                asked.append(reading)
                joined.join(one, other)
        self.scores.ask_readings(asked, threshold)

    def _look_up(self, record: VideoRecord, others: dict[str, VideoRecord]) -> list[VideoRecord]:
        """The neighbors of a video as it is."""
        return self._neighbors(self._query(self.stored([record])[0]), record, others)

    def _is_first(self, record: VideoRecord) -> bool:
        """Whether a video is the one of its family that is looked up flipped and turned."""
        content = content_of(record)
        return self._families.name(content) == content

    def _is_open(self, reading: Reading, tried: Counter[tuple[str, str]]) -> bool:
        """Whether a pair is still to be read: its families are neither one nor known to be two."""
        families = self._families.pair(content_of(reading.first), content_of(reading.second))
        return families[0] != families[1] and tried[families] < _MOST_OF_FAMILY


def is_clear(result: PairResult, threshold: float) -> bool:
    """Whether a finer reading would leave this pair above the threshold of groups."""
    return result.score >= threshold + _CLEAR and min(result.covered) >= _SHOWN_WHOLE
