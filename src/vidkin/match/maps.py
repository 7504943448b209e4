"""Frame-to-frame similarity of two videos, calibrated by each frame's similarity to unrelated frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments

__all__ = ["Vectors", "frame_map", "levels"]

Vectors = NDArray[np.float32]

# Number of nearest neighbors in the cohort that are averaged to give a frame's level.
_NEIGHBORS = 8


@check_arguments
def levels(vectors: Vectors, cohort: Vectors) -> NDArray[np.float32]:
    """Mean cosine similarity [T] of each frame to its nearest unrelated frames; high for common content.

    Args:
        vectors: [T, D] unit vectors.
        cohort: [N, D] unit vectors of unrelated frames.
    """
    count = min(_NEIGHBORS, len(cohort))
    nearest = np.partition(vectors @ cohort.T, len(cohort) - count, axis=1)[:, len(cohort) - count :]
    return np.asarray(nearest.mean(axis=1), np.float32)


@check_arguments
def frame_map(query: Vectors, target: Vectors, query_levels: Vectors, target_levels: Vectors) -> NDArray[np.float32]:
    """Cosine similarities [Tq, Tt], rescaled so that the mean level of the two frames maps to 0 and equality to 1."""
    level = (query_levels[:, None] + target_levels[None]) / 2
    cosines = query @ target.T
    return np.asarray((cosines - level) / np.maximum(1.0 - level, 0.05), np.float32)
