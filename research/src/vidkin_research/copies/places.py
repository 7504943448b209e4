"""Time errors and box overlaps of detected segments, relative to the ground truth."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.similarity import Segment
from vidkin_research.copies.edits import EditedSegment
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.scores import PairScores

Box = tuple[float, float, float, float]


# Time error in seconds assigned to a missed segment.
NOT_FOUND = 30.0


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A true segment of a copy and the detected segment that matches it.

    Attributes:
        edit: Name of the copy's edit.
        edit_family: What the edit changes.
        truth: The true segment.
        segment: The detected segment that overlaps it most in both videos; None if there is none.
    """

    edit: str
    edit_family: str
    truth: EditedSegment
    segment: Segment | None


@dataclass(frozen=True, slots=True)
class TimeErrors:
    """Start and end errors in the copy, in seconds; a missed segment counts as `NOT_FOUND`.

    Attributes:
        stretches: Number of true segments.
        missed: Number of missed segments.
        start_median: Median start error.
        end_median: Median end error.
        start_90th: 90th percentile of the start errors.
        end_90th: 90th percentile of the end errors.
    """

    stretches: int
    missed: int
    start_median: float
    end_median: float
    start_90th: float
    end_90th: float


@dataclass(frozen=True, slots=True)
class BoxOverlaps:
    """Mean intersection over union of detected and true boxes, over detected segments.

    Attributes:
        stretches: Number of detected segments.
        query: Mean overlap of the boxes in the query.
        copy: Mean overlap of the boxes in the copy.
        both: Mean product of a segment's two overlaps.
    """

    stretches: int
    query: float
    copy: float
    both: float


def place_segments(scores: PairScores, material: CopyMaterial) -> list[PlacedSegment]:
    """Pair every true segment of every copy with the segment detected for its query."""
    assert scores.segments is not None
    row_of = {query.name: row for row, query in enumerate(material.queries)}
    placed = []
    for column, video in enumerate(material.gallery):
        if video.source is None or video.edit_family is None:
            continue
        segments = scores.segments[row_of[video.source.name]][column]
        for truth in video.segments:
            # Segments are sorted best first, so ties keep the best one.
            best, most = None, 0.0
            for segment in segments:
                in_copy = _overlap(segment.target_start, segment.target_end, truth.edited_start, truth.edited_end)
                in_query = _overlap(segment.query_start, segment.query_end, truth.source_start, truth.source_end)
                if in_copy * in_query > most:
                    best, most = segment, in_copy * in_query
            placed.append(PlacedSegment(video.edit, video.edit_family, truth, best))
    return placed


def summarize_times(placed: Sequence[PlacedSegment]) -> TimeErrors | None:
    """Summarize the time errors of these segments; None if there are none."""
    if not placed:
        return None
    starts, ends = [], []
    for detection in placed:
        segment, truth = detection.segment, detection.truth
        starts.append(abs(segment.target_start - truth.edited_start) if segment else NOT_FOUND)
        ends.append(abs(segment.target_end - truth.edited_end) if segment else NOT_FOUND)
    return TimeErrors(
        stretches=len(placed),
        missed=sum(detection.segment is None for detection in placed),
        start_median=statistics.median(starts),
        end_median=statistics.median(ends),
        start_90th=float(np.quantile(starts, 0.9)),
        end_90th=float(np.quantile(ends, 0.9)),
    )


def summarize_boxes(placed: Iterable[PlacedSegment]) -> BoxOverlaps | None:
    """Summarize the box overlaps of geometric and inset edits; None if no segment was detected."""
    pairs = [
        (
            box_overlap(detection.segment.query_box, detection.truth.source_box),
            box_overlap(detection.segment.target_box, detection.truth.edited_box),
        )
        for detection in placed
        if detection.segment is not None and detection.edit_family in ("geometry", "inset")
    ]
    if not pairs:
        return None
    query, copy = (statistics.fmean(values) for values in zip(*pairs, strict=True))
    return BoxOverlaps(len(pairs), query, copy, statistics.fmean(a * b for a, b in pairs))


def box_overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes (left, top, right, bottom); 0 if both are empty."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(0.0, width) * max(0.0, height)
    union = _area(first) + _area(second) - shared
    return shared / union if union > 0 else 0.0


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(start: float, end: float, other_start: float, other_end: float) -> float:
    shared = min(end, other_end) - max(start, other_start)
    union = max(end, other_end) - min(start, other_start)
    return max(0.0, shared) / union if union > 0 else 0.0
