"""What pairs of videos score, by stored features or by reading their files again: the same wherever it is computed."""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from vidkin.errors import ClusterError, NotIndexedError
from vidkin.features.contracts import Turn
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.signatures import PoseName
from vidkin.index.query.candidates import say_turned
from vidkin.index.query.common import Calibration, CommonFrames, weigh_features
from vidkin.index.query.query import Query, Readings
from vidkin.index.query.stages import score_pair, swap_sides
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task, check_files_here
from vidkin.similarity import FrameFeatures, PairScore, Scorer
from vidkin.similarity.contracts import PromisingScorer

Flips = tuple[bool, list[PairResult | None]]
"""Whether the mirror image of a video is predicted, and its results with others."""

SURE_AS_STORED = 0.97
"""From this score on, and a share of the shorter video, a finer reading makes no visible difference."""

# Below this score in one direction, a pair is not scored in the other: of 180 pairs 82 were below, and none of them
# reached .21 there.
_UNLIKE = 0.05
# Least share of the longer video that two copies as a whole can have in common, by `PromisingScorer.promise`; and least
# share of the shorter one, or of two seconds, for a part. None of 1,104 copies as a whole was below, and one of 2,900
# pairs that share anything.
_LEAST_OF_WHOLE, _LEAST_OF_PART = 0.04, 0.06
_SECONDS_OF_PART = 2.0
# Bytes of features that are held, in single precision.
_MOST_HELD = 128 << 20


@dataclass(frozen=True, slots=True)
class Reading:
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


