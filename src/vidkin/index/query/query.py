"""Queries: files, and videos of the index; and the parts that all searches share."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin._base.stopping import check_wanted
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import FrameExtractor, Phase, describe_file
from vidkin.features.contracts import PredictsTurns, Turn
from vidkin.features.views import HANG_TIMEOUT
from vidkin.index.query.common import Calibration, CommonFrames, WeighedFeatures, find_common, weigh_features
from vidkin.index.query.learned_scale import LearnedScale, measure_scale, require_proven
from vidkin.index.query.watching import HangError, run_watched
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord, describe_cut_off, query_rate, sampling_rate, to_stored
from vidkin.media import Frames, open_probed
from vidkin.media.frames import EvenFrames, join_frames
from vidkin.similarity import (
    LEARNED,
    FrameFeatures,
    LearnedScorer,
    Scorer,
    fingerprint_of_scores,
    open_scorer,
    scorer_of,
)
from vidkin.similarity.reviewed import MEASURE_FILE, ReviewedScorer, ReviewMeasure

if TYPE_CHECKING:
    from vidkin.index.storage.sound_files import SoundSearch

_logger = logging.getLogger(__name__)
# A query has several frames per second, to find where a match begins; parts of the picture need fewer.
_PARTS_A_SECOND = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    """Features of a query, as it is and flipped.

    Attributes:
        plain: The frames as they are.
        mirrored: The frames flipped left to right; None if not requested or impossible.
        turns: How it looks turned; None if nobody can tell, as for stored features.
    """

    plain: FrameFeatures
    mirrored: FrameFeatures | None = None
    turns: QueryTurns | None = None

    @property
    def as_it_is(self) -> Query:
        """The features alone, which can be sent to other processes."""
        return self if self.turns is None else replace(self, turns=None)


# Clockwise, in the order in which they are tried: pictures of phones held upright first.
_TURNS = (90, 270, 180)
# Frames that are kept to be described turned: enough to tell which videos deserve a look.
_TURNED_FRAMES = 8


@dataclass(frozen=True, slots=True)
class QueryTurns:
    """A query turned by a quarter, a half and three quarters of a circle: a few frames of it, or all by reading again.

    Attributes:
        look: Features of the whole pictures of a few frames, turned by so many degrees clockwise and flipped
            afterwards or not; None if none of them shows anything.
        read: The query turned by so many degrees, described by reading its file again.
    """

    look: Callable[[int, bool], FrameFeatures | None]
    read: Callable[[int], Query]

    def looks(self) -> Iterator[tuple[int, FrameFeatures]]:
        """Every turn, with a flip afterwards and without: degrees clockwise, and features of a few frames."""
        for degrees in _TURNS:
            for mirrored in (False, True):
                features = self.look(degrees, mirrored)
                if features is not None:
                    yield degrees, features


def describe_query(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    calibration: Calibration,
    common: CommonFrames,
    *,
    rate: float,
    start: float | None = None,
    end: float | None = None,
    mirrored: bool = True,
    turned: int = 0,
    hang_timeout: float = HANG_TIMEOUT,
    on_share: Callable[[float], None] | None = None,
) -> Query:
    """Decode a query and extract its features.

    Args:
        path: A video or an image.
        extractor, calibration, common: Extractor, calibration and common frames of the index.
        rate: Frames per second of a long video; shorter ones are sampled more densely (:func:`query_rate`; if the
            scorer has no segments, as densely as a video of the index).
        start, end: Stretch of the file, seconds; default whole.
        mirrored: Describe the mirror image as well, so that mirrored copies are found; ignored if the scorer has
            no segments.
        turned: Degrees, 0, 90, 180 or 270, by which the frames are turned clockwise first.
        hang_timeout: Seconds without progress after which the decoder counts as hung, five times as many for the
            extractor.
        on_share: Receives ten times a second, in the thread of the caller, the share that is read, 0 to 1.

    Raises:
        MediaError: The file cannot be read, has no frame between start and end, or makes its decoder hang.
        InvalidArgumentError: ``end`` is not after ``start``.
    """
    first = start or 0.0
    if end is not None and end <= first:
        raise InvalidArgumentError(f"end must be after start, {first:g} s, got {end:g} s")
    few = EvenFrames(4 * _TURNED_FRAMES)
    turner = extractor if isinstance(extractor, PredictsTurns) and not turned else None
    reached = 0.0

    def keep(frames: Frames, share: float) -> None:
        nonlocal reached
        reached = share
        if turner is not None:
            few.add(frames)

    def tick() -> None:
        check_wanted()
        if on_share is not None:
            on_share(reached)

    def read(beat: Callable[[Phase], None]) -> Query:
        parts, last = _read(path, extractor, rate, first, end, mirrored, turned, beat, keep)
        described = (to_stored(FrameFeatures.concatenate(stretch)) for stretch in zip(*parts, strict=True))
        plain, *flipped = (weigh_features(calibration.calibrate(view), common, last) for view in described)
        return Query(plain, flipped[0] if flipped else None)

    try:
        query = run_watched(read, hang_timeout=hang_timeout, on_tick=tick)
    except HangError as error:
        raise MediaError(path, str(error), temporary=True) from error
    if turner is None:
        return query
    again = partial(
        describe_query, path, extractor, calibration, common,
        rate=rate, start=start, end=end, mirrored=mirrored, hang_timeout=hang_timeout,
    )  # fmt: skip
    frames = _informative(few.kept, query.plain)

    def look(degrees: int, flipped: bool) -> FrameFeatures | None:
        if frames is None or (flipped and not mirrored):
            return None
        return calibration.calibrate(turner.extract_turned(frames, degrees, mirror=flipped))

    return replace(query, turns=QueryTurns(look, lambda degrees: again(turned=degrees)))


def _informative(kept: Sequence[Frames], features: FrameFeatures) -> Frames | None:
    """At most eight frames that show the most, as the features of all tell; None if none shows anything."""
    rows = np.searchsorted(features.timestamps, [float(frame.timestamps[0]) for frame in kept])
    information = features.information[np.minimum(rows, len(features) - 1)]
    # An empty sky before the airplane comes says nothing.
    told = np.flatnonzero((information > 0) & (information >= information.max(initial=0.0) / 2))
    if len(told) > _TURNED_FRAMES:
        told = told[np.linspace(0, len(told) - 1, _TURNED_FRAMES).astype(np.int64)]
    return join_frames([kept[place] for place in told.tolist()]) if len(told) else None


def _read(
    path: str | os.PathLike[str],
    extractor: FrameExtractor,
    rate: float,
    first: float,
    end: float | None,
    mirrored: bool,
    turned: int,
    beat: Callable[[Phase], None],
    on_frames: Callable[[Frames, float], None],
) -> tuple[list[tuple[FrameFeatures, ...]], float]:
    """Features of all stretches of the query, at least one, and the time at which the last one ends, seconds."""
    with open_probed(path, on_read=lambda: beat("decoding")) as video:
        info = video.info
        if info.cut_off:
            _logger.warning("%s: %s", os.fspath(path), describe_cut_off(info))
        copies = scorer_of(extractor).has_segments
        last = info.duration if end is None else min(end, info.duration) if info.duration > 0 else end
        length = (last or 0.0) - first

        def note(frames: Frames) -> None:
            on_frames(frames, min(1.0, (float(frames.timestamps[-1]) - first) / length) if length > 0 else 0.0)

        parts = list(
            describe_file(
                video,
                extractor,
                duration=info.duration,
                rate=query_rate(last - first, rate) if copies else sampling_rate(last - first, rate),
                start=first,
                end=end,
                # For kinds, the mirror image is another view of the same thing, not an edit.
                mirrors=(False, True) if mirrored and copies else (False,),
                turned=turned,
                views=extractor.views != "none",
                part_rate=_PARTS_A_SECOND,
                beat=beat,
                on_frames=note,
            )
        )
    if not parts:
        stop = "the end" if end is None else f"{end:g} s"
        raise MediaError(path, f"there is no frame from {first:g} s to {stop}")
    return parts, last


def query_from_stored(features: FrameFeatures, common: CommonFrames) -> Query:
    """Make a query from stored features; a mirror image would need decoding."""
    return Query(weigh_features(features, common))


class SearchParts:
    """Extractor, calibration, common frames and scorer of an index, each opened when it is first needed.

    Args:
        place: Place of the index.
        manifest: Manifest of the index.
        store: Records, features and windows.
        open_extractor: Opens the extractor; called on first use, as duplicates and recall need none.

    Attributes:
        common: Frames that many videos of the index share, as of the last :meth:`refresh`.
        store: Records, features and windows.
        weighed: Features of the videos that were scored last.
    """

    def __init__(
        self,
        place: Place,
        manifest: Manifest,
        store: VectorStore,
        open_extractor: Callable[[], FrameExtractor],
    ) -> None:
        self.common = CommonFrames()
        self.weighed = WeighedFeatures()
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
        """What makes the features."""
        if self._extractor is None:
            self._extractor = self._open_extractor()
        return self._extractor

    @property
    def calibration(self) -> Calibration:
        """Baselines for the features of the extractor."""
        if self._calibration is None:
            self._calibration = Calibration.open(self._place, self.extractor)
        return self._calibration

    @property
    def scorer(self) -> Scorer:
        """What turns two videos into a score."""
        if self._scorer is None:
            # A learned scorer is part of the model; any other is known without opening the extractor.
            is_learned = self._manifest.measure == LEARNED
            self._scorer = self._learned_scorer() if is_learned else open_scorer(self._manifest.measure)
            if self._manifest.reviewed:
                measure = ReviewMeasure.read(self._place.address(MEASURE_FILE))
                self._scorer = ReviewedScorer(self._scorer, measure)
        return self._scorer

    @property
    def of_queries(self) -> tuple[FrameExtractor, Calibration, CommonFrames]:
        """What :func:`~vidkin.index.query.query.describe_query` needs besides the file."""
        return self.extractor, self.calibration, self.common

    def sound(self, manifest: Manifest) -> SoundSearch | None:
        """What searches the sound of the index; None where none of it is known."""
        if self._sound is None and manifest.has_sound(self._place):
            from vidkin.index.storage.sound_files import SoundSearch

            self._sound = SoundSearch(self._place)
        return self._sound if manifest.sound else None

    def readings(self) -> Readings:
        """Reads videos of the index again, as finely as queries."""
        return Readings(self.store, *self.of_queries, self._manifest.sampling_rate)

    def state_of_scores(self) -> str:
        """Identifies what the score of two videos of the index depends on besides the two files."""
        digest = hashlib.sha256(fingerprint_of_scores(self._manifest.fingerprint, self.scorer).encode())
        digest.update(repr(self._manifest.sampling_rate).encode())
        digest.update(self.common.vectors.tobytes())
        return digest.hexdigest()[:16]

    def refresh(self) -> bool:
        """Load what other processes have written since; True if there is something new."""
        found, confirmed = self._has_changed(CommonFrames.FILE), self._has_changed(CommonFrames.CONFIRMED_FILE)
        if found or confirmed:
            self.common = CommonFrames.open(self._place)
        if self._has_changed(MEASURE_FILE) | self._has_changed(LearnedScale.FILE):
            self._scorer = None
        return self.store.refresh()

    def records(self) -> list[VideoRecord]:
        """All records of the index; warns of those that no search finds until their files are read again."""
        return self._warned_of_stale(self.store.videos())

    def records_as_large(self, path: str | os.PathLike[str]) -> list[VideoRecord]:
        """Those of files with as many bytes as this one, without a list of all; warns as :meth:`records` does."""
        size = os.stat(path).st_size if os.path.isfile(path) else -1
        some = self.store.select(lambda record: record.size == size or record.needs_reindex)
        return [record for record in self._warned_of_stale(some) if record.size == size]

    def _warned_of_stale(self, records: list[VideoRecord]) -> list[VideoRecord]:
        """The same records, with a warning of the stale ones."""
        stale = [record.path for record in records if record.needs_reindex]
        if stale:
            _logger.warning(
                "%d videos are left out until they are indexed again, the first is %s (`vidkin info --videos` lists "
                "them)",
                len(stale),
                stale[0],
            )
        return records

    def update(self, paths: Sequence[str]) -> None:
        """Find what scores take into account, with these new videos: frames that many videos share, and the scale of a
        trained comparator. The caller holds the writer's lock."""
        self._update_scale()
        if not paths or not self.scorer.has_segments:
            return  # what many videos share is exactly what makes them the same kind
        ids = [record.id for path in paths if (record := self.store.find(path)) is not None]
        vectors = find_common(self.store, ids)
        if len(vectors):
            CommonFrames.open_found(self._place).merge(vectors).save(self._place)

    def _update_scale(self) -> None:
        """Measure what the scores of a trained comparator mean on the videos of the index, if that is not known."""
        if self._manifest.measure != LEARNED:
            return
        scorer, known = scorer_of(self.extractor), LearnedScale.open(self._place)
        assert isinstance(scorer, LearnedScorer)
        total = sum(record.status == "ok" and bool(record.frames) for record in self.store.videos())
        if total and (known is None or known.scorer != scorer.identity or known.is_outgrown(total)):
            measure_scale(self.store, scorer).save(self._place)
            self._scorer = None

    def check_scale(self, threshold: float) -> None:
        """Refuse to call videos copies by the scores of a comparator that does not tell strangers from them here.

        Raises:
            CollectionMismatchError: An unrelated pair of the index reaches the threshold, or what unrelated pairs reach
                was not measured: the index has too few of them, or is older than this measurement.
        """
        if self._manifest.measure != LEARNED:
            return
        require_proven(LearnedScale.open(self._place), threshold, self._place.uri)

    def _learned_scorer(self) -> Scorer:
        scorer, scale = scorer_of(self.extractor), LearnedScale.open(self._place)
        assert isinstance(scorer, LearnedScorer)
        return scorer if scale is None else scale.applied(scorer)

    def _has_changed(self, name: str) -> bool:
        """Whether a file of the index was written or removed since the last call."""
        version = self._place.version(name)
        changed = version != self._versions.get(name)
        self._versions[name] = version
        return changed


