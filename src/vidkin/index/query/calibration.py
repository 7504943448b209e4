"""How similar unrelated frames are to each frame of an index, so that scores of all indexes are comparable."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.features import FrameExtractor, background_frames
from vidkin.index.storage.files import read_units, write_units
from vidkin.index.storage.place import Place
from vidkin.match import levels, scorer_of
from vidkin.similarity import FrameFeatures

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
