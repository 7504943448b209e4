"""What pairs of videos score, by stored features or by reading their files again: the same wherever it is computed."""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vidkin.errors import ClusterError, NotIndexedError
from vidkin.index.duplicates.comparisons import FileRecord, PairResult, content_of
from vidkin.index.query.common import Calibration, CommonFrames, weigh_features
from vidkin.index.query.query import Readings
from vidkin.index.query.stages import score_pair, swap_sides
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task, check_files_here
from vidkin.similarity import UNRELATED, FrameFeatures, PairScore, Scorer, Segment

SURE_AS_STORED = 0.75
"""From this score on, and a share of the shorter video, neither the other direction nor a finer reading makes a visible
difference: plain copies score .95 where frames are read at the same moments, and .85 where they are not."""

# A segment agrees as well as another one from this share of its score on.
_AS_GOOD = 0.75
# Bytes of features that are held, in single precision.
_MOST_HELD = 128 << 20


Reading = tuple[VideoRecord, VideoRecord]
"""A pair whose files are read again."""


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

    def score(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """The result of a pair by stored features; the same whichever of the two is asked for first."""
        if content_of(other) < content_of(record):
            return self.score(other, record).swapped()
        one, target = self.stored([record, other])
        best = self.scorer.score(one, [target])[0]
        # As in score_pair: the other direction may find a line that this one misses by a frame. Of unrelated videos
        # there is none in either.
        if UNRELATED <= best.score < SURE_AS_STORED:
            best = max(best, swap_sides(self.scorer.score(target, [one])[0]), key=lambda found: found.score)
        return result_of(best, one, target)

    def compare(self, record: VideoRecord, others: Sequence[VideoRecord]) -> list[PairResult]:
        """The results of a video with others."""
        return [self.score(record, other) for other in others]

    def read(self, reading: Reading) -> PairResult | None:
        """The result of a pair from readings as fine as those of queries; None if one of the two is gone."""
        assert self.readings is not None  # else no pair is doubtful
        self._check_here(*reading)
        try:
            one, other = (self.readings.finest(record) for record in reading)
        except NotIndexedError:
            return None  # removed by another process meanwhile
        return result_of(score_pair(one, other, self.scorer), one, other, fine=True)

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

    def score(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """See :meth:`PairScorer.score`."""
        known: PairResult | None = self._known.get(("compare", record.id, other.id))
        return known or self.here.score(record, other)

    def read(self, reading: Reading) -> PairResult | None:
        """See :meth:`PairScorer.read`."""
        known: PairResult | None = self._known.pop(_key(reading), None)
        return self.here.read(reading) if known is None else known

    def has_read(self, reading: Reading) -> bool:
        """Whether a pair was read ahead."""
        return _key(reading) in self._known

    def ask_compare(self, asked: Sequence[tuple[VideoRecord, Sequence[VideoRecord]]]) -> None:
        """Compare videos with others ahead."""
        asked = [pairs for pairs in asked if pairs[1]]
        answers = self._ask([("compare", record, others) for record, others in asked])
        for (record, others), results in zip(asked, answers, strict=True):
            if results is not None:  # else one of them was removed meanwhile: it is noticed again
                keys = [("compare", record.id, other.id) for other in others]
                self._known.update(zip(keys, results, strict=True))

    def ask_readings(self, asked: Sequence[Reading]) -> None:
        """Read pairs ahead."""
        answers = self._ask([("read", reading) for reading in asked])
        self._known.update(zip(map(_key, asked), answers, strict=True))

    def _ask(self, questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers of :meth:`PairScorer.ask`, each where the features of its video are; a reading of files is done
        wherever there is time."""
        if self.mapper is None or self.job is None:
            return []  # nothing is asked ahead
        tasks = []
        for question in questions:
            subject = question[1]
            home, record = (None, subject[0]) if isinstance(subject, tuple) else (subject.id, subject)
            tasks.append(Task("ask", question, home, record.path))
        return list(self.mapper.run(self.job, tasks)) if tasks else []


def _key(reading: Reading) -> Hashable:
    first, second = reading
    return "read", first.id, second.id


def _bytes_of(features: FrameFeatures) -> int:
    """What held features take: scoring keeps their views a second time."""
    return 2 * features.values.nbytes


def result_of(score: PairScore, first: FrameFeatures, second: FrameFeatures, *, fine: bool = False) -> PairResult:
    """The result of a pair: what of both is covered, without the map of frames."""
    segments: list[Segment] = []
    for segment in score.segments:  # strongest first
        if not any(_resembles(segment, stronger) for stronger in segments):
            segments.append(segment)
    covered = (
        _covered(first, [(segment.query_start, segment.query_end) for segment in segments]),
        _covered(second, [(segment.target_start, segment.target_end) for segment in segments]),
    )
    return PairResult(min(1.0, max(0.0, score.score)), fine, covered, tuple(segments))


def _resembles(segment: Segment, stronger: Segment) -> bool:
    """Whether a segment only resembles footage that a stronger one shows: its moments of one video are among those of
    the other segment, which agree much better. Footage that is shown twice agrees as well both times."""
    if segment.score >= _AS_GOOD * stronger.score:
        return False
    sides = (
        (segment.query_start, segment.query_end, stronger.query_start, stronger.query_end),
        (segment.target_start, segment.target_end, stronger.target_start, stronger.target_end),
    )
    return any(min(end, last) - max(start, first) > (end - start) / 2 for start, end, first, last in sides)


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
