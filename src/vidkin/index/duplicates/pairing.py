"""Find pairs of an index with the same material: candidates by stored features, doubtful ones read again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from vidkin.errors import NotIndexedError
from vidkin.features.contracts import Turn
from vidkin.index.duplicates.comparisons import Comparisons, PairResult, content_of, relation_of
from vidkin.index.duplicates.scope import Lookups, PairScope
from vidkin.index.duplicates.signatures import Pose, Signatures
from vidkin.index.query.common import CommonFrames, weigh_features
from vidkin.index.query.query import Query, Readings
from vidkin.index.query.stages import find_candidates, score_pair, swap_sides
from vidkin.index.query.turned import SURE_ENOUGH, TURN_MARGIN, say_turned
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.similarity import FrameFeatures, PairScore, Scorer
from vidkin.similarity.contracts import PromisingScorer

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# Below this score in one direction, a pair is not scored in the other: of 180 pairs 82 were below, and none of them
# reached .21 there.
_UNLIKE = 0.05
# From this score and this share of the shorter video on, a finer reading makes no visible difference.
_SURE = 0.97
_SHOWN_WHOLE = 0.95
# A pair this far above the threshold of groups, shown nearly whole on both sides, stays what it is however finely it is
# read.
_CLEAR = 0.15
# Least share of the longer video that two copies as a whole can have in common, by `PromisingScorer.promise`; and least
# share of the shorter one, or of two seconds, for a part. None of 1,104 copies as a whole was below, and one of 2,900
# pairs that share anything.
_LEAST_OF_WHOLE, _LEAST_OF_PART = 0.04, 0.06
_SECONDS_OF_PART = 2.0
# A pair of which less is shown, by stored features, is no copy as a whole however finely it is read.
_MAYBE_WHOLE = 0.4
# With how many files of one family a family is compared: one that was cropped may look less like the other.
_MOST_OF_FAMILY = 2
# How far the score of a predicted mirror image may be below that of the true one.
_PREDICTED_LESS = 0.25
# Number of videos, and of those to look up among them, from which all are compared at once by what they show on
# average: reading that of all takes about as long as looking up five of them. With fewer, a search for each costs
# little.
_FEWEST_JOINED, _FEWEST_ASKING = 512, 5
# Then the true ones come earlier: of 196 edited copies among 1,268 videos, no family fell apart with ten neighbors in
# place of twenty. What is flipped or turned is nearest of all to the few that show it so.
_FEWER_JOINED, _TURNED_JOINED = 2, 6
# Turns that are looked for, in the order in which they are tried, and least score of a prediction that is read.
_TURNS: tuple[Pose, ...] = (
    *("turned 90", "turned 270", "turned 180"),
    *("turned 180, mirrored", "turned 90, mirrored", "turned 270, mirrored"),
)
_LEAST_PREDICTED = 0.2
# Attempts to compare a video whose neighbors are removed meanwhile.
_MOST_READINGS = 5
# Times the number of neighbors up to which is searched for those in scope.
_MOST_WIDENED = 16
# Bytes of features that are held, in single precision.
_MOST_HELD = 128 << 20


class Families:
    """Contents that belong together for certain, each family with a name: one of its contents."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def name(self, content: str) -> str:
        """Name of a content's family; its own if it is alone."""
        while (parent := self._parents.setdefault(content, content)) != content:
            # Half the way to the name, so that the next look is shorter.
            self._parents[content] = content = self._parents[parent]
        return content

    def join(self, first: str, second: str) -> None:
        """Make one family of two."""
        one, other = self.pair(first, second)
        self._parents[other] = one

    def pair(self, first: str, second: str) -> tuple[str, str]:
        """Names of the families of two contents, in one order; equal if they are in one."""
        return in_order(self.name(first), self.name(second))


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
    _held: OrderedDict[int, FrameFeatures] = field(default_factory=OrderedDict, init=False)
    _held_bytes: int = field(default=0, init=False)
    _flips: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    _predicted: set[str] = field(default_factory=set, init=False)
    # The most promising pair of two families of which one may be turned, its score as predicted, and the degrees.
    _turns: dict[tuple[str, str], tuple[float, _Reading]] = field(default_factory=dict, init=False)
    _families: Families = field(default_factory=Families, init=False)
    _met: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _unlike: set[tuple[str, str]] = field(default_factory=set, init=False)
    # Whether each video is looked up in this run, so that a part of a picture is found by those that show it whole.
    _all_ask: bool = field(default=False, init=False)
    # What all videos show on average, if so many are looked up that this is less work.
    _signatures: Signatures | None = field(default=None, init=False)

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
        is_worth = len(by_content) >= _FEWEST_JOINED and asking >= _FEWEST_ASKING
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
            for record, near in self._in_blocks(searching, by_content):
                if self._search(record, by_content, threshold, near):
                    searched.add([content_of(record)])
                    wholes.add([content_of(record)])
                advance()
            for record, near in self._in_blocks(turning, by_content, "mirrored"):
                if self._search_flipped(record, by_content, threshold, near):
                    flipped.add([content_of(record)])
                advance()
            for turn in _TURNS:
                for record, near in self._in_blocks(rotating, by_content, turn):
                    self._search_turned(record, by_content, turn, near)
                    if turn == _TURNS[-1]:
                        advance()
            doubtful = self._doubtful(by_content, threshold)
            total += len(doubtful)
            # Families that an earlier run found to be two are not read again.
            tried = Counter(
                self._families.pair(first, second) for first, second, result in self.known.pairs() if result.fine
            )
            for reading in doubtful:
                self._settle(reading, threshold, tried)
                advance()
            # Only now: a pair that was not read is found again by the next run.
            flipped.add(self._predicted)
            turned.add(map(content_of, rotating))
            for lookups, asked in ((searched, searching), (flipped, turning), (turned, rotating)):
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

    def refine(self, first: VideoRecord, second: VideoRecord) -> PairResult:
        """The result of a pair by reading both files as finely as queries, unless that is known or impossible."""
        result = self.compare(first, second)
        is_stored = self._is_stored_finely(first, second) and not result.mirrored
        if self.readings is None or result.fine or is_stored:
            return result
        self._refine(_Reading(first, second, 3 if result.mirrored else 0), 0.0)
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
            found = _result(self.scorer.score(predicted, [other], mirrored=True)[0], predicted, other)
            if is_clear(found, threshold) and result.score <= found.score - _PREDICTED_LESS:
                self.known.put(content_of(first), content_of(second), found)
                return self.compare(first, second)
        self._refine(_Reading(first, second, 3), 0.0)
        return self.compare(first, second)

    def find_turned(
        self, first: VideoRecord, second: VideoRecord, degrees: int, *, mirrored: bool = False
    ) -> PairResult:
        """The result of a pair of which other copies say that the first has to be turned by so many degrees, and
        flipped afterwards or not."""
        result = self.compare(first, second)
        if self.readings is None or result.fine or not result.is_upright:
            return result
        self._refine_turned(_Reading(first, second, int(mirrored), degrees))
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
        missing = [record for record in records if record.id not in self._held]
        found = {record.id: self._held[record.id] for record in records if record.id in self._held}
        for record, features in zip(missing, self.store.read_many([each.id for each in missing]), strict=True):
            weighed = weigh_features(features, self.common, record.duration)
            self._held[record.id] = found[record.id] = weighed
            self._held_bytes += _bytes_of(weighed)
        for record in records:
            self._held.move_to_end(record.id)
        while self._held_bytes > _MOST_HELD and len(self._held) > 1:
            self._held_bytes -= _bytes_of(self._held.popitem(last=False)[1])
        return [found[record.id] for record in records]

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
            turns: list[Pose] = ["mirrored", *_TURNS] if self.mirrored else []
            # What two videos share is only foreseen for a scorer that compares pictures as single vectors.
            can_foresee = isinstance(self.scorer, PromisingScorer) and self.readings.has_single_vectors
            measure = self.readings.measure_baseline if can_foresee else None
            return Signatures.of(self.store, ids, self._predict, turns, measure)
        except NotIndexedError:
            self.store.refresh()
            return None

    def _in_blocks(
        self, records: Sequence[VideoRecord], others: dict[str, VideoRecord], turn: Pose | None = None
    ) -> Iterator[tuple[VideoRecord, list[VideoRecord] | None]]:
        """Videos with their neighbors, which are found for many at once; None where each is looked up by itself."""
        if self._signatures is None or (turn is not None and turn not in self._signatures.turned):
            yield from ((record, None) for record in records)
            return
        by_id = {record.id: record for record in others.values()}
        count = max(1, self.neighbors // _FEWER_JOINED) if turn is None else _TURNED_JOINED
        found = self._signatures.neighbors([record.id for record in records], count, turn=turn, both=not self._all_ask)
        for video, near in found:
            yield by_id[video], [by_id[other] for other in near]

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
                    neighbors = self._neighbors(self._query(self._weighed(record)), record, others)
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
        neighbors = [
            other
            for other in neighbors
            if self.known.get(content, content_of(other)) is None and pairs[content_of(other)] not in self._unlike
        ]
        if not neighbors:
            return  # of hundreds of videos most have none: nothing is read for them
        one = self._weighed(record)
        met = []
        for other, promises in zip(neighbors, self._promise(one, self.stored(neighbors)), strict=True):
            if promises:
                met.append(other)
            else:
                self._unlike.add(pairs[content_of(other)])
        for other in met:
            families = self._families.pair(content, content_of(other))
            # Those of one family are compared when one of them is chosen to be kept.
            if families[0] == families[1] or self._met[families] >= _MOST_OF_FAMILY:
                continue
            self._compare_many(record, [other])
            result = self.known.get(content, content_of(other))
            if result is not None and self._is_final(record, other, result, threshold):
                self._join(content, content_of(other))
            else:
                self._met[families] += 1

    def _promise(self, one: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[bool]:
        """Whether each target can be a copy of the video, or share a part with it, in the eyes of the scorer."""
        if not isinstance(self.scorer, PromisingScorer):
            return [True] * len(targets)
        promising = []
        for target, seconds in zip(targets, self.scorer.promise(one, targets).tolist(), strict=True):
            lengths = sorted(float(side.information.sum()) * side.period for side in (one, target))
            if self.parts:
                promising.append(seconds >= _LEAST_OF_PART * min(_SECONDS_OF_PART, lengths[0]))
            else:
                promising.append(seconds >= _LEAST_OF_WHOLE * lengths[1])
        return promising

    def _compare_many(self, record: VideoRecord, others: Sequence[VideoRecord]) -> None:
        """Compare a video with others by stored features, where that is not known yet."""
        content = content_of(record)
        others = [other for other in others if self.known.get(content, content_of(other)) is None]
        one, targets = self._weighed(record), self.stored(others)
        for other, target, score in zip(others, targets, self.scorer.score(one, targets), strict=True):
            best = score
            # As in score_pair: the other direction may find a line that this one misses by a frame. Where hardly
            # anything is similar, there is none.
            if _UNLIKE <= score.score < _SURE:
                best = max(score, swap_sides(self.scorer.score(target, [one])[0]), key=lambda found: found.score)
            self.known.put(content, content_of(other), _result(best, one, target))

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
            predicted = self.readings.predict_turned(self._weighed(record), "mirrored")
            features = self.readings.flipped(record) if predicted is None else predicted
            if features is None:
                return False
            if near is None:
                near = self._other_families(content, self._neighbors(self._query(features), record, others))
            neighbors, targets = near, self.stored(near)
        except NotIndexedError:
            self.store.refresh()
            return False
        alike = [place for place, promises in enumerate(self._promise(features, targets)) if promises]
        scores = self.scorer.score(features, [targets[place] for place in alike], mirrored=True)
        for place, score in zip(alike, scores, strict=True):
            other = neighbors[place]
            result = self.known.get(content, content_of(other))
            known = 0.0 if result is None else result.score
            if score.score < _DOUBTFUL:
                continue
            # Takes of one scene look alike either way; a mirrored copy is more similar when flipped.
            if predicted is not None:
                # A pair that is in one group as it is needs no other reason.
                if known < min(threshold, score.score + _PREDICTED_LESS):
                    self._keep_flip(record, other, _result(score, features, targets[place]), known, threshold)
            elif score.score > known:
                self.known.put(content, content_of(other), _result(score, features, targets[place], fine=False))
        if predicted is not None:
            self._predicted.add(content)
        return predicted is None

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
        self, record: VideoRecord, others: dict[str, VideoRecord], turn: Pose, near: list[VideoRecord] | None
    ) -> None:
        """Compare whole pictures of a video after a turn, as they are predicted, with its neighbors: pairs that may
        match are noted, the best of each two families."""
        assert self.readings is not None  # as for mirrored copies
        content, (degrees, flipped) = content_of(record), _turn_of(turn)
        if self._families.name(content) != content:
            return  # one of a family is enough
        unsure = None if near is None else self._maybe_turned(content, near)
        if unsure is not None and not unsure:
            return  # before anything is read: so it is for most of hundreds of videos
        try:
            weighed = self._weighed(record)
            told = np.flatnonzero(weighed.information > 0)
            seen = self._predict(weighed.frames(told), turn) if len(told) else None
            if seen is None:
                return
            predicted = self.readings.calibration.calibrate(seen)
            if unsure is None:
                unsure = self._maybe_turned(content, self._neighbors(Query(predicted), record, others))
            targets = [target.views([0]) for target in self.stored(unsure)]
        except NotIndexedError:
            self.store.refresh()
            return
        alike = [place for place, promises in enumerate(self._promise(predicted, targets)) if promises]
        scores = self.scorer.score(predicted, [targets[place] for place in alike], mirrored=flipped)
        for place, score in zip(alike, scores, strict=True):
            other = unsure[place]
            families = self._families.pair(content, content_of(other))
            if score.score < _LEAST_PREDICTED or score.score <= self._turns.get(families, (0.0,))[0]:
                continue
            covered = _result(score, predicted, targets[place]).covered
            if self.parts or min(covered) >= _MAYBE_WHOLE:
                self._turns[families] = score.score, _Reading(record, other, int(flipped), degrees)

    def _predict(self, features: FrameFeatures, pose: Pose) -> FrameFeatures | None:
        """About what would be seen in whole pictures in a pose, without a baseline; None if unknown."""
        assert self.readings is not None  # else nothing is predicted
        turn, *flip = pose.split(", ")
        seen = self.readings.predict(features, cast(Turn, turn))
        return self.readings.predict(seen, "mirrored") if flip and seen is not None else seen

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
        """Pairs to read again if their families are not one by then, the most promising of each family first."""
        if self.readings is None:
            return []
        doubtful: dict[tuple[str, str], tuple[float, _Reading]] = {}
        flips = Counter(content for pair in self._flips for content in pair)
        for (first, second), score in self._flips.items():
            reading = _Reading(others[first], others[second], (flips[first] < flips[second]) + 1)
            doubtful[first, second] = score, reading
        floor = min(_DOUBTFUL, threshold / 2)
        for first, second, result in self.known.pairs():
            if first not in others or second not in others or result.fine or not floor <= result.score:
                continue
            if not self.pairs.allows(first, second):
                continue
            one, other = others[first], others[second]
            # Frames of an excerpt fall between those of the film, so stored features may miss part of the match.
            is_sure = result.score >= _SURE and max(result.covered) >= _SHOWN_WHOLE
            if is_clear(result, threshold) or not (self.parts or min(result.covered) >= _MAYBE_WHOLE):
                continue
            if result.mirrored:
                doubtful.setdefault((first, second), (result.score, _Reading(one, other, 3)))
            elif not (self._is_stored_finely(one, other) or is_sure):
                doubtful.setdefault((first, second), (result.score, _Reading(one, other, 0)))
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

    def _settle(self, reading: _Reading, threshold: float, tried: Counter[tuple[str, str]]) -> None:
        """Read a pair again, unless its families are one already or were found to be two."""
        first, second = content_of(reading.first), content_of(reading.second)
        families = self._families.pair(first, second)
        if families[0] == families[1] or tried[families] >= _MOST_OF_FAMILY:
            return
        self._refine(reading, threshold)
        result = self.known.get(first, second)
        if result is not None and self._is_final(reading.first, reading.second, result, threshold):
            self._join(first, second)
        else:
            tried[families] += 1

    def _refine(self, reading: _Reading, threshold: float) -> None:
        assert self.readings is not None  # else no pair is doubtful
        if reading.turned:
            self._refine_turned(reading)
            return
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

    def _refine_turned(self, reading: _Reading) -> None:
        """Read the first video of a pair turned; its result counts if it is clearly better than as it is."""
        assert self.readings is not None  # else nothing is turned
        first, second = content_of(reading.first), content_of(reading.second)
        try:
            flipped = reading.flipped != 0
            query = self.readings.turned(reading.first, reading.turned, mirrored=flipped)
            other = self.readings.finest(reading.second).plain
        except NotIndexedError:
            return  # removed by another process meanwhile
        one = None if query is None else query.mirrored if flipped else query.plain
        if one is None:
            return
        forth = self.scorer.score(one, [other], mirrored=flipped)[0]
        back = swap_sides(self.scorer.score(other, [one], mirrored=flipped)[0])
        best = max(forth, back, key=lambda score: score.score)
        known = self.known.get(first, second)
        if best.score > (0.0 if known is None else known.score) + TURN_MARGIN:
            result = _result(say_turned(best, reading.turned), one, other, fine=True)
            self.known.put(first, second, result)

    def _read(self, reading: _Reading, sides: int) -> tuple[PairScore, Query, Query]:
        assert self.readings is not None
        one = self.readings.finest(reading.first, mirrored=bool(sides & 1))
        other = self.readings.finest(reading.second, mirrored=bool(sides & 2))
        return score_pair(one, other, self.scorer), one, other

    def _weighed(self, record: VideoRecord) -> FrameFeatures:
        return self.stored([record])[0]


def _turn_of(pose: Pose) -> tuple[int, bool]:
    """Degrees clockwise, and whether the picture is flipped afterwards, of "turned 90, mirrored" and the like."""
    turn, *flip = pose.split(", ")
    return int(turn.split()[1]), bool(flip)


def in_order(first: str, second: str) -> tuple[str, str]:
    """The two names in one order, whichever comes first."""
    return (first, second) if first <= second else (second, first)


def is_clear(result: PairResult, threshold: float) -> bool:
    """Whether a finer reading would leave this pair above the threshold of groups."""
    return result.score >= threshold + _CLEAR and min(result.covered) >= _SHOWN_WHOLE


def _bytes_of(features: FrameFeatures) -> int:
    """What held features take: scoring keeps the views of short videos a second time."""
    return 2 * features.values.nbytes


@dataclass(frozen=True, slots=True)
class _Reading:
    """A pair to read again.

    Attributes:
        first, second: The videos.
        flipped: Which of them to flip as well: 0 none, 1 the first, 2 the second, 3 both.
        turned: Degrees by which the first is turned clockwise, in place of the other readings, and then flipped if
            ``flipped`` is 1.
    """

    first: VideoRecord
    second: VideoRecord
    flipped: int
    turned: int = 0


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
