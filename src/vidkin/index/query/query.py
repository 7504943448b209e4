"""Extract features from queries and indexed videos, and open the parts of an index that all searches share."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vidkin._base.stopping import check_wanted
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import FrameExtractor, Phase, describe_file
from vidkin.features.views import HANG_TIMEOUT
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.learned_scale import LearnedScale, measure_scale, require_proven
from vidkin.index.query.stored import FeatureCache, prepare_features
from vidkin.index.query.watching import HangError, run_watched
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord, describe_cut_off, query_rate, sampling_rate, to_stored
from vidkin.match import LEARNED, LearnedScorer, open_scorer, scorer_of
from vidkin.match.reviewed import MEASURE_FILE, ReviewedScorer, ReviewMeasure
from vidkin.media import Frames, open_probed
from vidkin.similarity import FrameFeatures, Scorer, fingerprint_of_scores

if TYPE_CHECKING:
    from vidkin.index.storage.sound_files import SoundSearch

_logger = logging.getLogger(__name__)
# Number of evenly spaced query frames with features of crops, and their minimum number per second in long queries.
_CROPPED_FRAMES, _MIN_CROP_RATE = 8, 0.1


def describe_query(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    calibration: Calibration,
    *,
    rate: float,
    start: float | None = None,
    end: float | None = None,
    hang_timeout: float = HANG_TIMEOUT,
    on_share: Callable[[float], None] | None = None,
) -> FrameFeatures:
    """Decode a query and extract its features, ready for scoring.

    Args:
        path: A video or an image.
        extractor, calibration: Extractor and calibration of the index.
        rate: Sampling rate of long videos in frames per second. Shorter ones are sampled more densely: as given by
            :func:`query_rate`, or like videos in the index if the scorer does not report segments.
        start, end: Start and end of the clip to use, in seconds; default: the whole file.
        hang_timeout: Seconds without progress after which the decoder counts as hung; five times as long for the
            extractor.
        on_share: Called ten times a second, in the caller's thread, with the fraction read so far, in [0, 1].

    Raises:
        MediaError: The file cannot be read, has no frames between start and end, or makes the decoder hang.
        InvalidArgumentError: ``end`` is not after ``start``.
    """
    first = start or 0.0
    if end is not None and end <= first:
        raise InvalidArgumentError(f"end must be after start ({first:g} s), got {end:g} s")
    reached = 0.0

    def note(fraction: float) -> None:
        nonlocal reached
        reached = fraction

    def tick() -> None:
        check_wanted()
        if on_share is not None:
            on_share(reached)

    def read(beat: Callable[[Phase], None]) -> FrameFeatures:
        parts, last = _read(path, extractor, rate, first, end, beat, note)
        described = to_stored(FrameFeatures.concatenate(parts))
        return prepare_features(calibration.calibrate(described), last)

    try:
        return run_watched(read, hang_timeout=hang_timeout, on_tick=tick)
    except HangError as error:
        raise MediaError(path, str(error), temporary=True) from error


def _read(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    rate: float,
    first: float,
    end: float | None,
    beat: Callable[[Phase], None],
    on_share: Callable[[float], None],
) -> tuple[list[FrameFeatures], float]:
    """Return the features of the query in at least one part, and the end of the clip in seconds."""
    with open_probed(path, on_read=lambda: beat("decoding")) as video:
        info = video.info
        if info.cut_off:
            _logger.warning("%s: %s", os.fspath(path), describe_cut_off(info))
        copies = scorer_of(extractor).has_segments
        last = info.duration if end is None else min(end, info.duration) if info.duration > 0 else end
        length = (last or 0.0) - first

        def note(frames: Frames) -> None:
            on_share(min(1.0, (float(frames.timestamps[-1]) - first) / length) if length > 0 else 0.0)

        parts = list(
            describe_file(
                video,
                extractor,
                duration=info.duration,
                rate=query_rate(last - first, rate) if copies else sampling_rate(last - first, rate),
                start=first,
                end=end,
                boxes=True,
                crops=max(_CROPPED_FRAMES / length, _MIN_CROP_RATE) if length > 0 else 1.0,
                beat=beat,
                on_frames=note,
            )
        )
    if not parts:
        stop = "the end" if end is None else f"{end:g} s"
        raise MediaError(path, f"it has no frames between {first:g} s and {stop}")
    return parts, last


class SearchParts:
    """Extractor, calibration and scorer of an index, each opened on first use.

    Args:
        place: Location of the index.
        manifest: Manifest of the index.
        store: Records, features and windows.
        open_extractor: Opens the extractor; called on first use, because duplicates and recall do not need it.

    Attributes:
        store: Records, features and windows.
        cache: Features of recently scored videos.
    """

    def __init__(
        self,
        place: Place,
        manifest: Manifest,
        store: VectorStore,
        open_extractor: Callable[[], FrameExtractor],
    ) -> None:
        self.cache = FeatureCache()
        self.store = store
        self._place = place
        self._manifest = manifest
        self._open_extractor = open_extractor
        self._extractor: FrameExtractor | None = None
        self._calibration: Calibration | None = None
        self._scorer: Scorer | None = None
        self._sound: SoundSearch | None = None
        self._versions: dict[str, Hashable | None] = {}

    @property
    def extractor(self) -> FrameExtractor:
        """Extractor of the index."""
        if self._extractor is None:
            self._extractor = self._open_extractor()
        return self._extractor

    @property
    def calibration(self) -> Calibration:
        """Calibration of the extractor's features."""
        if self._calibration is None:
            self._calibration = Calibration.open(self._place, self.extractor)
        return self._calibration

    @property
    def scorer(self) -> Scorer:
        """Scorer of the index."""
        if self._scorer is None:
            # Only a learned scorer is part of the model; others can be opened without the extractor.
            is_learned = self._manifest.measure == LEARNED
            self._scorer = self._learned_scorer() if is_learned else open_scorer(self._manifest.measure)
            if self._manifest.reviewed:
                measure = ReviewMeasure.read(self._place.address(MEASURE_FILE))
                self._scorer = ReviewedScorer(self._scorer, measure)
        return self._scorer

    @property
    def query_parts(self) -> tuple[FrameExtractor, Calibration]:
        """Extractor and calibration, as arguments for :func:`~vidkin.index.query.query.describe_query`."""
        return self.extractor, self.calibration

    def sound(self, manifest: Manifest) -> SoundSearch | None:
        """Open the audio search; None if the index has no audio fingerprints."""
        if self._sound is None and manifest.has_sound(self._place):
            from vidkin.index.storage.sound_files import SoundSearch

            self._sound = SoundSearch(self._place)
        return self._sound if manifest.sound else None

    def readings(self) -> Readings:
        """Return a reader that extracts features from indexed videos as densely as from queries."""
        return Readings(self.store, *self.query_parts, self._manifest.sampling_rate)

    def state_of_scores(self) -> str:
        """Fingerprint of everything that the score of a pair depends on, apart from the two files."""
        digest = hashlib.sha256(fingerprint_of_scores(self._manifest.fingerprint, self.scorer).encode())
        digest.update(repr(self._manifest.sampling_rate).encode())
        return digest.hexdigest()[:16]

    def refresh(self) -> bool:
        """Load changes written by other processes; return whether there were any."""
        if self._has_changed(MEASURE_FILE) | self._has_changed(LearnedScale.FILE):
            self._scorer = None
        return self.store.refresh()

    def records(self) -> list[VideoRecord]:
        """Return all records; log a warning about stale ones, which searches cannot find until they are reindexed."""
        return self._warn_of_stale(self.store.videos())

    def records_of_size(self, path: str | os.PathLike[str]) -> list[VideoRecord]:
        """Return the records of files of the same size, without listing all records; warn as :meth:`records` does."""
        size = os.stat(path).st_size if os.path.isfile(path) else -1
        some = self.store.select(lambda record: record.size == size or record.needs_reindex)
        return [record for record in self._warn_of_stale(some) if record.size == size]

    def _warn_of_stale(self, records: list[VideoRecord]) -> list[VideoRecord]:
        """Log a warning if any of these records are stale; return the records."""
        stale = [record.path for record in records if record.needs_reindex]
        if stale:
            _logger.warning(
                "%d videos are left out until they are indexed again, for example %s; list them with "
                "`vidkin info --videos`",
                len(stale),
                stale[0],
            )
        return records

    def update_scale(self) -> None:
        """Measure the scale of a trained comparator on the index, if it is unknown or outdated.

        The caller must hold the write lock.
        """
        if self._manifest.measure != LEARNED:
            return
        scorer, known = scorer_of(self.extractor), LearnedScale.open(self._place)
        assert isinstance(scorer, LearnedScorer)
        total = sum(record.status == "ok" and bool(record.frames) for record in self.store.videos())
        if total and (known is None or known.scorer != scorer.identity or known.is_outgrown(total)):
            measure_scale(self.store, scorer).save(self._place)
            self._scorer = None

    def check_scale(self, threshold: float) -> None:
        """Require that a trained comparator separates copies from unrelated videos of the index at a threshold.

        Raises:
            CollectionMismatchError: An unrelated pair in the index reaches the threshold, or the scale is unknown
                because the index has too few unrelated pairs or is older than this measurement.
        """
        if self._manifest.measure != LEARNED:
            return
        require_proven(LearnedScale.open(self._place), threshold, self._place.uri)

    def _learned_scorer(self) -> Scorer:
        scorer, scale = scorer_of(self.extractor), LearnedScale.open(self._place)
        assert isinstance(scorer, LearnedScorer)
        return scorer if scale is None else scale.applied(scorer)

    def _has_changed(self, name: str) -> bool:
        """Whether a file of the index has been written or deleted since the last call."""
        version = self._place.version(name)
        changed = version != self._versions.get(name)
        self._versions[name] = version
        return changed