@dataclass(slots=True)
class PairScorer:
    """Scores of pairs of one index. What it returns depends on the two videos alone, and on nothing asked before.

    Attributes:
        store, common, scorer: Store, common frames and scorer of the index.
        readings: Reads files again; None compares stored features only.
        is_elsewhere: Whether this may be another machine than the one where a search was started, so that a file that
            is not here may be there.
    """

    store: VectorStore
    common: CommonFrames
    scorer: Scorer
    readings: Readings | None = None
    is_elsewhere: bool = False
    _held: OrderedDict[int, FrameFeatures] = field(default_factory=OrderedDict, init=False)
    _held_bytes: int = field(default=0, init=False)
    # The video that was turned last, how, and what it looks like.
    _turned: tuple[int, PoseName, FrameFeatures | None] | None = field(default=None, init=False)

    def ask(self, method: str, *arguments: Any) -> Any:
        """What a method returns; None if one of the videos was removed meanwhile."""
        try:
            return getattr(self, method)(*arguments)
        except NotIndexedError:
            return None

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

    def promises(self, record: VideoRecord, others: Sequence[VideoRecord], parts: bool) -> list[bool]:
        """Whether each of some videos can be a copy of a video, or share a part with it, in the eyes of the scorer."""
        return self._promises(self.stored([record])[0], self.stored(others), parts)

    def score(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """The result of a pair by stored features."""
        one, target = self.stored([record, other])
        best = self.scorer.score(one, [target])[0]
        # As in score_pair: the other direction may find a line that this one misses by a frame. Where hardly
        # anything is similar, there is none.
        if _UNLIKE <= best.score < SURE_AS_STORED:
            best = max(best, swap_sides(self.scorer.score(target, [one])[0]), key=lambda found: found.score)
        return result_of(best, one, target)

    def compare(self, record: VideoRecord, others: Sequence[VideoRecord], parts: bool) -> list[PairResult | None]:
        """The results of a video with others; None for those that cannot be copies."""
        return [
            self.score(record, other) if promises else None
            for other, promises in zip(others, self.promises(record, others, parts), strict=True)
        ]

    def flipped_look(self, record: VideoRecord) -> FrameFeatures | None:
        """Some frames of a video flipped left to right, read from its file; None if that cannot be read."""
        assert self.readings is not None  # else nothing is read
        self._check_here(record)
        return self.readings.flipped(record)

    def predict_flipped(self, record: VideoRecord) -> FrameFeatures | None:
        """The mirror image of a video as far as the extractor can tell from stored features; None if it cannot."""
        assert self.readings is not None  # else nothing is predicted
        return self.readings.predict_turned(self.stored([record])[0], "mirrored")

    def predict_turned(self, record: VideoRecord, turn: PoseName) -> FrameFeatures | None:
        """The whole pictures of a video after a turn, as far as the extractor can tell; None if it cannot."""
        assert self.readings is not None  # else nothing is predicted
        if self._turned is not None and self._turned[:2] == (record.id, turn):
            return self._turned[2]  # it is looked up, then compared
        weighed = self.stored([record])[0]
        told = np.flatnonzero(weighed.information > 0)
        seen = predict(self.readings, weighed.frames(told), turn) if len(told) else None
        turned = None if seen is None else self.readings.calibration.calibrate(seen)
        self._turned = record.id, turn, turned
        return turned

    def flips(
        self, record: VideoRecord, others: Sequence[VideoRecord], look: FrameFeatures | None, parts: bool
    ) -> Flips | None:
        """Whether the mirror image of a video was predicted, and its results with others, as :meth:`compare`.

        Args:
            record, others: The videos.
            look: The mirror image, from :meth:`flipped_look`; None predicts it, or reads the file if that cannot be.
            parts: Whether to look for parts as well.

        Returns:
            None if the file cannot be read.
        """
        predicted = self.predict_flipped(record) if look is None else None
        one = look if predicted is None else predicted
        one = self.flipped_look(record) if one is None else one
        if one is None:
            return None
        return predicted is not None, self._results(one, self.stored(others), parts, mirrored=True)

    def turns(
        self, record: VideoRecord, turn: PoseName, others: Sequence[VideoRecord], parts: bool
    ) -> list[PairResult | None]:
        """The results of the whole pictures of a video after a turn with those of others, as :meth:`compare`."""
        one = self.predict_turned(record, turn)
        if one is None:
            return [None] * len(others)
        targets = [target.views([0]) for target in self.stored(others)]
        return self._results(one, targets, parts, mirrored=turn_of(turn)[1])

    def read(self, reading: Reading, threshold: float) -> PairResult | None:
        """The result of a pair from readings as fine as those of queries; None if one of the two is gone.

        Args:
            reading: The pair.
            threshold: Score of copies: a pair of which one side was flipped and that scores less is also read with the
                other one flipped.
        """
        assert self.readings is not None  # else no pair is doubtful
        self._check_here(reading.first, reading.second)
        try:
            if reading.turned:
                return self._read_turned(reading, self.readings)
            sides = reading.flipped
            score, one, other = self._read(reading, sides, self.readings)
            if sides in (1, 2) and score.score < threshold:
                # As in `vidkin match`: a crop may be found from one side and missed from the other.
                score, one, other = self._read(reading, 3, self.readings)
        except NotIndexedError:
            return None  # removed by another process meanwhile
        return result_of(score, one.plain, other.plain, fine=True)

    def _read(self, reading: Reading, sides: int, readings: Readings) -> tuple[PairScore, Query, Query]:
        one = readings.finest(reading.first, mirrored=bool(sides & 1))
        other = readings.finest(reading.second, mirrored=bool(sides & 2))
        return score_pair(one, other, self.scorer), one, other

    def _read_turned(self, reading: Reading, readings: Readings) -> PairResult | None:
        flipped = reading.flipped != 0
        query = readings.turned(reading.first, reading.turned, mirrored=flipped)
        other = readings.finest(reading.second).plain
        one = None if query is None else query.mirrored if flipped else query.plain
        if one is None:
            return None
        forth = self.scorer.score(one, [other], mirrored=flipped)[0]
        back = swap_sides(self.scorer.score(other, [one], mirrored=flipped)[0])
        best = max(forth, back, key=lambda score: score.score)
        return result_of(say_turned(best, reading.turned), one, other, fine=True)

    def _results(
        self, one: FrameFeatures, targets: Sequence[FrameFeatures], parts: bool, *, mirrored: bool
    ) -> list[PairResult | None]:
        places = [place for place, promises in enumerate(self._promises(one, targets, parts)) if promises]
        scores = self.scorer.score(one, [targets[place] for place in places], mirrored=mirrored)
        results: list[PairResult | None] = [None] * len(targets)
        for place, score in zip(places, scores, strict=True):
            results[place] = result_of(score, one, targets[place])
        return results

    def _promises(self, one: FrameFeatures, targets: Sequence[FrameFeatures], parts: bool) -> list[bool]:
        if not isinstance(self.scorer, PromisingScorer):
            return [True] * len(targets)
        promising = []
        for target, seconds in zip(targets, self.scorer.promise(one, targets).tolist(), strict=True):
            lengths = sorted(float(side.information.sum()) * side.period for side in (one, target))
            if parts:
                promising.append(seconds >= _LEAST_OF_PART * min(_SECONDS_OF_PART, lengths[0]))
            else:
                promising.append(seconds >= _LEAST_OF_WHOLE * lengths[1])
        return promising

    def _check_here(self, *records: VideoRecord) -> None:
        """Refuse to answer without a file that another machine has: the answer would be another one."""
        if self.is_elsewhere:
            check_files_here(record.path for record in records)


@dataclass(frozen=True, slots=True)
class PairJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that scores pairs.

    Attributes:
        common, scorer, calibration: Common frames, scorer and calibration of the index.
        spec: What opens the extractor.
        fingerprint: Fingerprint of the extractor.
        rate: Frames per second at which the index samples long videos.
    """

    common: CommonFrames
    scorer: Scorer
    calibration: Calibration
    spec: WorkerSpec
    fingerprint: str
    rate: float

    def start(self, place: Place, store: VectorStore) -> PairScorer:
        """The scores, for a process that has this store.

        Raises:
            ClusterError: The extractor of this machine is another one.
        """
        extractor = self.spec.open()
        if extractor.fingerprint != self.fingerprint:
            raise ClusterError(
                f"machine {socket.gethostname()} of the cluster has another extractor than this one "
                f"({extractor.fingerprint} and {self.fingerprint}); give every machine the same weights"
            )
        readings = Readings(store, extractor, self.calibration, self.common, self.rate)
        return PairScorer(store, self.common, self.scorer, readings, is_elsewhere=True)


@dataclass(frozen=True, slots=True)
class GroupJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that describes groups of files, which reads them.

    Attributes:
        scores: What scores pairs.
        has_sound: Whether the sound of the index is known.
        describer: Called with scores, sound, the settings, the files of a group and what is known of them.
        settings: Settings for it.
    """

    scores: PairJob
    has_sound: bool
    describer: Callable[..., Any]
    settings: tuple[Any, ...]

    def start(self, place: Place, store: VectorStore) -> GroupWorker:
        """What describes groups in one process."""
        return GroupWorker(self, self.scores.start(place, store), SoundSearch(place) if self.has_sound else None)


@dataclass(frozen=True, slots=True)
class GroupWorker:
    """Describes groups in one process."""

    job: GroupJob
    scores: PairScorer
    sound: SoundSearch | None

    def describe(self, files: Sequence[FileRecord], known: Any) -> Any:
        """What the describer says of a group of files.

        Raises:
            ClusterError: This machine does not see one of them.
        """
        check_files_here(file.record.path for file in files)
        return self.job.describer(self.scores, self.sound, self.job.settings, files, known)


@dataclass(slots=True)
class ScoresAhead:
    """The scores of pairs, which a mapper may have computed before they are asked for.

    Whatever is not known yet when it is asked for is computed here; so the answers are those of :class:`PairScorer`.

    Attributes:
        here: Computes in this process.
        mapper, job: Compute ahead; None computes nothing ahead.
    """

    here: PairScorer
    mapper: Mapper | None = None
    job: PairJob | None = None
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False)

    @property
    def width(self) -> int:
        """Number of processes that compute ahead; 0 for none."""
        return 0 if self.mapper is None or self.job is None else self.mapper.width

    def forget(self) -> None:
        """Forget what was computed ahead and not asked for."""
        self._known.clear()

    def stored(self, records: Sequence[VideoRecord]) -> list[FrameFeatures]:
        """See :meth:`PairScorer.stored`."""
        return self.here.stored(records)

    def promises(self, record: VideoRecord, others: Sequence[VideoRecord], parts: bool) -> list[bool]:
        """See :meth:`PairScorer.promises`."""
        new = [other for other in others if ("compare", record.id, other.id) not in self._known]
        here = iter(self.here.promises(record, new, parts) if new else ())
        keys = [("compare", record.id, other.id) for other in others]
        return [self._known[key] is not None if key in self._known else next(here) for key in keys]

    def score(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """See :meth:`PairScorer.score`."""
        known: PairResult | None = self._known.get(("compare", record.id, other.id))
        return known or self.here.score(record, other)

    def predict_flipped(self, record: VideoRecord) -> FrameFeatures | None:
        """See :meth:`PairScorer.predict_flipped`."""
        return self.here.predict_flipped(record)

    def predict_turned(self, record: VideoRecord, turn: PoseName) -> FrameFeatures | None:
        """See :meth:`PairScorer.predict_turned`."""
        return self.here.predict_turned(record, turn)

    def flipped_look(self, record: VideoRecord) -> FrameFeatures | None:
        """See :meth:`PairScorer.flipped_look`."""
        known: FrameFeatures | None = self._known.get(("look", record.id))
        return self.here.flipped_look(record) if known is None else known

    def flips(
        self, record: VideoRecord, others: Sequence[VideoRecord], look: FrameFeatures | None, parts: bool
    ) -> Flips | None:
        """See :meth:`PairScorer.flips`."""
        keys = [("flips", record.id, other.id) for other in others]
        if keys and all(key in self._known for key in keys):
            return self._known["predicted", record.id], [self._known[key] for key in keys]
        return self.here.flips(record, others, look, parts)

    def turns(
        self, record: VideoRecord, turn: PoseName, others: Sequence[VideoRecord], parts: bool
    ) -> list[PairResult | None]:
        """See :meth:`PairScorer.turns`."""
        keys = [(turn, record.id, other.id) for other in others]
        if all(key in self._known for key in keys):
            return [self._known[key] for key in keys]
        return self.here.turns(record, turn, others, parts)

    def read(self, reading: Reading, threshold: float) -> PairResult | None:
        """See :meth:`PairScorer.read`."""
        known: PairResult | None = self._known.pop(reading, None)
        return self.here.read(reading, threshold) if known is None else known

    def has_read(self, reading: Reading) -> bool:
        """Whether a pair was read ahead."""
        return reading in self._known

    def ask_compare(self, asked: Sequence[tuple[VideoRecord, Sequence[VideoRecord]]], parts: bool) -> None:
        """Compare videos with others ahead."""
        asked = [pairs for pairs in asked if pairs[1]]
        answers = self._ask([("compare", record, others, parts) for record, others in asked])
        for (record, others), results in zip(asked, answers, strict=True):
            self._keep("compare", record, others, results)

    def ask_flipped_looks(self, records: Sequence[VideoRecord]) -> None:
        """Read some frames of videos flipped ahead, where the extractor cannot tell how they look."""
        asked = []
        for record in records:
            with suppress(NotIndexedError):  # it is noticed again when it is its turn
                asked += [record] if self.predict_flipped(record) is None else []
        looks = self._ask([("flipped_look", record) for record in asked])
        self._known |= {("look", record.id): look for record, look in zip(asked, looks, strict=True)}

    def ask_flips(
        self, asked: Sequence[tuple[VideoRecord, Sequence[VideoRecord], FrameFeatures | None]], parts: bool
    ) -> None:
        """Compare mirror images of videos with others ahead."""
        asked = [pairs for pairs in asked if pairs[1]]
        answers = self._ask([("flips", *pairs, parts) for pairs in asked])
        for (record, others, _), answer in zip(asked, answers, strict=True):
            if answer is not None:
                self._known["predicted", record.id] = answer[0]
                self._keep("flips", record, others, answer[1])

    def ask_turns(
        self, asked: Sequence[tuple[VideoRecord, Sequence[VideoRecord]]], turn: PoseName, parts: bool
    ) -> None:
        """Compare videos after a turn with others ahead."""
        asked = [pairs for pairs in asked if pairs[1]]
        answers = self._ask([("turns", record, turn, others, parts) for record, others in asked])
        for (record, others), results in zip(asked, answers, strict=True):
            self._keep(turn, record, others, results)

    def ask_readings(self, asked: Sequence[Reading], threshold: float) -> None:
        """Read pairs ahead."""
        answers = self._ask([("read", reading, threshold) for reading in asked])
        self._known.update(zip(asked, answers, strict=True))

    def _keep(
        self, kind: str, record: VideoRecord, others: Sequence[VideoRecord], results: Sequence[PairResult | None] | None
    ) -> None:
        if results is not None:  # else one of them was removed meanwhile: it is noticed again
            keys = [(kind, record.id, other.id) for other in others]
            self._known.update(zip(keys, results, strict=True))

    def _ask(self, questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers of :meth:`PairScorer.ask`, each where the features of its video are; a reading of files is done
        wherever there is time."""
        if self.mapper is None or self.job is None:
            return []  # nothing is asked ahead
        tasks = []
        for question in questions:
            subject = question[1]
            home, record = (None, subject.first) if isinstance(subject, Reading) else (subject.id, subject)
            tasks.append(Task("ask", question, home, record.path))
        return list(self.mapper.run(self.job, tasks)) if tasks else []


def predict(readings: Readings, features: FrameFeatures, pose: PoseName) -> FrameFeatures | None:
    """About what would be seen in whole pictures in a pose, without a baseline; None if unknown."""
    turn, *flip = pose.split(", ")
    seen = readings.predict(features, cast(Turn, turn))
    return readings.predict(seen, "mirrored") if flip and seen is not None else seen


def turn_of(pose: PoseName) -> tuple[int, bool]:
    """Degrees clockwise, and whether the picture is flipped afterwards, of "turned 90, mirrored" and the like."""
    turn, *flip = pose.split(", ")
    return int(turn.split()[1]), bool(flip)


def _bytes_of(features: FrameFeatures) -> int:
    """What held features take: scoring keeps the views of short videos a second time."""
    return 2 * features.values.nbytes


def result_of(score: PairScore, first: FrameFeatures, second: FrameFeatures, *, fine: bool = False) -> PairResult:
    """The result of a pair: what of both is covered, without the map of frames."""
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
