"""The score of a trained comparator, which evaluates the map of all frames.

Shapes: Tq, Tt frames; R regions; D dimension; a primed length belongs to the learned map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch.nn import functional

from vidkin.similarity.alignment import align
from vidkin.similarity.evidence import calibrated_map
from vidkin.similarity.frame_features import FrameFeatures, Segment
from vidkin.similarity.frame_maps import frame_similarity
from vidkin.similarity.scorer import UNRELATED, PairScore

LEARNED = "learned"
"""Name of the scorer of a trained comparator."""

LEAST_INFORMATION = 0.05
"""Frames with less information show nothing, or what many videos share, and are not compared."""

# Shifts of the finer side to try; a copy that begins between two samples is met half a sample off at worst.
_MOST_SHIFTS = 4


class VideoComparator(Protocol):
    """Interface this scorer needs from a trained comparator."""

    @property
    def reduction(self) -> int:
        """Frames for each row and column of the learned map."""

    def weigh(self, values: torch.Tensor) -> torch.Tensor:
        """Weight descriptors [T, R, D] for comparison."""

    def frame_map(self, query: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Similarities of frames [Tq, Tt]."""

    def learned_map(self, frame_map: torch.Tensor) -> torch.Tensor:
        """Learned map [Tq', Tt'] in [-1, 1] of a map of any size."""

    def video_score(self, learned_map: torch.Tensor) -> torch.Tensor:
        """Scores [...] in [-1, 1] of learned maps [..., Tq', Tt']."""


