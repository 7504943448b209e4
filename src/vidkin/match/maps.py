"""Similarity of the frames of two videos, calibrated by the similarity of unrelated frames to each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments

__all__ = ["Vectors", "frame_map", "levels"]

Vectors = NDArray[np.float32]

# Neighbors in the cohort whose mean is the level of a frame.
_NEIGHBORS = 8


@check_arguments
def levels(vectors: Vectors, cohort: Vectors) -> NDArray[np.float32]:
    """[T] mean cosine of each frame to the most similar unrelated frames: high for frames that show what many show.

    Args:
        vectors: [T, D] unit vectors.
        cohort: [N, D] unit vectors of unrelated frames.
    """
    count = min(_NEIGHBORS, len(cohort))
    nearest = np.partition(vectors @ cohort.T, len(cohort) - count, axis=1)[:, len(cohort) - count :]
    return np.asarray(nearest.mean(axis=1), np.float32)


@check_arguments
def frame_map(query: Vectors, target: Vectors, query_levels: Vectors, target_levels: Vectors) -> NDArray[np.float32]:
    """[Tq, Tt] cosines, so that the mean of both frames' levels is 0 and equality is 1."""
    level = (query_levels[:, None] + target_levels[None]) / 2
    cosines = query @ target.T
    return np.asarray((cosines - level) / np.maximum(1.0 - level, 0.05), np.float32)
