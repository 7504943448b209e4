"""Score pairs of videos from stored features or by decoding the files again, with the same result on any machine."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vidkin.errors import ClusterError, NotIndexedError
from vidkin.index.duplicates.comparisons import PairResult, content_of
from vidkin.index.duplicates.ignored_ends import IgnoredEnds
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

# Minimum score of doubtful pairs: true copies may score this low with stored features, because they were sampled at
# different moments.
_DOUBTFUL = 0.3
# With at least this score and this fraction of the shorter video covered, neither the other direction nor denser
# sampling makes a noticeable difference.
_SURE_AS_STORED, _SHOWN_WHOLE = 0.75, 0.95
# If stored features cover a smaller fraction, the pair cannot become a whole copy by denser sampling.
_MAYBE_WHOLE = 0.4
# A segment with at least this fraction of another's score matches equally well: if footage occurs twice, it matches
# about equally well both times.
_MIN_REPEAT_RATIO = 0.9
# Maximum size in bytes of the features cached in memory, in single precision.
_MAX_CACHED = 128 << 20


@dataclass(slots=True)
class PairScorer:
    """Scores pairs of videos of an index. Results depend only on the two videos, not on earlier calls.

    Attributes:
        store, scorer: Store and scorer of the index.
        readings: Decodes files again; None to compare stored features only.
        is_elsewhere: Whether this may not be the machine where the search was started, so that a file that is missing
            here may exist there.
        ignored: The ends of each file that are not compared.
    """

    store: VectorStore
    scorer: Scorer
    readings: Readings | None = None
    is_elsewhere: bool = False
    ignored: IgnoredEnds = field(default_factory=IgnoredEnds)
    _held: FeatureCache = field(default_factory=lambda: FeatureCache(_MAX_CACHED), init=False)

    def stored(self, records: Sequence[VideoRecord]) -> list[FrameFeatures]:
        """Return stored features of these videos, ready for scoring; recently used features are cached.

        Raises:
            NotIndexedError: A video was removed in the meantime.
        """
        return [self.ignored.cut(each) for each in self._held.read(self.store, [record.id for record in records])]

    def compare(self, record: VideoRecord, others: Sequence[VideoRecord], parts: bool) -> list[PairResult] | None:
        """Return the results of a video with others; None if any of them was removed in the meantime."""
        try:
            return [self.score(record, other, parts=parts) for other in others]
        except NotIndexedError:
            return None

    def score(self, record: VideoRecord, other: VideoRecord, *, parts: bool) -> PairResult:
        """Return the result of a pair from stored features, or by decoding both files if stored features are
        inconclusive; it does not depend on the order of the two.

        Raises:
            NotIndexedError: A video was removed in the meantime.
            ClusterError: This machine cannot access one of the files.
        """
        if content_of(other) < content_of(record):
            return self.score(other, record, parts=parts).swapped()
        one, target = self.stored([record, other])
        if not (len(one) and len(target)):
            return PairResult(0.0)
        best = self.scorer.score(one, [target])[0]
        # The other direction may find a line that this one misses by a frame. Unrelated videos have no line in either
        # direction, so they are not scored again.
        if UNRELATED <= best.score < _SURE_AS_STORED:
            best = score_pair(one, target, self.scorer)
        result = to_pair_result(best, one, target)
        return self.read(record, other) if is_in_doubt(result, parts) and self.can_refine(record, other) else result

    def can_refine(self, *records: VideoRecord) -> bool:
        """Whether any of the files can be sampled more densely than its stored features."""
        return self.readings is not None and not all(map(self.readings.is_stored_as_finely, records))

    def read(self, record: VideoRecord, other: VideoRecord) -> PairResult:
        """Return the result of a pair from frames sampled as densely as those of queries.

        Raises:
            NotIndexedError: A video was removed in the meantime.
            ClusterError: This machine cannot access one of the files.
        """
        assert self.readings is not None  # can_refine
        if self.is_elsewhere:  # a missing file would change the result
            check_files_here((record.path, other.path))
        one, target = (self.ignored.cut(self.readings.finest(each)) for each in (record, other))
        if not (len(one) and len(target)):
            return PairResult(0.0, fine=True)
        return to_pair_result(score_pair(one, target, self.scorer), one, target, fine=True)


def is_in_doubt(result: PairResult, parts: bool) -> bool:
    """Whether denser sampling of both files may change the result.

    Args:
        result: Result from stored features. An excerpt and its source were sampled at different moments, so stored
            features may miss part of the match.
        parts: Whether excerpts count as well.
    """
    is_sure = result.score >= _SURE_AS_STORED and max(result.covered) >= _SHOWN_WHOLE
    is_far = result.score < _DOUBTFUL or not (parts or min(result.covered) >= _MAYBE_WHOLE)
    return not (result.fine or is_sure or is_far)


@dataclass(frozen=True, slots=True)
class PairJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that scores pairs.

    Attributes:
        scorer, calibration: Scorer and calibration of the index.
        spec: Specification for opening the extractor.
        fingerprint: Fingerprint of the extractor.
        rate: Sampling rate of the index for long videos, in frames per second.
        ignored: The ends of each file that are not compared.
    """

    scorer: Scorer
    calibration: Calibration
    spec: WorkerSpec
    fingerprint: str
    rate: float
    ignored: IgnoredEnds = field(default_factory=IgnoredEnds)

    def start(self, place: Place, store: VectorStore) -> PairScorer:
        """Create the scorer in a process that has opened this store.

        Raises:
            ClusterError: This machine has a different extractor.
        """
        extractor = self.spec.open()
        if extractor.fingerprint != self.fingerprint:
            raise ClusterError(
                f"machine {socket.gethostname()} of the cluster has a different extractor than this machine "
                f"({extractor.fingerprint} and {self.fingerprint}); install the same weights on every machine"
            )
        readings = Readings(store, extractor, self.calibration, self.rate)
        return PairScorer(store, self.scorer, readings, is_elsewhere=True, ignored=self.ignored)


