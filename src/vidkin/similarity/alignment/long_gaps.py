"""Times that jump: gaps without frames are shortened for the alignment, because its work grows with video length.

A file of a few frames can claim that months lie between two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from vidkin.similarity.segment import Segment

__all__ = ["ShortenedTimes", "shorten_gaps"]

# Number of lines above which gaps are shortened: two twelve-hour videos at one frame per second have 1.4 million.
_MANY_LINES = 1 << 23
# Seconds to which a longer gap is shortened.
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class ShortenedTimes:
    """Times of two videos without their long gaps, or unchanged.

    Attributes:
        query, target: [T] seconds, increasing.
        query_before, target_before: Times of the same frames with the gaps.
    """

    query: torch.Tensor
    target: torch.Tensor
    query_before: torch.Tensor
    target_before: torch.Tensor

    def restore(self, segment: Segment) -> Segment:
        """Convert a segment from shortened times to the times of the files."""
        if self.query is self.query_before:
            return segment
        return replace(
            segment,
            query_start=_restore(segment.query_start, self.query, self.query_before),
            query_end=_restore(segment.query_end, self.query, self.query_before),
            target_start=_restore(segment.target_start, self.target, self.target_before),
            target_end=_restore(segment.target_end, self.target, self.target_before),
        )


def shorten_gaps(query: torch.Tensor, target: torch.Tensor, speeds: Sequence[float]) -> ShortenedTimes:
    """The times with no gap of more than a minute; unchanged if the alignment can handle them.

    Args:
        query, target: [T] seconds, increasing.
        speeds: Speeds of the lines to search for.
    """
    unchanged = ShortenedTimes(query, target, query, target)
    if query.ndim != 1 or target.ndim != 1 or not query.numel() or not target.numel():
        return unchanged
    times = query.double(), target.double()
    gaps = [side.diff() for side in times]
    steps = [float(gap.median()) for gap in reversed(gaps) if gap.numel()]
    spans = [float(side[-1] - side[0]) for side in times]
    if not steps or not sum(speeds) * spans[0] + len(speeds) * spans[1] > _MANY_LINES * steps[0] / 2:
        return unchanged
    if not any(bool((gap > _LONGEST_PAUSE).any()) for gap in gaps):
        return unchanged
    first, second = (
        torch.cat([side[:1], side[0] + gap.clamp(max=_LONGEST_PAUSE).cumsum(0)])
        for side, gap in zip(times, gaps, strict=True)
    )
    return ShortenedTimes(first, second, *times)


def _restore(seconds: float, times: torch.Tensor, before: torch.Tensor) -> float:
    """Ends lie within half a period of a frame and move with it."""
    nearest = int((times - seconds).abs().argmin())
    return float(before[nearest]) + (seconds - float(times[nearest]))
