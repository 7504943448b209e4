"""SVD-SBD: shot boundaries by segment selection, singular value decomposition and pattern matching."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, RgbFrame
from vidkin_research.detectors.histograms import HistogramStore
from vidkin_research.detectors.svd_rules import (
    Candidate,
    candidate_segments,
    find_cut,
    find_transition,
    narrow,
    reduced_columns,
)

__all__ = ["SvdBaseline"]

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_SPAN = 20
_STEP = 5


@dataclass(frozen=True, slots=True)
class _Segment:
    """Luminance differences between the ends of a segment, of its halves and of its quarters."""

    whole: float
    halves: tuple[float, float]
    quarters: tuple[tuple[float, float], tuple[float, float]]


class SvdBaseline:
    """SVD-SBD (Lu and Shi, "Fast video shot boundary detection based on SVD and pattern matching", IEEE TIP 2013).

    Reconstructed from secondary sources: the selection thresholds are the published ones, but those of the inverted
    triangle are ours, so results of this detector are not the authors'.

    The video is split into segments of 21 frames that share their end frames. Segments whose ends differ enough in
    luminance (adaptive thresholds per ten segments) are bisected twice, see `narrow`. Hard candidates of 6 frames are
    cut where neighboring frames are least similar, unless their ends are similar (a flash). Adjacent gradual candidates
    are joined and must form an inverted triangle; otherwise each is tried on its own.
    Similarity is the cosine in the space of the 8 leading singular vectors of the frames' HSV histograms
    (18 x 12 x 8 bins). The last segment is padded with the last frame.

    Memory use grows by about 2 kB per frame, because the thresholds need the mean over the whole video.
    """

    short_side: int | None = 144

    def __init__(self) -> None:
        self.name = "svd"
        self._times: list[float] = []
        self._histograms = HistogramStore()
        self._recent: deque[NDArray[np.float32]] = deque(maxlen=_SPAN // _STEP + 1)
        self._segments: list[_Segment] = []
        self._last: NDArray[np.float32] | None = None

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame."""
        self._histograms.append(frame.image)
        self._last = frame.image @ _LUMA
        self._measure(len(self._times), self._last)
        self._times.append(frame.time)

    def finish(self) -> DetectedCuts:
        """Return the cuts; the curve is the difference over each segment, at its last frame."""
        frames = len(self._times)
        if frames == 0:
            return DetectedCuts(())
        assert self._last is not None
        for frame in range(frames, -(-(frames - 1) // _SPAN) * _SPAN + 1):
            self._measure(frame, self._last)
        wholes = np.array([segment.whole for segment in self._segments])
        hard: list[Candidate] = []
        gradual: list[Candidate] = []
        for number in candidate_segments(wholes).nonzero()[0].tolist():
            segment = self._segments[number]
            candidate = narrow(number * _SPAN, segment.whole, segment.halves, segment.quarters)
            if candidate is not None and (last := min(candidate.last, frames - 1)) > candidate.first:
                same_kind = hard if candidate.kind == "hard" else gradual
                same_kind.append(replace(candidate, last=last))
        cuts = {cut.frame: cut for cut in self._gradual_cuts(gradual)}
        for candidate in hard:
            position = find_cut(self._columns(candidate.first, candidate.last))
            if position is not None:
                frame = candidate.first + position[0]
                cuts[frame] = DetectedCut(frame, confidence=position[1])
        ends = np.minimum((np.arange(len(wholes)) + 1) * _SPAN, frames - 1)
        curve = Curve(np.array(self._times)[ends], wholes, "difference over 20 frames")
        return DetectedCuts(tuple(cuts[frame] for frame in sorted(cuts)), curve)

    def _measure(self, frame: int, luminance: NDArray[np.float32]) -> None:
        """Keep every fifth frame's luminance and measure the segment that ends at it."""
        if frame % _STEP:
            return
        self._recent.append(luminance)
        if frame % _SPAN or frame == 0:
            return
        recent = list(self._recent)

        def difference(first: int, second: int) -> float:
            return float(np.abs(recent[first] - recent[second]).mean())

        self._segments.append(
            _Segment(
                difference(0, 4),
                (difference(0, 2), difference(2, 4)),
                ((difference(0, 1), difference(1, 2)), (difference(2, 3), difference(3, 4))),
            )
        )

    def _gradual_cuts(self, candidates: Sequence[Candidate]) -> Iterator[DetectedCut]:
        """Yield the transitions among merged adjacent candidates; if a group is not a transition as a whole, its
        members are tried one by one."""
        for group in _group_adjacent([(candidate.first, candidate.last) for candidate in candidates]):
            whole = group[0][0], group[-1][1]
            confidence = find_transition(self._columns(*whole))
            transitions = [] if confidence is None else [(whole, confidence)]
            if confidence is None and len(group) > 1:
                scores = {
                    member: score for member in group if (score := find_transition(self._columns(*member))) is not None
                }
                transitions = [
                    ((part[0][0], part[-1][1]), max(scores[member] for member in part))
                    for part in _group_adjacent(list(scores))
                ]
            for (first, last), confidence in transitions:
                yield DetectedCut((first + last + 1) // 2, "gradual", confidence, first, last)

    def _columns(self, first: int, last: int) -> NDArray[np.float64]:
        return reduced_columns(self._histograms.rows(first, last))


def _group_adjacent(intervals: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Group consecutive (first, last) intervals where each starts at the previous one's last frame."""
    groups: list[list[tuple[int, int]]] = []
    for interval in intervals:
        if groups and groups[-1][-1][1] == interval[0]:
            groups[-1].append(interval)
        else:
            groups.append([interval])
    return groups
