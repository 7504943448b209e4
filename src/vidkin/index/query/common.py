"""Corrections that scores of an index apply: frames that many videos share, and the similarity of unrelated frames.

Shared frames come from intros, logo cards and test cards in videos that are not copies of each other.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.features import FrameExtractor, background_frames
from vidkin.index.storage.contract import NO_WINDOW, FeatureReader, VectorStore
from vidkin.index.storage.files import read_units, write_units
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import WindowVectors, frame_vectors
from vidkin.match import levels, scorer_of
from vidkin.similarity import FrameFeatures

_SAME = 0.85  # cosine from which two windows show the same

# Cosine that edited copies keep and unrelated videos do not reach: over half of their length, 96 % of edited copies are
# this near to their original, but only .4 % of other pairs of clips, nearly all of which show the same scene.
_RELATED = 0.5

_NEIGHBORS = 128

# Two videos are copies if at least this share of one looks like something in the other.
_COPY_SHARE = 0.5


@check_constructor
class CommonFrames:
    """Vectors of frames that do not distinguish videos.

    Args:
        vectors: [C, E] unit vectors; C can be 0.
    """

    FILE = "common.safetensors"
    CONFIRMED_FILE = "confirmed.safetensors"

    def __init__(self, vectors: NDArray[np.floating] | None = None) -> None:
        # Stored in half precision; rounding first makes fresh and reloaded vectors agree.
        self.vectors = (np.zeros((0, 0)) if vectors is None else vectors.astype(np.float16)).astype(np.float32)

    def __len__(self) -> int:
        return len(self.vectors)

    def share(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return how common each frame of [T, R, D] is: [T] in [0, 1], 1 for common frames.

        The largest cosine with a common vector, mapped linearly from .75 to 0 and from .85 to 1.
        """
        if len(self) == 0:
            return np.zeros(len(values), np.float32)
        nearest = (frame_vectors(values) @ self.vectors.T).max(axis=1)
        share: NDArray[np.float32] = ((nearest - (_SAME - 0.1)) / 0.1).clip(0, 1)
        return share

    def merge(self, vectors: NDArray[np.floating]) -> CommonFrames:
        """Add ``vectors`` [C, E], without those that are already included."""
        merged = self.vectors
        for vector in vectors.astype(np.float32, copy=False):
            if len(merged) == 0 or float((merged @ vector).max()) < 0.97:
                merged = np.concatenate([merged.reshape(-1, len(vector)), vector[None]])
        return CommonFrames(merged)

    @classmethod
    def open(cls, place: Place) -> CommonFrames:
        """Load the common frames of an index: the detected ones, and those of confirmed groups.

        Raises:
            CollectionDamagedError: A file exists but cannot be read.
        """
        found, confirmed = cls.open_found(place), read_units(place, cls.CONFIRMED_FILE, "vectors")
        return found if confirmed is None or len(confirmed) == 0 else found.merge(confirmed)

    @classmethod
    def open_found(cls, place: Place) -> CommonFrames:
        """Load the common frames that :func:`find_common` found; empty before its first run.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        return cls(read_units(place, cls.FILE, "vectors"))

    @classmethod
    def open_confirmed(cls, place: Place) -> CommonFrames:
        """Load the common frames of confirmed groups; see :meth:`open_found`."""
        return cls(read_units(place, cls.CONFIRMED_FILE, "vectors"))

    def save(self, place: Place) -> None:
        """Write to the index, whole or not at all."""
        write_units(place, self.FILE, "vectors", self.vectors)

    def save_confirmed(self, place: Place) -> None:
        """Write these as the frames of confirmed groups; do nothing if there never was one."""
        if len(self) or place.version(self.CONFIRMED_FILE) is not None:
            write_units(place, self.CONFIRMED_FILE, "vectors", self.vectors)


def weigh_features(features: FrameFeatures, common: CommonFrames, end: float = 0.0) -> FrameFeatures:
    """Prepare stored features for scoring: lower the weight of frames that many videos of the index share.

    Args:
        features: Features as stored.
        common: Common frames of the index.
        end: Time at which the video (or the stretch of it) ends according to its container, in seconds; 0 if unknown.

    Returns:
        Values in single precision; the information of each frame is multiplied by one minus its commonness.
    """
    values = features.values.astype(np.float32, copy=False)
    return replace(
        features,
        values=values,
        information=features.information * (1.0 - common.share(values[:, 0])),
        # A container may state a wrong end; the end is never before the last frame.
        end=max(end, float(features.timestamps[-1])) if end > 0 else None,
    )


class WeighedFeatures:
    """Cache of stored features ready for scoring, as the next search often scores the same videos.

    An id always has the same features, so entries never go stale.

    Args:
        most: Maximum size in bytes.
    """

    def __init__(self, most: int = 64 << 20) -> None:
        self._most, self._bytes = most, 0
        self._common: CommonFrames | None = None
        self._cached: OrderedDict[int, FrameFeatures] = OrderedDict()
        # Searches of one index run in several threads.
        self._lock = threading.Lock()

    def read(self, store: FeatureReader, video_ids: Sequence[int], common: CommonFrames) -> list[FrameFeatures]:
        """Return features of these videos, weighed by :func:`weigh_features`.

        Raises:
            NotIndexedError: One of them is not in the store.
        """
        with self._lock:
            if common is not self._common:
                self._common, self._bytes = common, 0
                self._cached.clear()
            cached = {video_id: self._cached[video_id] for video_id in video_ids if video_id in self._cached}
            for video_id in cached:
                self._cached.move_to_end(video_id)
        missing = [video_id for video_id in video_ids if video_id not in cached]
        read = {
            video_id: weigh_features(features, common, store.get(video_id).duration)
            for video_id, features in zip(missing, store.read_many(missing) if missing else [], strict=True)
        }
        with self._lock:
            if common is self._common:
                self._add(read)
        return [cached[video_id] if video_id in cached else read[video_id] for video_id in video_ids]

    def _add(self, read: Mapping[int, FrameFeatures]) -> None:
        for video_id, features in read.items():
            # Twice, as scoring keeps another copy of the views of short videos.
            if video_id not in self._cached and 2 * features.values.nbytes <= self._most:
                self._cached[video_id] = features
                self._bytes += 2 * features.values.nbytes
        while self._bytes > self._most:
            _, features = self._cached.popitem(last=False)
            self._bytes -= 2 * features.values.nbytes


def find_common(
    store: VectorStore, video_ids: Iterable[int], *, minimum: int = 3, most: int = 2000
) -> NDArray[np.float32]:
    """Find the windows that at least ``minimum`` other videos show, none a copy of another: vectors [C, E].

    Two videos are copies here if half the length of either looks like something in the other (windows with a cosine of
    .5 or more, which heavily edited copies keep and unrelated videos do not). An intro is short in every video that has
    it; a scene that one video quotes and twenty copies of its film contain counts once. Only the first ``most`` videos
    are examined, which bounds the cost for a large index (frames that are common there are common among any two
    thousand of its videos).

    Args:
        store: Store of the index.
        video_ids: The videos to examine.
        minimum: Minimum number of other videos.
        most: Maximum number of videos examined.
    """
    common = []
    windows_of = _WindowCache(store)
    for video_id in list(video_ids)[:most]:
        windows = windows_of(video_id)
        if windows is None:
            continue
        copies: dict[tuple[int, int], bool] = {}
        # For each window, the other videos whose full frames show the same, nearest first.
        nearest = store.nearest(windows.vectors, _NEIGHBORS)
        is_near = (nearest.scores >= _SAME) & (nearest.video_ids != video_id) & (nearest.video_ids != NO_WINDOW)
        for index in np.flatnonzero(np.count_nonzero(is_near, axis=1) >= minimum).tolist():
            near = is_near[index]
            neighbors = zip(nearest.video_ids[index, near].tolist(), nearest.windows[index, near].tolist(), strict=True)
            # Windows of boxes are ignored: an inset is a copy, although the videos around it are unrelated.
            whole = [(other, number) for other, number in neighbors if number < windows_of.count(other)]
            others = list(dict.fromkeys(other for other, _ in whole))
            if len(others) >= minimum and _are_unrelated((video_id, windows), others, windows_of, copies, minimum):
                common.append(windows.vectors[index])
    return np.stack(common) if common else np.zeros((0, 0), np.float32)


class _WindowCache:
    """Windows of full frames by video id; None for videos without any."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._sizes = {record.id: record.windows for record in store.videos() if record.status == "ok"}
        self._read = lru_cache(maxsize=512)(self._read_whole)

    def count(self, video_id: int) -> int:
        """Number of windows of a video."""
        windows = self(video_id)
        return 0 if windows is None else len(windows)

    def __call__(self, video_id: int) -> WindowVectors | None:
        return self._read(video_id) if self._sizes.get(video_id, 0) else None

    def _read_whole(self, video_id: int) -> WindowVectors:
        # Parts of frames look alike everywhere: a corner of sky, a dark border.
        windows = self._store.read_windows(video_id).of_whole()
        # Products in half precision are slow.
        return replace(windows, vectors=windows.vectors.astype(np.float32, copy=False))