@dataclass(frozen=True, slots=True)
class LearnedScorer:
    """Scores how certain a trained comparator is that two videos show the same, and finds where.

    The shorter video is looked for in the longer one, in stretches of up to three times its length. Frames without
    information are left out, and the more densely sampled side is thinned to the period of the other. With s the
    comparator's score of the pair, s0 that of the shorter video with itself, and (m, u) the median and the 99th
    percentile of unrelated videos:
    ``score = .2 + .8 (s - u) / (s0 - u)`` above u, ``.2 (s - m) / (u - m)`` below, clipped to [0, 1]. So a video
    scores 1 with itself, and unrelated videos score below .2.

    Segments are lines through ``map = calibrated frame similarity x clamp(2 (l - m) / (s0 - m), 0, 1)`` with l the
    learned map: a cell half as certain as the video compared with itself counts fully, because cells at the edge of a
        match are less certain.

    Attributes:
        comparator: The trained comparator.
        unrelated: The raw scores m and u of unrelated videos.
        identity: Identifies weights and settings: scorers with the same identity give the same scores.
        threshold: Least value of the map at which frames count toward a segment.
        maximum_segments: Maximum number of segments reported per pair.
    """

    comparator: VideoComparator = field(repr=False, compare=False)
    unrelated: tuple[float, float]
    identity: str
    threshold: float = 0.3
    maximum_segments: int = 8

    name: ClassVar[str] = LEARNED
    # True: segments are read from a calibrated map.
    needs_background: ClassVar[bool] = True
    # Yes: lines through the map.
    has_segments: ClassVar[bool] = True

    @torch.no_grad()
    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """Scores, segments and maps [Tq, Tt]; see :class:`vidkin.similarity.Scorer`."""
        side = _InformativeFrames.of(query, self.comparator)
        return [self._score(side, _InformativeFrames.of(target, self.comparator), mirrored) for target in targets]

    def raw_score(self, query: FrameFeatures, target: FrameFeatures) -> float:
        """The comparator's own score in [-1, 1]; -1 if a side has no informative frame."""
        with torch.no_grad():
            sides = (
                _InformativeFrames.of(query, self.comparator),
                _InformativeFrames.of(target, self.comparator),
            )
            return self._compare(*sorted(sides, key=lambda side: side.seconds))[0]

    def _score(self, query: _InformativeFrames, target: _InformativeFrames, mirrored: bool) -> PairScore:
        is_swapped = target.seconds < query.seconds
        shorter, longer = (target, query) if is_swapped else (query, target)
        raw, learned = self._compare(shorter, longer)
        plain = frame_similarity(query.features.whole.float(), target.features.whole.float(), symmetric=True)
        whole = calibrated_map(plain, query.features.baselines[:, 0], target.features.baselines[:, 0])
        if not len(learned):
            return PairScore(0.0, (), torch.zeros_like(whole))
        if shorter.itself is None:
            shorter.itself = self._compare(shorter, shorter)[0]
        median, high = self.unrelated
        if raw <= high:
            score = UNRELATED * min(1.0, max(0.0, (raw - median) / (high - median)))
        elif shorter.itself <= high:
            score = UNRELATED  # the comparator does not even recognize the video itself
        else:
            above = (raw - high) / (shorter.itself - high)
            score = min(1.0, UNRELATED + (1.0 - UNRELATED) * above)
        span = max(shorter.itself - self.unrelated[0], 1e-6) / 2
        sure = ((learned - self.unrelated[0]) / span).clamp(0, 1)
        frame_map = whole * (sure.T if is_swapped else sure)
        segments: tuple[Segment, ...] = ()
        if score > 0:
            segments = tuple(
                align(
                    frame_map,
                    query.features.timestamps,
                    target.features.timestamps,
                    query_weights=query.features.information,
                    target_weights=target.features.information,
                    threshold=self.threshold,
                    maximum_segments=self.maximum_segments,
                    mirrored=mirrored,
                )
            )
        ends = (query.features.end or math.inf, target.features.end or math.inf)
        return PairScore(score, tuple(segment.cut(*ends) for segment in segments), frame_map)

    def _compare(self, shorter: _InformativeFrames, longer: _InformativeFrames) -> tuple[float, torch.Tensor]:
        """The raw score, and the learned map [Ts, Tl] spread over all frames, in [-1, 1]; empty without frames."""
        if not (len(shorter.rows) and len(longer.rows)):
            return -1.0, torch.zeros(0, 0)
        frame_map = self.comparator.frame_map(shorter.values, longer.values)
        rows, columns = _common_clock(shorter, longer, frame_map)
        frame_map = frame_map[rows][:, columns]
        learned = self.comparator.learned_map(frame_map)
        raw = self._best_stretch(frame_map)
        spread = learned.float()
        for axis, (side, places) in enumerate(((shorter, rows), (longer, columns))):
            # Each frame gets the value of the compared frame before it, which represents `reduction` frames.
            times = side.features.timestamps
            compared = times[side.rows[places]].contiguous()
            before = (torch.searchsorted(compared, times.contiguous(), right=True) - 1).clamp(min=0)
            spread = spread.index_select(axis, before // self.comparator.reduction)
        return raw, spread

    def _best_stretch(self, frame_map: torch.Tensor) -> float:
        """The highest score of the shorter video with the stretches of the longer one that resemble it most.

        Stretches are one, two and three times as long as the shorter video; for each length, the one whose frames
        resemble those of the video most (and vice versa) is compared. Each is compared by itself: its surroundings
        change what the network computes at its edges, and would make the score depend on the rest of the video.
        """
        rows, columns = frame_map.shape
        best = -1.0
        for times in (1, 2, 3):
            width = min(times * rows, columns)
            means = functional.max_pool1d(frame_map[None], width, 1)[0].mean(0)
            inside = functional.avg_pool1d(frame_map.amax(0)[None], width, 1)[0]
            start = int((means + inside).argmax())
            stretch = frame_map[:, start : start + width].contiguous()
            best = max(best, float(self.comparator.video_score(self.comparator.learned_map(stretch))))
            if width == columns:
                break
        return best


@dataclass(slots=True)
class _InformativeFrames:
    """One of two videos: its informative frames, ready to be compared."""

    features: FrameFeatures
    rows: torch.Tensor  # [n] indices of informative frames
    values: torch.Tensor  # [n, R, D] weighed
    itself: float | None = None  # raw score of the video with itself, computed when first needed

    @classmethod
    def of(cls, features: FrameFeatures, comparator: VideoComparator) -> _InformativeFrames:
        rows = (features.information >= LEAST_INFORMATION).nonzero()[:, 0]
        return cls(features, rows, comparator.weigh(features.whole[rows].float()))

    @property
    def seconds(self) -> float:
        return len(self.rows) * self.features.period


def _common_clock(
    query: _InformativeFrames, target: _InformativeFrames, frame_map: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the map [nq, nt] at the period of the coarser side.

    A comparator is trained on maps in which a copy is a diagonal. Of the shifts of the finer side the one with the
    highest Chamfer similarity is taken.
    """
    periods = (query.features.period, target.features.period)
    step = round(max(periods) / min(periods))
    sides = [torch.arange(len(side.rows)) for side in (query, target)]
    if step <= 1:
        return sides[0], sides[1]
    finer = 0 if periods[0] < periods[1] else 1
    spread = (query, target)[finer].features.timestamps[(query, target)[finer].rows]
    ticks = ((spread - spread[0]) / min(periods)).round().long()
    best, chosen = -math.inf, sides[finer]
    for shift in torch.linspace(0, step - 1, min(step, _MOST_SHIFTS)).round().long().tolist():
        places = (ticks % step == shift).nonzero()[:, 0]
        if len(places):
            part = frame_map.index_select(finer, places)
            similarity = float(part.amax(1).mean())
            if similarity > best:
                best, chosen = similarity, places
    sides[finer] = chosen
    return sides[0], sides[1]