# Number of videos whose dense features are cached, at a few megabytes each; pairs that share a video are compared
# consecutively.
_MAX_CACHED = 16

# Videos with at least this many sampled frames are too expensive to decode again just for their crops.
_MANY_FRAMES = 60

# Sampling rate of clips in frames per second, high enough to find an image even if the camera moves.
_STRETCH_RATE = 10.0


@dataclass(slots=True)
class Readings:
    """Extracts features from the files of indexed videos, more densely than they are stored.

    Attributes:
        store, extractor, calibration: Parts of the index.
        rate: Sampling rate of the index for long videos, in frames per second.
    """

    store: VectorStore
    extractor: FrameExtractor
    calibration: Calibration
    rate: float
    _cached: OrderedDict[int, FrameFeatures] = field(default_factory=OrderedDict, init=False)

    def is_stored_as_finely(self, record: VideoRecord) -> bool:
        """Whether the stored features are as dense as those of a query, so that decoding the file adds nothing."""
        return query_rate(record.duration, self.rate) <= sampling_rate(record.duration, self.rate)

    def finest(self, record: VideoRecord) -> FrameFeatures:
        """Return features of a video at the sampling rate of queries, ready for scoring.

        Stored features are used if they have this rate and the video is long, or if the file is gone, changed or
        broken.
        """
        # Short videos are cheap to decode, and stored features lack the crops that queries have.
        if self.is_stored_as_finely(record) and record.duration * self.rate >= _MANY_FRAMES:
            return self._read_stored(record)
        if record.id in self._cached:
            self._cached.move_to_end(record.id)
            return self._cached[record.id]
        features = None
        if _is_unchanged(record):
            parts = (self.extractor, self.calibration)
            try:
                features = describe_query(record.path, *parts, rate=self.rate)
            except MediaError as error:
                _logger.warning("%s; using its stored features instead", error)
        self._cached[record.id] = self._read_stored(record) if features is None else features
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)
        return self._cached[record.id]

    def stretch(self, record: VideoRecord, start: float, end: float) -> FrameFeatures | None:
        """Return features of a clip at ten frames per second; None if the file is gone, changed, or too short."""
        if not _is_unchanged(record):
            return None
        parts = (self.extractor, self.calibration)
        try:
            return describe_query(record.path, *parts, rate=_STRETCH_RATE, start=start, end=end)
        except MediaError as error:
            _logger.debug("%s", error)
            return None

    def _read_stored(self, record: VideoRecord) -> FrameFeatures:
        return prepare_features(self.store.read(record.id), record.duration)


def _is_unchanged(record: VideoRecord) -> bool:
    try:
        status = os.stat(record.path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns)
