"""What pairs of videos score, by stored features or by reading their files again: the same wherever it is computed."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vidkin.errors import ClusterError, NotIndexedError
from vidkin.index.duplicates.comparisons import PairResult, content_of
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.query import Readings
from vidkin.index.query.stages import score_pair
from vidkin.index.query.stored import FeatureCache
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.tasks import check_files_here
from vidkin.similarity import UNRELATED, FrameFeatures, PairScore, Scorer, Segment

# With stored features true copies may score as little as this, as they were sampled at other moments.
_DOUBTFUL = 0.3
# From this score on, with this share of the shorter video shown, neither the other direction nor a finer reading makes
# a visible difference.
_SURE_AS_STORED, _SHOWN_WHOLE = 0.75, 0.95
# A pair of which less is shown, by stored features, is no copy as a whole however finely it is read.
_MAYBE_WHOLE = 0.4
# A segment agrees as well as another one from this share of its score on: footage that is shown twice agrees about as
# well both times.
_AS_GOOD = 0.9
# Bytes of features that are held, in single precision.
_MAX_HELD = 128 << 20


@dataclass(slots=True)
class PairScorer:
    """Scores of pairs of one index. What it returns depends on the two videos alone, and on nothing asked before.

    Attributes:
        store, scorer: Store and scorer of the index.
        readings: Reads files again; None compares stored features only.
        is_elsewhere: Whether this may be another machine than the one where a search was started, so that a file that
            is not here may be there.
    """

    store: VectorStore
    scorer: Scorer
    readings: Readings | None = None
    is_elsewhere: bool = False
    _held: FeatureCache = field(default_factory=lambda: FeatureCache(_MAX_HELD), init=False)

    def stored(self, records: Sequence[VideoRecord]) -> list[FrameFeatures]:
        """Stored features of these videos, ready for scoring; those read last are held.

        Raises:
            NotIndexedError: One of them was removed meanwhile.
        """
        return self._held.read(self.store, [record.id for record in records])

    def compare(self, record: VideoRecord, others: Sequence[VideoRecord], parts: bool) -> list[PairResult] | None:
        """The results of a video with others; None if one of them was removed meanwhile."""
        try:
            return [self.score(record, other, parts=parts) for other in others]
        except NotIndexedError:
            return None

    def score(self, record: VideoRecord, other: VideoRecord, *, parts: bool) -> PairResult:
        """The result of a pair by stored features, or by reading both files where these leave doubt; the same whichever
        of the two is asked for first.

        Raises:
            NotIndexedError: One of them was removed meanwhile.
            ClusterError: This machine does not see one of the files.
        """
        if content_of(other) < content_of(record):
            return self.score(other, record, parts=parts).swapped()
        one, target = self.stored([record, other])
        best = self.scorer.score(one, [target])[0]
        # The other direction may find a line that this one misses by a frame. Of unrelated videos there is none in
        # either.
        if UNRELATED <= best.score < _SURE_AS_STORED:
            best = score_pair(one, target, self.scorer)
        result = result_of(best, one, target)
        return self.read(record, other) if is_in_doubt(result, parts) and self.can_refine(record, other) else result

    def can_refine(self, *records: VideoRecord) -> bool:
        """Whether one of the files can be read more finely than it is stored."""
        return self.readings is not None and not all(map(self.readings.is_stored_as_finely, records))

    def read(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """The result of a pair from readings as fine as those of queries.

        Raises:
            NotIndexedError: One of them was removed meanwhile.
            ClusterError: This machine does not see one of the files.
        """
        assert self.readings is not None  # can_refine
        if self.is_elsewhere:  # without the file the answer would be another one
            check_files_here((record.path, other.path))
        one, target = self.readings.finest(record), self.readings.finest(other)
        return result_of(score_pair(one, target, self.scorer), one, target, fine=True)


def is_in_doubt(result: PairResult, parts: bool) -> bool:
    """Whether a finer reading of both files may show that two are copies, or how much of them is.

    Args:
        result: By stored features. Frames of an excerpt fall between those of the film, so that these may miss part of
            the match.
        parts: Whether a copy of a part counts, too.
    """
    is_sure = result.score >= _SURE_AS_STORED and max(result.covered) >= _SHOWN_WHOLE
    is_far = result.score < _DOUBTFUL or not (parts or min(result.covered) >= _MAYBE_WHOLE)
    return not (result.fine or is_sure or is_far)


@dataclass(frozen=True, slots=True)
class PairJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that scores pairs.

    Attributes:
        scorer, calibration: Scorer and calibration of the index.
        spec: What opens the extractor.
        fingerprint: Fingerprint of the extractor.
        rate: Frames per second at which the index samples long videos.
    """

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
        readings = Readings(store, extractor, self.calibration, self.rate)
        return PairScorer(store, self.scorer, readings, is_elsewhere=True)


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
    the other segment, which agree better."""
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
