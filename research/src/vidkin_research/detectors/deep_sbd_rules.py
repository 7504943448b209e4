"""DeepSBD's post-processing, from the classes of overlapping segments to cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CLASSES",
    "SEGMENT",
    "STRIDE",
    "SegmentRun",
    "bhattacharyya",
    "find_segment_runs",
    "largest_difference",
]

CLASSES = ("none", "gradual", "sharp")
"""Order of the network's outputs."""

SEGMENT = 16
"""Number of frames in a segment."""

STRIDE = 8
"""Number of frames between the starts of consecutive segments."""


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Neighboring segments of the same class other than ``none``.

    Attributes:
        kind: ``hard`` for the class sharp, ``gradual`` otherwise.
        first: First frame of the first segment.
        last: Last frame of the last segment within the video.
        probability: Highest probability of the class within the run.
    """

    kind: Literal["hard", "gradual"]
    first: int
    last: int
    probability: float


def find_segment_runs(probabilities: NDArray[np.floating], frames: int) -> Iterator[SegmentRun]:
    """Merge neighboring segments with the same most probable class.

    Args:
        probabilities: [S, 3] probabilities of none, gradual and sharp; segment s contains frames 8 s to 8 s + 15.
        frames: Number of frames in the video, at least 1.
    """
    classes = np.argmax(probabilities, axis=1) if len(probabilities) else np.zeros(0, dtype=np.int64)
    for label, members in groupby(range(len(classes)), key=lambda segment: int(classes[segment])):
        if label == 0:
            continue
        places = list(members)
        last = min(places[-1] * STRIDE + SEGMENT, frames) - 1
        if last > places[0] * STRIDE:
            yield SegmentRun(
                "hard" if label == 2 else "gradual",
                places[0] * STRIDE,
                last,
                float(probabilities[places, label].max()),
            )


def bhattacharyya(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """Bhattacharyya coefficient of two normalized histograms, sum of sqrt(a b): 1 if equal, 0 if disjoint."""
    return float(np.sqrt(first * second).sum())


def largest_difference(differences: NDArray[np.floating], run: SegmentRun, used: Iterable[int] = ()) -> int:
    """Return the first frame of the new shot: the frame of the run that differs most from its predecessor.

    Args:
        differences: [T] differences between frames t - 1 and t.
        run: Run to search, from its second frame.
        used: Frames that are already cuts; skipped unless no others are left.
    """
    candidates = np.array(differences[run.first + 1 : run.last + 1], dtype=np.float64)
    taken = [frame - run.first - 1 for frame in used if run.first < frame <= run.last]
    if len(set(taken)) < len(candidates):
        candidates[taken] = -1.0
    return run.first + 1 + int(np.argmax(candidates))
