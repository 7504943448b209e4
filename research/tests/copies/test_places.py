"""Time errors and box overlaps, on values that can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.similarity import Segment
from vidkin_research.copies.edits import EditedSegment
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.places import box_overlap, place_segments, summarize_boxes, summarize_times
from vidkin_research.copies.recordings import QueryClip, Recording
from vidkin_research.copies.scores import PairScores

RECORDING = Recording(Path("a.mp4"), "a", "room", 20.0)
QUERY = QueryClip("a-0", Path("a-0.mp4"), RECORDING, 0.0, 10.0)


def video(edit: str, *segments: EditedSegment) -> GalleryVideo:
    return GalleryVideo(Path(f"a-0.{edit}.mp4"), "a", "room", edit, QUERY, segments)


def matching(query: tuple[float, float], target: tuple[float, float]) -> Segment:
    return Segment(*query, *target, score=0.5, speed=1.0, mirrored=False)


def place(found: list[Segment], copy: GalleryVideo) -> list[tuple[float, float] | None]:
    scores = PairScores(np.ones((1, 1)), [[tuple(found)]])
    places = place_segments(scores, CopyMaterial((QUERY,), (copy,)))
    return [None if p.segment is None else (p.segment.target_start, p.segment.target_end) for p in places]


def test_segment_is_matched_to_the_one_that_overlaps_it_most() -> None:
    copy = video("reordered", EditedSegment(5, 10, 0, 5), EditedSegment(0, 5, 5, 10))
    first, second = matching((5, 10), (0.1, 5)), matching((0, 4.5), (5, 9.5))
    assert place([second, first], copy) == [(0.1, 5), (5, 9.5)]
    # An overlap in the copy does not count if the segment shows other seconds of the query.
    assert place([matching((0, 5), (0, 5))], copy) == [None, None]
    assert place([], copy) == [None, None]


def test_nearest_of_several_segments_counts() -> None:
    copy = video("crop", EditedSegment(0, 6, 2, 8))
    assert place([matching((0, 2), (2, 4)), matching((0, 6), (2, 8))], copy) == [(2, 8)]


def test_distractors_and_other_sources_have_no_segments() -> None:
    other = GalleryVideo(Path("b.mp4"), "b", "b", "distractor")
    scores = PairScores(np.ones((1, 1)), [[(matching((0, 1), (0, 1)),)]])
    assert place_segments(scores, CopyMaterial((QUERY,), (other,))) == []


def test_errors_are_measured_at_starts_and_ends_in_the_copy() -> None:
    copies = (video("crop", EditedSegment(0, 6, 0, 6)), video("grey", EditedSegment(0, 10, 0, 10)))
    scores = PairScores(np.ones((1, 2)), [[(matching((0, 5), (0.5, 5)),), ()]])
    times = summarize_times(place_segments(scores, CopyMaterial((QUERY,), copies)))
    # One copy is off by 0.5 s at its start and 1 s at its end; the other is not found, which counts as 30 s.
    assert times is not None
    assert (times.stretches, times.missed) == (2, 1)
    assert (times.start_median, times.end_median) == pytest.approx((15.25, 15.5))
    assert (times.start_90th, times.end_90th) == pytest.approx((27.05, 27.1))
    assert summarize_times([]) is None
    assert summarize_boxes([]) is None


def test_boxes_of_geometric_and_inset_edits_are_evaluated() -> None:
    right_half, lower_right = (0.5, 0.0, 1.0, 1.0), (0.5, 0.5, 1.0, 1.0)
    copies = (
        video("crop", EditedSegment(0, 6, 0, 6, source_box=right_half)),
        video("inset_45", EditedSegment(0, 6, 0, 6, edited_box=lower_right)),
        video("grey", EditedSegment(0, 6, 0, 6)),
        video("mirror", EditedSegment(0, 6, 0, 6)),
    )
    found = [
        (Segment(0, 6, 0, 6, 0.5, query_box=right_half),),
        # Half of the frame instead of a quarter.
        (Segment(0, 6, 0, 6, 0.5, target_box=right_half),),
        (Segment(0, 6, 0, 6, 0.5, query_box=right_half),),
        (),
    ]
    scores = PairScores(np.ones((1, 4)), [found])
    boxes = summarize_boxes(place_segments(scores, CopyMaterial((QUERY,), copies)))
    assert boxes is not None
    assert (boxes.stretches, boxes.query, boxes.copy, boxes.both) == (2, 1.0, 0.75, 0.75)


def test_box_overlap_is_intersection_over_union() -> None:
    assert box_overlap((0, 0, 1, 1), (0, 0, 1, 1)) == 1
    assert box_overlap((0, 0, 0.5, 1), (0.25, 0, 0.75, 1)) == pytest.approx(1 / 3)
    assert box_overlap((0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1)) == 0
    assert box_overlap((0, 0, 0, 0), (0, 0, 0, 0)) == 0
