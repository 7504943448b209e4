"""Convert a line through the map of two videos to a segment in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.match.lines import AlignedLine
from vidkin.match.pose import PLAIN, Pose
from vidkin.similarity.contracts import WHOLE, Box, Segment

__all__ = ["Clock", "segment_of"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of the frames of a video.

    Attributes:
        times: [T] seconds.
        period: Duration of a segment's last frame in seconds.
        end: End of the video in seconds; None if unknown.
    """

    times: NDArray[np.floating]
    period: float
    end: float | None = None

    def span(self, frames: NDArray[np.intp]) -> tuple[float, float]:
        """Start of the first and end of the last of these frames, in seconds."""
        start, end = float(self.times[frames.min()]), float(self.times[frames.max()]) + self.period
        return (start, end) if self.end is None else (min(start, self.end), min(end, self.end))


def segment_of(
    line: AlignedLine,
    score: float,
    query: Clock,
    target: Clock,
    *,
    query_box: Box = WHOLE,
    target_box: Box = WHOLE,
    pose: Pose = PLAIN,
) -> Segment:
    """Convert a line to a segment.

    Args:
        line: The line; at least one of its frames must be in the target.
        score: Mean similarity along the line; clipped to [0, 1].
        query, target: Times of the frames.
        query_box, target_box: The regions of the frames that were compared.
        pose: Transform from the orientation of the query to that of the target.
    """
    inside = line.columns >= 0
    query_start, query_end = query.span(line.rows[inside])
    target_start, target_end = target.span(line.columns[inside])
    return Segment(
        query_start,
        query_end,
        target_start,
        target_end,
        score=float(np.clip(score, 0.0, 1.0)),
        speed=abs(line.speed),
        mirrored=pose.flip,
        query_box=query_box,
        target_box=target_box,
        turned=90 * pose.quarter,
        backwards=line.speed < 0,
    )
