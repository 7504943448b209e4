"""Times that jump by months."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from vidkin.similarity.alignment import shorten_gaps

from vidkin.similarity import Segment, align

SPEEDS = (0.5, 1.0, 2.0)


def jumping(count: int, jump: float) -> NDArray[np.floating]:
    """Half the frames a second apart, then a jump, then the others."""
    times = np.arange(float(count))
    times[count // 2 :] += jump
    return times


def test_ordinary_videos_keep_their_gaps() -> None:
    day = np.arange(float(86_400))
    for query, target in ((day, jumping(60, 3_600.0)), (day[:1], day[:1]), (day[:0], day)):
        times = shorten_gaps(query, target, SPEEDS)
        assert times.query is query
        assert times.target is target
        segment = Segment(0.0, 1.0, 2.0, 3.0, 0.9, 1.0)
        assert times.restore(segment) is segment


def test_only_long_gaps_are_shortened() -> None:
    query = np.array([0.0, 1.0, 2.0, 32.0, 1e7, 1e7 + 1])
    shortened = shorten_gaps(query, np.arange(4.0), SPEEDS)
    assert shortened.query.tolist() == [0.0, 1.0, 2.0, 32.0, 92.0, 93.0]
    assert shortened.target.tolist() == [0.0, 1.0, 2.0, 3.0]
    restored = shortened.restore(Segment(31.5, 93.5, 0.0, 2.0, 0.9, 1.0))
    assert (restored.query_start, restored.query_end) == (31.5, 1e7 + 1.5)
    assert (restored.target_start, restored.target_end, restored.score) == (0.0, 2.0, 0.9)


@pytest.mark.parametrize("jump", [1e7, 1e12])
def test_both_sides_of_a_jump_are_found(jump: float) -> None:
    """The target is 30 s of each side, one after the other."""
    query, target = jumping(60, jump), np.arange(float(60))
    similarity = np.full((60, 60), 0.1, np.float32)
    np.fill_diagonal(similarity, 1.0)
    segments = align(similarity, query, target)
    first, second = sorted(segments, key=lambda part: part.query_start)
    assert (first.query_start, first.query_end, first.target_start, first.target_end) == (
        0.0,
        30.0,
        0.0,
        30.0,
    )
    assert (second.query_start - jump, second.query_end - jump) == pytest.approx((30.0, 60.0), abs=1.0)
    assert (second.target_start, second.target_end) == pytest.approx((30.0, 60.0), abs=1.0)
    whole = align(similarity, query, query)
    assert (whole[0].query_start, whole[0].query_end) == (0.0, 60.0 + jump)