def to_pair_result(score: PairScore, first: FrameFeatures, second: FrameFeatures, *, fine: bool = False) -> PairResult:
    """Convert a score to a pair result: compute the covered fractions, and drop redundant segments and the map."""
    segments: list[Segment] = []
    for segment in score.segments:  # strongest first
        if not any(_is_redundant(segment, stronger) for stronger in segments):
            segments.append(segment)
    covered = (
        _covered_fraction(first, [(segment.query_start, segment.query_end) for segment in segments]),
        _covered_fraction(second, [(segment.target_start, segment.target_end) for segment in segments]),
    )
    return PairResult(min(1.0, max(0.0, score.score)), fine, covered, tuple(segments))


def _is_redundant(segment: Segment, stronger: Segment) -> bool:
    """Whether a segment is redundant: in one of the videos, it lies mostly within a stronger segment that matches
    clearly better."""
    if segment.score >= _MIN_REPEAT_RATIO * stronger.score:
        return False
    sides = (
        (segment.query_start, segment.query_end, stronger.query_start, stronger.query_end),
        (segment.target_start, segment.target_end, stronger.target_start, stronger.target_end),
    )
    return any(min(end, last) - max(start, first) > (end - start) / 2 for start, end, first, last in sides)


def _covered_fraction(features: FrameFeatures, spans: list[tuple[float, float]]) -> float:
    """Fraction of the informative frames that lie within these time ranges."""
    weights = features.information.astype(np.float64)
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    # Each frame represents half a period on either side.
    reach = 0.49 * features.period
    seen = np.zeros(len(features), np.bool_)
    for start, end in spans:
        seen |= (features.timestamps >= start - reach) & (features.timestamps <= end + reach)
    return min(1.0, float(weights[seen].sum()) / total)
