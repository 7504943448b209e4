"""Windows contain the footage that two long videos share, with a size that does not grow with their duration."""

from __future__ import annotations

import numpy as np
import pytest

from tests.match.footage import film
from vidkin.match import MapWindow, Sequenced, compare, find_windows, frame_map

LEAST = 0.05


def windows(query: Sequenced, target: Sequenced) -> tuple[MapWindow, ...]:
    similarity = frame_map(query.vectors, target.vectors, query.levels, target.levels)
    return find_windows(query, target, similarity, LEAST)


def cells(found: tuple[MapWindow, ...]) -> int:
    return sum((each.query_end - each.query_first) * (each.target_end - each.target_first) for each in found)


def hours(minutes: int, at: int, *stretch: tuple[int, float, float, float]) -> Sequenced:
    """Minutes of a film in which segments begin at the given seconds."""
    length = sum(int(each[2]) for each in stretch)
    return film((2, 0, at, 1), *stretch, (3, 0, minutes * 60 - at - length, 1))


def test_short_videos_are_compared_completely() -> None:
    query, target = film((1, 0, 30, 1)), film((2, 0, 60, 1))
    assert windows(query, target) == (MapWindow(0, 60, 0, 120),)


def test_cost_does_not_grow_with_the_duration() -> None:
    query = film((1, 40, 50, 1))
    compared, offsets = [], []
    for minutes in (30, 120):
        target = hours(minutes, 1000, (1, 0, 120, 1))
        found = windows(query, target)
        compared.append(cells(found))
        offsets.append(compare(query, target, found).lines[0].offset)
    assert offsets == pytest.approx([1040, 1040], abs=0.2)
    # At most four segments, each long enough for the highest speed on both sides.
    assert max(compared) <= 4 * len(query) * 2 * (2.6 * len(query) + 4)
    assert max(compared) < len(query) * 120 * 60 * 2 / 2.5


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.4, -1.0, -2.0])
def test_segment_is_inside_its_window_at_every_speed(speed: float) -> None:
    query = film((1, 10 if speed > 0 else 130, 50, speed))
    target = hours(30, 600, (1, 0, 140, 1))
    shown = 600 + (10 if speed > 0 else 130) + speed * query.times
    first, last = (int(np.searchsorted(target.times, time)) for time in (shown.min(), shown.max()))
    assert any(window.target_first <= first and last < window.target_end for window in windows(query, target))


def test_reordered_footage_has_a_window_for_each_position() -> None:
    query = film((1, 0, 60, 1))
    target = film((2, 0, 300, 1), (1, 30, 30, 1), (3, 0, 600, 1), (1, 0, 30, 1), (4, 0, 300, 1))
    for first, end in ((300, 330), (930, 960)):
        assert any(
            target.times[window.target_first] <= first and end - 1 <= target.times[window.target_end - 1]
            for window in windows(query, target)
        )


def test_unrelated_film_has_no_window() -> None:
    query = film((1, 0, 50, 1))
    similarity = np.zeros((len(query), 3600), np.float32)
    assert find_windows(query, hours(30, 600), similarity, LEAST) == ()
