"""Baseline similarity of indexed frames to unrelated frames, which makes scores comparable across indexes."""

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
from vidkin.index.storage.files import read_unit_vectors, write_unit_vectors
from vidkin.index.storage.place import Place
from vidkin.match import levels, scorer_of
from vidkin.similarity import FrameFeatures

_logger = logging.getLogger(__name__)

# Number of views whose levels are computed at a time, to limit memory.
_BATCH = 4096


@check_constructor
class Calibration:
    """Computes the baseline of frames, their similarity to a fixed set of unrelated frames.

    Args:
        background: [N, R, D], descriptors of unrelated frames. N is 0 if the scorer needs no baselines; these are then
            all 0.
    """

    FILE = "background.safetensors"

    def __init__(self, background: NDArray[np.floating]) -> None:
        # The file is in half precision; rounding here makes new and reloaded calibrations identical.
        self.background = background.astype(np.float16).astype(np.float32)
        if background.ndim != 3:
            raise InvalidArgumentError(f"background must be [N, R, D], got {list(background.shape)}")
        count, regions, dimension = background.shape
        self._cohort = self.background.reshape(count, regions * dimension) / np.float32(math.sqrt(regions))

    def calibrate(self, features: FrameFeatures) -> FrameFeatures:
        """Return features with the baseline [T, V]: the similarity of each view of each frame to unrelated frames."""
        frames, views = features.values.shape[:2]
        baseline = np.zeros(frames * views, np.float32)
        if len(self.background):
            vectors = features.vectors.reshape(frames * views, -1)
            described = np.flatnonzero(vectors.any(axis=1))
            for first in range(0, len(described), _BATCH):
                rows = described[first : first + _BATCH]
                baseline[rows] = levels(vectors[rows].astype(np.float32), self._cohort)
        return replace(features, baseline=baseline.reshape(frames, views))

    @classmethod
    def of_extractor(cls, extractor: FrameExtractor) -> Calibration:
        """Create a calibration from the extractor's cohort if it has one, otherwise from background photographs."""
        if not scorer_of(extractor).needs_background:
            return cls(np.zeros((0, 1, 1), np.float32))
        read_cohort: Callable[[], NDArray[np.floating] | None] = getattr(extractor, "cohort", lambda: None)
        cohort = read_cohort()
        return cls.measure(extractor) if cohort is None else cls(cohort)

    @classmethod
    def measure(cls, extractor: FrameExtractor) -> Calibration:
        """Create a calibration from the background photographs, which takes a second or two."""
        return cls(extractor.extract(background_frames()).whole)

    @classmethod
    def read(cls, place: Place, file: str = FILE) -> Calibration | None:
        """Load the calibration of an index; None if it does not exist yet.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        vectors = read_unit_vectors(place, file, "background")
        return None if vectors is None else cls(vectors)

    @classmethod
    def open(cls, place: Place, extractor: FrameExtractor) -> Calibration:
        """Load the calibration of an index; compute and save it on first use.

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
            # Not fatal: the result is deterministic, and saving it only avoids recomputing it.
            _logger.info("%s", error)
        return calibration

    def save(self, place: Place, name: str = FILE) -> None:
        """Save the background descriptors in the index, atomically."""
        write_unit_vectors(place, name, "background", self.background)
