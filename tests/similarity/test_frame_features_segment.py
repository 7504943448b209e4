"""Segments refuse invalid values, and can be clipped and swapped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import Segment

LEFT, MIDDLE = (0.0, 0.0, 0.5, 1.0), (0.25, 0.25, 0.75, 0.75)
SEGMENT = Segment(1.0, 3.0, 10.0, 14.0, 0.9, 2.0, query_box=LEFT, target_box=MIDDLE)


def test_clipped_segment_ends_with_the_videos() -> None:
    cut = SEGMENT.cut(query_end=2.5, target_end=13.0)
    assert (cut.query_start, cut.query_end) == (1.0, 2.5)
    assert (cut.target_start, cut.target_end) == (10.0, 13.0)
    assert SEGMENT.cut(query_end=100.0, target_end=100.0) == SEGMENT
    # A segment beyond the end is clipped to a single point.
    beyond = SEGMENT.cut(query_end=0.5, target_end=9.0)
    assert (beyond.query_start, beyond.query_end, beyond.target_start, beyond.target_end) == (
        0.5,
        0.5,
        9.0,
        9.0,
    )


def test_swapped_segment_exchanges_both_sides_and_inverts_the_speed() -> None:
    swapped = SEGMENT.swapped()
    assert swapped == Segment(10.0, 14.0, 1.0, 3.0, 0.9, 0.5, query_box=MIDDLE, target_box=LEFT)
    assert swapped.swapped() == SEGMENT
    quarter = replace(SEGMENT, turned=90)
    assert (quarter.swapped().turned, replace(quarter, mirrored=True).swapped().turned) == (270, 90)
    assert quarter.swapped().swapped() == quarter


def test_target_time_follows_the_query_forward_and_backward() -> None:
    assert [SEGMENT.target_time(time) for time in (1, 2, 3)] == [10, 12, 14]
    backwards = replace(SEGMENT, backwards=True)
    assert [backwards.target_time(time) for time in (1, 2, 3)] == [14, 12, 10]
    assert backwards.swapped().target_time(14) == 1
    moment = replace(SEGMENT, query_end=1.0)
    assert moment.target_time(1.0) == 10


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"query_end": 0.5}, r"must not end before it starts, got \[1\.0, 0\.5\] s of the query and \[10\.0"),
        ({"target_end": 9.0}, r"must not end before it starts, .* and \[10\.0, 9\.0\] s of the target"),
        ({"score": 1.01}, r"score of a segment must be in \[0, 1\], got 1\.01"),
        ({"score": float("nan")}, "score must be a number, got nan"),
        ({"turned": 45}, "turned must be 0, 90, 180 or 270, got 45"),
        ({"speed": 0.0}, r"speed of a segment must be above 0, got 0\.0"),
        ({"query_box": (0.5, 0.0, 0.5, 1.0)}, r"query_box must be left < right and top < bottom in \[0, 1\]"),
        (
            {"target_box": (0.0, 0.0, 1.0, 1.1)},
            r"target_box must be left < right and top < bottom in \[0, 1\]",
        ),
    ],
)
def test_invalid_segments_are_refused(facts: dict[str, object], message: str) -> None:
    given = {"query_start": 1.0, "query_end": 3.0, "target_start": 10.0, "target_end": 14.0, "score": 0.9}
    with pytest.raises(InvalidArgumentError, match=message):
        Segment(**{**given, **facts})  # type: ignore[arg-type]