def _are_unrelated(
    video: tuple[int, WindowVectors],
    others: list[int],
    windows_of: _WindowCache,
    copies: dict[tuple[int, int], bool],
    minimum: int,
) -> bool:
    """Whether ``minimum`` of the others are copies neither of this video nor of each other; ``copies`` caches the
    answers for pairs."""
    unrelated = [video]
    for other in others:
        theirs = windows_of(other)
        if theirs is None:
            continue
        for known, known_windows in unrelated:
            pair = (other, known)
            if pair not in copies:
                copies[pair] = _are_copies(theirs, known_windows)
            if copies[pair]:
                break
        else:
            unrelated.append((other, theirs))
            if len(unrelated) > minimum:
                return True
    return False


def _are_copies(first: WindowVectors, second: WindowVectors) -> bool:
    near: NDArray[np.bool_] = first.vectors @ second.vectors.T >= _RELATED
    return max(_share(first, near.max(axis=1)), _share(second, near.max(axis=0))) >= _COPY_SHARE


def _share(windows: WindowVectors, chosen: NDArray[np.bool_]) -> float:
    lengths = windows.ends - windows.starts
    return float(lengths[chosen].sum() / max(lengths.sum(), 1e-9))


_logger = logging.getLogger(__name__)

# Views whose levels are computed at a time.
_VIEWS_AT_ONCE = 4096


