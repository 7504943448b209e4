"""Selection of frames that are shown side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vidkin.index import Comparison
from vidkin.rendering import frame_pairs
from vidkin.similarity import Segment


def diagonal(length: int, *segments: Segment, shift: int = 0) -> Comparison:
    """A video compared to itself (delayed by ``shift`` s) at one frame per second: 1 at equal times, otherwise 0.2."""
    frame_map = np.full((length, length + shift), 0.2, np.float32)
    rows = np.arange(length)
    frame_map[rows, rows + shift] = 1.0
    return Comparison(0.9, segments, frame_map, rows.astype(np.float64), np.arange(length + shift, dtype=np.float64))


def test_pairs_are_spread_over_the_segment_and_lie_on_the_diagonal() -> None:
    pairs = frame_pairs(diagonal(12, Segment(0, 11, 3, 14, 0.9), shift=3), count=3)
    # A sixth, half and five sixths of 11 seconds are 1.8, 5.5 and 9.2, rounded to the nearest frames.
    assert [pair.query_time for pair in pairs] == [2, 5, 9]
    assert [pair.target_time for pair in pairs] == [5, 8, 12]
    assert [pair.similarity for pair in pairs] == [1, 1, 1]


def test_pairs_of_a_reversed_segment_lie_on_its_line() -> None:
    forwards = diagonal(12, Segment(0, 11, 0, 11, 0.9, backwards=True))
    pairs = frame_pairs(replace(forwards, map=np.ascontiguousarray(forwards.map[::-1])), count=3)
    assert [(pair.query_time, pair.target_time) for pair in pairs] == [(2, 9), (5, 6), (9, 2)]
    assert [pair.similarity for pair in pairs] == [1, 1, 1]


def test_longer_segments_get_more_pairs_and_every_segment_gets_one() -> None:
    segments = (Segment(0, 8, 0, 8, 0.9), Segment(9, 10, 9, 10, 0.8))
    times = [pair.query_time for pair in frame_pairs(diagonal(12, *segments), count=4)]
    assert len([time for time in times if time <= 8]) == 3
    assert len([time for time in times if time >= 9]) == 1


def test_segment_between_two_frames_has_no_pair() -> None:
    assert frame_pairs(diagonal(5, Segment(1.2, 1.8, 1.2, 1.8, 0.9))) == ()


def test_frame_is_paired_with_the_most_similar_frame_near_the_line() -> None:
    comparison = diagonal(9, Segment(0, 8, 0, 8, 0.9))
    comparison.map[4] = np.array([1.0, 0, 0, 0.7, 0.3, 0.5, 0, 0, 1.0])
    (pair,) = frame_pairs(comparison, count=1)
    assert (pair.query_time, pair.target_time) == (4, 3)
    assert abs(pair.similarity - 0.7) < 1e-6


def test_pairs_have_the_boxes_and_flip_of_their_segment() -> None:
    left, right = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)
    segment = Segment(0, 4, 0, 4, 0.9, mirrored=True, query_box=left, target_box=right)
    (pair,) = frame_pairs(diagonal(5, segment), count=1)
    assert (pair.mirrored, pair.query_box, pair.target_box) == (True, left, right)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=8),
    st.integers(min_value=1, max_value=8),
)
def test_pair_count_never_exceeds_the_limit(spans: list[tuple[int, int]], count: int) -> None:
    segments = [Segment(start, start + length, start, start + length, 0.9) for start, length in spans]
    pairs = frame_pairs(diagonal(41, *segments), count=count)
    assert 1 <= len(pairs) <= count
    assert list(pairs) == sorted(pairs, key=lambda pair: (pair.query_time, pair.target_time))
    assert all(pair.query_time == pair.target_time for pair in pairs)