# Number of videos whose fine features are cached, each a few megabytes: connected pairs are compared after each other.
_MOST_HELD = 16

# Frames per second that are enough to hit a picture taken while the camera moved.
_STRETCH_RATE = 10.0

# Number of flipped frames used to find candidates for mirrored copies.
_FLIPPED_FRAMES = 16


@dataclass(slots=True)
class Readings:
    """Reads the videos of one index from their files.

    Attributes:
        store, extractor, calibration, common: Parts of the index.
        rate: Frames per second at which the index samples long videos.
    """

    store: VectorStore
    extractor: FrameExtractor
    calibration: Calibration
    common: CommonFrames
    rate: float
    _held: OrderedDict[tuple[int, bool, int], Query] = field(default_factory=OrderedDict, init=False)

    def is_stored_as_finely(self, record: VideoRecord) -> bool:
        """Whether the stored features are as dense as a query's, so that reading the file adds nothing."""
        return query_rate(record.duration, self.rate) <= sampling_rate(record.duration, self.rate)

    def finest(self, record: VideoRecord, *, mirrored: bool = False) -> Query:
        """Make the densest possible query of a video.

        Args:
            record: Record in the index.
            mirrored: Describe the mirror image as well, which requires reading the file.

        Returns:
            The stored features if they are as dense, or if the file is gone, changed or broken.
        """
        if self.is_stored_as_finely(record) and not mirrored:
            return self._stored(record)
        key = (record.id, mirrored, 0)
        if not mirrored and (record.id, True, 0) in self._held:
            key = (record.id, True, 0)
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key] if mirrored else Query(self._held[key].plain)
        query = None
        if _is_unchanged(record):
            parts = (self.extractor, self.calibration, self.common)
            try:
                query = describe_query(record.path, *parts, rate=self.rate, mirrored=mirrored).as_it_is
            except MediaError as error:
                _logger.warning("%s; it is compared by what the index holds of it", error)
        if query is None:
            query = self._stored(record)
        return self._hold(key, query)

    def turned(self, record: VideoRecord, degrees: int, *, mirrored: bool = False) -> Query | None:
        """The video turned clockwise by so many degrees, and with ``mirrored`` flipped afterwards as well, read as
        finely as a query; None if its file is gone, changed or broken."""
        key = (record.id, mirrored, degrees)
        if key in self._held or not _is_unchanged(record):
            return self._held.get(key)
        parts = (self.extractor, self.calibration, self.common)
        try:
            query = describe_query(record.path, *parts, rate=self.rate, mirrored=mirrored, turned=degrees)
        except MediaError as error:
            _logger.warning("%s; it is not searched for turned copies", error)
            return None
        return self._hold(key, query)

    def predict(self, features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        """About what the extractor would see in whole pictures after a turn, without a baseline; None if unknown."""
        return self.extractor.predict_turned(features, turn) if isinstance(self.extractor, PredictsTurns) else None

    @property
    def has_single_vectors(self) -> bool:
        """Whether a picture is one vector, and it is known how similar unrelated ones are."""
        background = self.calibration.background
        return len(background) > 0 and background.shape[1] == 1

    def measure_baseline(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """How similar unrelated pictures are to each of these descriptors [N, D], [N]."""
        pictures = FrameFeatures.of_whole(vectors[:, None], np.arange(float(len(vectors))))
        return np.asarray(self.calibration.calibrate(pictures).baselines[:, 0], np.float32)

    def predict_turned(self, features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        """The same, ready for scoring."""
        predicted = self.predict(features, turn)
        return None if predicted is None else self.calibration.calibrate(predicted)

    def flipped(self, record: VideoRecord) -> FrameFeatures | None:
        """Features of about 16 frames flipped left to right; None if the file is gone, changed or broken."""
        if not _is_unchanged(record):
            return None
        rate = sampling_rate(record.duration, self.rate)
        if record.duration > 0:
            rate = min(rate, _FLIPPED_FRAMES / record.duration)
        try:
            parts = [
                stretch[0]
                for stretch in describe_file(
                    record.path, self.extractor, duration=record.duration, rate=rate, mirrors=(True,)
                )
            ]
        except MediaError as error:
            _logger.warning("%s; it is not searched for mirrored copies", error)
            return None
        if not parts:
            return None
        described = self.calibration.calibrate(to_stored(FrameFeatures.concatenate(parts)))
        return weigh_features(described, self.common, record.duration)

    def stretch(self, record: VideoRecord, start: float, end: float) -> FrameFeatures | None:
        """Features of a stretch at ten frames per second; None if the file is gone, changed or has no frames there."""
        if not _is_unchanged(record):
            return None
        parts = (self.extractor, self.calibration, self.common)
        try:
            query = describe_query(record.path, *parts, rate=_STRETCH_RATE, start=start, end=end, mirrored=False)
        except MediaError as error:
            _logger.debug("%s", error)
            return None
        return query.plain

    def _hold(self, key: tuple[int, bool, int], query: Query) -> Query:
        self._held[key] = query
        if len(self._held) > _MOST_HELD:
            self._held.popitem(last=False)
        return query

    def _stored(self, record: VideoRecord) -> Query:
        return Query(weigh_features(self.store.read(record.id), self.common, record.duration))


def _is_unchanged(record: VideoRecord) -> bool:
    try:
        status = os.stat(record.path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns)
