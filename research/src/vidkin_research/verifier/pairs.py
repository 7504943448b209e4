"""The numbers and levels of all pairs of a query and a video: what the verifier learns from and is measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.match import NUMBERS, Sequenced, levels, measure
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.recordings import QueryClip
from vidkin_research.frame_encoder.raw_vectors import mean_of_best

__all__ = ["COPY", "LEFT_OUT", "SCENE", "STRANGER", "Pairs", "level_of", "measure_pairs"]

COPY, SCENE, STRANGER = 2, 1, 0
"""Levels: the same footage, another moment or recording of the same place, nothing in common."""
LEFT_OUT = -1
"""Other recordings of what a query shows, which may or may not hold its moments."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """All pairs of Q queries and G videos.

    Attributes:
        numbers: [Q, G, F] float32, `NUMBERS` of each pair.
        levels: [Q, G] int8, `COPY`, `SCENE`, `STRANGER` or `LEFT_OUT`.
        mean_of_best: [Q, G] the score without any rule, for comparison.
    """

    numbers: NDArray[np.float32]
    levels: NDArray[np.int8]
    mean_of_best: NDArray[np.float32]


def level_of(query: QueryClip, family: str, scene: str, source: QueryClip | None) -> int:
    """How a video with this family, scene and source is related to a query."""
    if source is not None and source.name == query.name:
        return COPY
    if family == query.recording.family:
        return LEFT_OUT
    return SCENE if scene == query.recording.scene else STRANGER


def measure_pairs(
    vectors_of: Callable[[Path], tuple[NDArray[np.float32], list[float]]],
    material: CopyMaterial,
    cohort: NDArray[np.float32],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> Pairs:
    """Compare every query with every video.

    Args:
        vectors_of: Function from a file to the vectors [T, D] of its frames and their T times.
        material: Queries and gallery.
        cohort: [N, D] vectors of unrelated frames, for levels.
        on_progress: Callback that receives the queries compared and their number.
    """

    def read(path: Path) -> Sequenced:
        vectors, times = vectors_of(path)
        vectors = vectors.astype(np.float32)
        return Sequenced(vectors, np.array(times), levels(vectors, cohort), np.ones(len(vectors), np.float32))

    gallery = [read(video.path) for video in material.gallery]
    shape = len(material.queries), len(gallery)
    numbers = np.zeros((*shape, len(NUMBERS)), np.float32)
    kinds, means = np.zeros(shape, np.int8), np.zeros(shape, np.float32)
    for row, query in enumerate(material.queries):
        frames = read(query.path)
        for column, (video, other) in enumerate(zip(material.gallery, gallery, strict=True)):
            numbers[row, column] = measure(frames, other).numbers
            means[row, column] = mean_of_best(frames.vectors, other.vectors)
            kinds[row, column] = level_of(query, video.family, video.scene, video.source)
        if on_progress is not None:
            on_progress(row + 1, shape[0])
    return Pairs(numbers, kinds, means)
