"""SVD-SBD: shot boundaries by segment selection, singular value decomposition and pattern matching."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.baselines.histograms import HistogramStore
from vidkin.shots.baselines.svd.rules import (
    Candidate,
    candidate_segments,
    find_cut,
    find_transition,
    narrow,
    reduced_columns,
)
from vidkin.shots.contract import DetectedCut, DetectedCuts, RgbFrame
from vidkin.shots.shot import Curve

__all__ = ["SvdBaseline"]

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_SPAN = 20
_STEP = 5


@dataclass(frozen=True, slots=True)
class _Segment:
    """Differences in luminance over a segment, its halves, and their halves."""

    whole: float
    halves: tuple[float, float]
    quarters: tuple[tuple[float, float], tuple[float, float]]


class SvdBaseline:
    """SVD-SBD (Lu and Shi, "Fast video shot boundary detection based on SVD and pattern matching", IEEE TIP 2013).

    Reconstructed from secondary sources: the thresholds of the selection are the published ones, those of the
    inverted triangle are ours, and so figures of this detector are not the authors'.

    The video is divided into segments of 21 frames that share their end frames. Segments whose ends differ enough
    in luminance (adaptive thresholds per ten segments) are bisected twice, see `svd_steps.narrow`. Hard candidates, 6
    frames, are cut where neighbouring frames are least alike, unless their ends are alike (a flash). Gradual
    candidates, joined where they touch, must draw an inverted triangle; where the joined ones do not, each is
    tried alone. Likeness is the cosine in the space of the 8 leading singular vectors of the frames' HSV
    histograms (18 x 12 x 8 bins). The last segment is filled up with the last frame.

    Memory grows by about 2 kB a frame: thresholds need the mean over the whole video before a segment is chosen.
    """

    short_side: int | None = 144

    def __init__(self) -> None:
        self.name = "svd"
        self._times: list[float] = []
        self._histograms = HistogramStore()
        self._keyed: deque[NDArray[np.float32]] = deque(maxlen=_SPAN // _STEP + 1)
        self._segments: list[_Segment] = []
        self._last: NDArray[np.float32] | None = None

    def push(self, frame: RgbFrame) -> None:
        """Take the next frame."""
        self._histograms.append(frame.image)
        self._last = frame.image @ _LUMA
        self._take(len(self._times), self._last)
        self._times.append(frame.time)

    def finish(self) -> DetectedCuts:
        """The cuts, and the differences of segments as the curve (at their last frames)."""
        frames = len(self._times)
        if frames == 0:
            return DetectedCuts(())
        assert self._last is not None
        for place in range(frames, -(-(frames - 1) // _SPAN) * _SPAN + 1):
            self._take(place, self._last)
        wholes = np.array([segment.whole for segment in self._segments])
        candidates = [
            found
            for place in candidate_segments(wholes).nonzero()[0].tolist()
            if (found := self._narrowed(place, self._segments[place])) is not None
        ]
        cuts = {cut.frame: cut for cut in [*self._gradual(candidates), *self._hard(candidates)]}
        ends = np.minimum((np.arange(len(wholes)) + 1) * _SPAN, frames - 1)
        curve = Curve(np.array(self._times)[ends], wholes, "difference over 20 frames")
        return DetectedCuts(tuple(cuts[frame] for frame in sorted(cuts)), curve)

    def _take(self, place: int, luminance: NDArray[np.float32]) -> None:
        """Keep every fifth frame's luminance; measure the segment that it ends."""
        if place % _STEP:
            return
        self._keyed.append(luminance)
        if place % _SPAN or place == 0:
            return
        keyed = list(self._keyed)

        def difference(first: int, second: int) -> float:
            return float(np.abs(keyed[first] - keyed[second]).mean())

        self._segments.append(
            _Segment(
                difference(0, 4),
                (difference(0, 2), difference(2, 4)),
                ((difference(0, 1), difference(1, 2)), (difference(2, 3), difference(3, 4))),
            )
        )

    def _narrowed(self, place: int, segment: _Segment) -> Candidate | None:
        found = narrow(place * _SPAN, segment.whole, segment.halves, segment.quarters)
        if found is None:
            return None
        last = min(found.last, len(self._times) - 1)
        return Candidate(found.kind, found.first, last) if last > found.first else None

    def _hard(self, candidates: list[Candidate]) -> list[DetectedCut]:
        cuts = []
        for candidate in candidates:
            if candidate.kind == "hard":
                found = find_cut(self._columns(candidate.first, candidate.last))
                if found is not None:
                    cuts.append(DetectedCut(candidate.first + found[0], confidence=found[1]))
        return cuts

    def _gradual(self, candidates: list[Candidate]) -> list[DetectedCut]:
        groups: list[list[Candidate]] = []
        for candidate in candidates:
            if candidate.kind != "gradual":
                continue
            if groups and groups[-1][-1].last == candidate.first:
                groups[-1].append(candidate)
            else:
                groups.append([candidate])
        cuts = []
        for group in groups:
            first, last = group[0].first, group[-1].last
            confidence = find_transition(self._columns(first, last))
            if confidence is not None:
                cuts.append(_transition(first, last, confidence))
            elif len(group) > 1:
                cuts += self._one_by_one(group)
        return cuts

    def _one_by_one(self, group: list[Candidate]) -> list[DetectedCut]:
        """Those of a group that are transitions by themselves, joined again where they touch."""
        joined: list[tuple[int, int, float]] = []
        for member in group:
            confidence = find_transition(self._columns(member.first, member.last))
            if confidence is None:
                continue
            if joined and joined[-1][1] == member.first:
                first, _, other = joined.pop()
                joined.append((first, member.last, max(confidence, other)))
            else:
                joined.append((member.first, member.last, confidence))
        return [_transition(*each) for each in joined]

    def _columns(self, first: int, last: int) -> NDArray[np.float64]:
        return reduced_columns(self._histograms.rows(first, last))


def _transition(first: int, last: int, confidence: float) -> DetectedCut:
    return DetectedCut((first + last + 1) // 2, "gradual", confidence, first, last)