@check_constructor
class Calibration:
    """Baseline similarity of frames with a fixed set of unrelated ones, which makes scores comparable between indexes.

    Args:
        background: [N, R, D], descriptors of unrelated frames; N = 0 if the scorer needs no level, which is then 0.
    """

    FILE = "background.safetensors"

    def __init__(self, background: NDArray[np.floating]) -> None:
        # Stored in half precision; rounding first makes fresh and reloaded calibrations agree.
        self.background = background.astype(np.float16).astype(np.float32)
        if background.ndim != 3:
            raise InvalidArgumentError(f"background must be [N, R, D], got {list(background.shape)}")
        count, regions, dimension = background.shape
        self._cohort = self.background.reshape(count, regions * dimension) / np.float32(math.sqrt(regions))

    def calibrate(self, features: FrameFeatures) -> FrameFeatures:
        """Add the baseline [T, V] to features: the similarity of unrelated frames with each view of each frame."""
        frames, views = features.values.shape[:2]
        baseline = np.zeros(frames * views, np.float32)
        if len(self.background):
            vectors = features.vectors.reshape(frames * views, -1)
            described = np.flatnonzero(vectors.any(axis=1))
            for first in range(0, len(described), _VIEWS_AT_ONCE):
                rows = described[first : first + _VIEWS_AT_ONCE]
                baseline[rows] = levels(vectors[rows].astype(np.float32), self._cohort)
        return replace(features, baseline=baseline.reshape(frames, views))

    @classmethod
    def of_extractor(cls, extractor: FrameExtractor) -> Calibration:
        """Calibrate with the cohort of the extractor if it has one, otherwise with background photographs."""
        if not scorer_of(extractor).needs_background:
            return cls(np.zeros((0, 1, 1), np.float32))
        read_cohort: Callable[[], NDArray[np.floating] | None] = getattr(extractor, "cohort", lambda: None)
        cohort = read_cohort()
        return cls.measure(extractor) if cohort is None else cls(cohort)

    @classmethod
    def measure(cls, extractor: FrameExtractor) -> Calibration:
        """Calibrate with the background photographs, which takes a second or two."""
        return cls(extractor.extract(background_frames()).whole)

    @classmethod
    def read(cls, place: Place, file: str = FILE) -> Calibration | None:
        """Load the calibration of an index; None if it has none yet.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        vectors = read_units(place, file, "background")
        return None if vectors is None else cls(vectors)

    @classmethod
    def open(cls, place: Place, extractor: FrameExtractor) -> Calibration:
        """Load the calibration of an index; measure and store it on first use.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        stored = cls.read(place)
        if stored is not None:
            return stored
        calibration = cls.of_extractor(extractor)
        try:
            calibration.save(place)
        except CollectionError as error:
            # The result is always the same; storing it only saves a second.
            _logger.info("%s", error)
        return calibration

    def save(self, place: Place, name: str = FILE) -> None:
        """Write the background descriptors to the index, whole or not at all."""
        write_units(place, name, "background", self.background)
