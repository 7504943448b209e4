"""Windows hold what two long videos share, and their size does not grow with the length of the files."""

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
    """So many minutes of a film in which stretches begin at a second."""
    length = sum(int(each[2]) for each in stretch)
    return film((2, 0, at, 1), *stretch, (3, 0, minutes * 60 - at - length, 1))


def test_short_videos_are_compared_whole() -> None:
    query, target = film((1, 0, 30, 1)), film((2, 0, 60, 1))
    assert windows(query, target) == (MapWindow(0, 60, 0, 120),)


def test_the_cost_does_not_grow_with_the_length_of_the_file() -> None:
    query = film((1, 40, 50, 1))
    compared, offsets = [], []
    for minutes in (30, 120):
        target = hours(minutes, 1000, (1, 0, 120, 1))
        found = windows(query, target)
        compared.append(cells(found))
        offsets.append(compare(query, target, found).lines[0].offset)
    assert offsets == pytest.approx([1040, 1040], abs=0.2)
    # At most four stretches, each long enough for the highest speed on both sides.
    assert max(compared) <= 4 * len(query) * 2 * (2.6 * len(query) + 4)
    assert max(compared) < len(query) * 120 * 60 * 2 / 2.5


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.4, -1.0, -2.0])
def test_a_stretch_lies_in_its_window_at_every_speed(speed: float) -> None:
    query = film((1, 10 if speed > 0 else 130, 50, speed))
    target = hours(30, 600, (1, 0, 140, 1))
    shown = 600 + (10 if speed > 0 else 130) + speed * query.times
    first, last = (int(np.searchsorted(target.times, time)) for time in (shown.min(), shown.max()))
    assert any(window.target_first <= first and last < window.target_end for window in windows(query, target))


def test_footage_in_another_order_has_a_window_for_each_place() -> None:
    query = film((1, 0, 60, 1))
    target = film((2, 0, 300, 1), (1, 30, 30, 1), (3, 0, 600, 1), (1, 0, 30, 1), (4, 0, 300, 1))
    for first, end in ((300, 330), (930, 960)):
        assert any(
            target.times[window.target_first] <= first and end - 1 <= target.times[window.target_end - 1]
            for window in windows(query, target)
        )


def test_a_film_that_shares_nothing_has_no_window() -> None:
    query = film((1, 0, 50, 1))
    similarity = np.zeros((len(query), 3600), np.float32)
    assert find_windows(query, hours(30, 600), similarity, LEAST) == ()
