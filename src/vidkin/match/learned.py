"""Score pairs of videos with a trained comparator, which evaluates their frame similarity map.

Shapes: Tq query frames, Tt target frames, R regions, D dimensions; primes mark the sizes of the learned map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import unchecked
from vidkin.match.lines import AlignedLine, find_lines
from vidkin.match.maps import frame_map
from vidkin.match.segments import Clock, segment_of
from vidkin.similarity.contracts import FrameFeatures, PairScore, Segment
from vidkin.similarity.scale import UNRELATED

# Called for every pair of videos, so argument checks would be too slow.
_find_lines, _frame_map = unchecked(find_lines), unchecked(frame_map)

LEARNED = "learned"
"""Name of the scorer that uses a trained comparator."""

LEAST_INFORMATION = 0.05
"""Frames with less information are not compared: they are blank, or show content common to many videos."""

# Maximum number of phase shifts to try on the more densely sampled side, for copies that start between two samples.
_MAX_SHIFTS = 4


class VideoComparator(Protocol):
    """Interface a trained comparator must implement: float32 NumPy arrays in and out, no gradients.

    Implementations in torch or another library convert from and to NumPy.
    """

    @property
    def reduction(self) -> int:
        """Number of frames per row and column of the learned map, at least 1: ``Tq' = ceil(Tq / reduction)``, or one
        less if the network drops the remainder."""

    def weigh(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weight descriptors [T, R, D] float32 for comparison; return [T, R, D'] float32. T may be 0."""

    def frame_map(self, query: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
        """Similarities [Tq, Tt] float32 of weighted descriptors [Tq, R, D'] and [Tt, R, D'], with Tq, Tt >= 1."""

    def learned_map(self, frame_map: NDArray[np.float32]) -> NDArray[np.float32]:
        """Learned map [Tq', Tt'] float32 in [-1, 1] for a contiguous frame map [Tq, Tt] float32 of any size."""

    def video_score(self, learned_map: NDArray[np.float32]) -> float:
        """Score in [-1, 1] for a learned map [Tq', Tt']."""


@dataclass(frozen=True, slots=True)
class LearnedScorer:
    """Scores how certain a trained comparator is that two videos share footage, and finds the shared segments.

    The shorter video is searched for in the longer one, in windows of up to three times its length. Frames without
    information are dropped, and the more densely sampled video is subsampled to the period of the other. With s the
    comparator's score for the pair, s0 its score for the shorter video with itself, and (m, u) the median and the 99th
    percentile of its scores for unrelated videos:
    ``score = 0.2 + 0.8 (s - u) / (s0 - u)`` above u, ``0.2 (s - m) / (u - m)`` below, clipped to [0, 1]. A video
    therefore scores 1 with itself, and 99 % of unrelated videos score below 0.2.

    Segments are lines through ``map = calibrated frame similarity x clamp(2 (l - m) / (s0 - m), 0, 1)`` with l the
    learned map. A cell counts fully at half the certainty of the video compared with itself, because cells at the edge
    of a match are less certain.

    Attributes:
        comparator: The trained comparator.
        unrelated: Median m and 99th percentile u of the raw scores of unrelated videos.
        identity: Identifies weights and settings: scorers with the same identity return the same scores.
        threshold: Minimum map value at which frames count toward a segment.
        maximum_segments: Maximum number of segments reported per pair.
    """

    comparator: VideoComparator = field(repr=False, compare=False)
    unrelated: tuple[float, float]
    identity: str
    threshold: float = 0.3
    maximum_segments: int = 8

    name: ClassVar[str] = LEARNED
    # Segments are lines through a map calibrated by unrelated frames.
    needs_background: ClassVar[bool] = True
    has_segments: ClassVar[bool] = True

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Scores, segments and maps [Tq, Tt]; see :class:`vidkin.similarity.Scorer`."""
        side = _InformativeFrames.of(query, self.comparator)
        return [self._score(side, _InformativeFrames.of(target, self.comparator)) for target in targets]

    def raw_score(self, query: FrameFeatures, target: FrameFeatures) -> float:
        """The comparator's raw score in [-1, 1]; -1 if a video has no informative frames."""
        sides = (
            _InformativeFrames.of(query, self.comparator),
            _InformativeFrames.of(target, self.comparator),
        )
        return self._compare(*sorted(sides, key=lambda side: side.seconds))[0]

    def scaled(self, raw: float, itself: float) -> float:
        """Rescale a raw score of the comparator to [0, 1].

        Args:
            raw: s, the raw score of the pair.
            itself: s0, the raw score of the shorter video with itself.
        """
        median, high = self.unrelated
        if raw <= high:
            return UNRELATED * min(1.0, max(0.0, (raw - median) / (high - median)))
        if itself <= high:
            return UNRELATED  # the comparator fails to match the video even with itself
        return min(1.0, UNRELATED + (1.0 - UNRELATED) * (raw - high) / (itself - high))

    def _score(self, query: _InformativeFrames, target: _InformativeFrames) -> PairScore:
        is_swapped = target.seconds < query.seconds
        shorter, longer = (target, query) if is_swapped else (query, target)
        raw, learned = self._compare(shorter, longer)
        sides = [np.asarray(side.features.vectors[:, 0], np.float32) for side in (query, target)]
        levels = [np.asarray(side.features.baselines[:, 0], np.float32) for side in (query, target)]
        whole = np.clip(_frame_map(*sides, *levels), 0.0, 1.0)
        if not len(learned):
            return PairScore(0.0, (), np.zeros_like(whole))
        if shorter.itself is None:
            shorter.itself = self._compare(shorter, shorter)[0]
        score = self.scaled(raw, shorter.itself)
        span = max(shorter.itself - self.unrelated[0], 1e-6) / 2
        sure = np.clip((learned - self.unrelated[0]) / span, 0, 1)
        similarity = whole * (sure.T if is_swapped else sure)
        segments: tuple[Segment, ...] = ()
        if score > 0:
            weights = np.minimum(query.features.information[:, None], target.features.information[None])
            above = similarity - np.float32(self.threshold)
            evidence = above * np.where(above > 0, weights, np.float32(1.0))
            times = (np.asarray(side.features.timestamps, np.float64) for side in (query, target))
            lines = _find_lines(evidence.astype(np.float32, copy=False), *times, max_lines=self.maximum_segments)
            clocks = [
                Clock(side.features.timestamps, side.features.period, side.features.end) for side in (query, target)
            ]
            segments = tuple(segment_of(line, _mean_along(line, similarity), *clocks) for line in lines)
        return PairScore(score, segments, similarity)

    def _compare(self, shorter: _InformativeFrames, longer: _InformativeFrames) -> tuple[float, NDArray[np.float32]]:
        """Return the raw score, and the learned map [Ts, Tl] in [-1, 1] upsampled to all frames; empty without
        informative frames."""
        if not (len(shorter.rows) and len(longer.rows)):
            return -1.0, np.zeros((0, 0), np.float32)
        frame_map = self.comparator.frame_map(shorter.values, longer.values)
        rows, columns = _common_clock(shorter, longer, frame_map)
        frame_map = np.ascontiguousarray(frame_map[rows][:, columns])
        spread = self.comparator.learned_map(frame_map)
        raw = self._best_stretch(frame_map)
        for axis, (side, places) in enumerate(((shorter, rows), (longer, columns))):
            # Each frame takes the cell of the last compared frame at or before it; a cell covers `reduction` frames.
            times = side.features.timestamps
            before = np.maximum(np.searchsorted(times[side.rows[places]], times, side="right") - 1, 0)
            # A network that drops the remainder has no cell for the last few frames; they take the last cell.
            spread = spread.take(before // self.comparator.reduction, axis, mode="clip")
        return raw, spread

    def _best_stretch(self, frame_map: NDArray[np.float32]) -> float:
        """Return the highest score of the shorter video with the most similar windows of the longer one.

        Windows are one, two and three times as long as the shorter video; for each length, the window with the highest
        frame similarity in both directions is scored. Each window is cropped from the map, because the network's
        receptive field would otherwise make the score depend on the rest of the video.
        """
        rows, columns = frame_map.shape
        best = -1.0
        for times in (1, 2, 3):
            width = min(times * rows, columns)
            means = _sliding_maximum(frame_map, width).mean(0)
            sums = np.append(0.0, np.cumsum(frame_map.max(0), dtype=np.float64))
            inside = ((sums[width:] - sums[:-width]) / width).astype(np.float32)
            start = int((means + inside).argmax())
            stretch = np.ascontiguousarray(frame_map[:, start : start + width])
            best = max(best, float(self.comparator.video_score(self.comparator.learned_map(stretch))))
            if width == columns:
                break
        return best


def _mean_along(line: AlignedLine, similarity: NDArray[np.float32]) -> float:
    inside = line.columns >= 0
    return float(similarity[line.rows[inside], line.columns[inside]].mean())


def _sliding_maximum(values: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Sliding maximum [N, M - width + 1] over ``width`` columns, computed by doubling the window width."""
    reach = 1
    while reach < width:
        step = min(reach, width - reach)
        values = np.maximum(values[:, :-step], values[:, step:])
        reach += step
    return values


@dataclass(slots=True)
class _InformativeFrames:
    """The informative frames of one video, with descriptors weighted for comparison."""

    features: FrameFeatures
    rows: NDArray[np.int64]  # [n] indices of informative frames
    values: NDArray[np.float32]  # [n, R, D'] weighted descriptors
    itself: float | None = None  # raw score of the video with itself, computed on first use

    @classmethod
    def of(cls, features: FrameFeatures, comparator: VideoComparator) -> _InformativeFrames:
        rows = np.flatnonzero(features.information >= LEAST_INFORMATION)
        return cls(features, rows, comparator.weigh(features.whole[rows].astype(np.float32)))

    @property
    def seconds(self) -> float:
        return len(self.rows) * self.features.period


def _common_clock(
    query: _InformativeFrames, target: _InformativeFrames, frame_map: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the map [nq, nt] after subsampling the finer side to the period of the coarser one.

    The comparator is trained on maps in which a copy is a 45-degree diagonal. The phase shift of the finer side with
    the highest Chamfer similarity is used.
    """
    periods = (query.features.period, target.features.period)
    step = round(max(periods) / min(periods))
    sides = [np.arange(len(side.rows)) for side in (query, target)]
    if step <= 1:
        return sides[0], sides[1]
    finer = 0 if periods[0] < periods[1] else 1
    spread = (query, target)[finer].features.timestamps[(query, target)[finer].rows]
    ticks = np.rint((spread - spread[0]) / min(periods)).astype(np.int64)
    best, chosen = -math.inf, sides[finer]
    for shift in np.rint(np.linspace(0, step - 1, min(step, _MAX_SHIFTS))).tolist():
        places = np.flatnonzero(ticks % step == shift)
        if len(places):
            similarity = float(frame_map.take(places, finer).max(1).mean())
            if similarity > best:
                best, chosen = similarity, places
    sides[finer] = chosen
    return sides[0], sides[1]
