"""Lines are found at the speed and offset of shared footage, and do not bridge other footage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.match import AlignedLine, find_lines

# Each frame is similar to those within a second of it.
_WIDTH = 0.6


def times(seconds: float, rate: float = 2.0) -> NDArray[np.float64]:
    return np.arange(0, seconds, 1 / rate)


def make_evidence(
    query: NDArray[np.float64], target: NDArray[np.float64], *parts: tuple[float, float, float, float], seed: int = 0
) -> NDArray[np.float32]:
    """Evidence map in which each part (query start, query end, target start, speed) is shown."""
    random = np.random.default_rng(seed)
    values = -0.25 + 0.08 * random.standard_normal((len(query), len(target)))
    for start, end, begin, speed in parts:
        at = begin + speed * (query - start)
        near = 0.85 * np.exp(-((at[:, None] - target[None]) ** 2) / (2 * _WIDTH**2)) - 0.25
        rows = (query >= start) & (query < end)
        values[rows] = np.maximum(values[rows], near[rows])
    return values.astype(np.float32)


def ends(line: AlignedLine, query: NDArray[np.float64]) -> tuple[float, float]:
    return float(query[line.rows[0]]), float(query[line.rows[-1]])


@pytest.mark.parametrize("speed", [0.5, 0.8, 0.96, 1.0, 1.05, 1.25, 1.6, 2.0, 2.5])
@pytest.mark.parametrize("offset", [0.0, 3.2, 17.9])
def test_speed_and_offset_of_an_excerpt_are_found(speed: float, offset: float) -> None:
    query, target = times(24), times(80)
    (line, *_) = find_lines(make_evidence(query, target, (0, 24, offset, speed)), query, target)
    assert line.speed == pytest.approx(speed, rel=0.01)
    assert line.offset == pytest.approx(offset, abs=0.15)
    assert len(line) >= len(query) - 2


@pytest.mark.parametrize("seed", range(20))
def test_unedited_footage_has_a_speed_of_exactly_one(seed: int) -> None:
    query, target = times(9, 2.0), times(40, 2.0) + 0.23
    (line, *_) = find_lines(make_evidence(query, target, (0, 9, 11.37, 1.0), seed=seed), query, target)
    assert line.speed == 1.0


@pytest.mark.parametrize("rates", [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0)])
def test_both_sides_may_be_sampled_at_different_rates(rates: tuple[float, float]) -> None:
    query, target = times(20, rates[0]), times(60, rates[1])
    (line, *_) = find_lines(make_evidence(query, target, (0, 20, 7.4, 1.0)), query, target)
    assert line.speed == 1.0
    assert line.offset == pytest.approx(7.4, abs=0.3)


@pytest.mark.parametrize("gap", [2.0, 3.0, 5.0])
def test_footage_between_two_shared_parts_is_not_bridged(gap: float) -> None:
    query, target = times(20 + gap), times(60)
    found = find_lines(
        make_evidence(query, target, (0, 10, 5, 1.0), (10 + gap, 20 + gap, 15 + gap, 1.0)), query, target
    )
    spans = sorted(ends(line, query) for line in found[:2])
    assert spans[0][1] == pytest.approx(10, abs=1.0)
    assert spans[1][0] == pytest.approx(10 + gap, abs=1.0)


def test_reordered_parts_are_separate_lines() -> None:
    query, target = times(30), times(50)
    parts = (0, 10, 30, 1.0), (10, 20, 5, 1.0), (20, 30, 18, 1.0)
    found = find_lines(make_evidence(query, target, *parts), query, target)
    assert sorted(round(line.offset) for line in found[:3]) == [-5, -2, 30]


def test_loop_is_found_as_often_as_it_plays() -> None:
    query, target = times(6), times(36)
    parts = [(0, 6, 6.0 * turn, 1.0) for turn in range(6)]
    found = find_lines(make_evidence(query, target, *parts), query, target)
    assert sorted(round(line.offset / 6) for line in found) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("turned", [False, True], ids=["of the query", "of the target"])
def test_repeated_footage_has_a_separate_line_but_a_similar_scene_has_not(turned: bool) -> None:
    short, long = times(8), times(60)
    both = make_evidence(short, long, (0, 8, 10, 1.0), (0, 8, 40, 1.0))
    alike = both.copy()
    alike[:, 70:] = np.where(alike[:, 70:] > 0, 0.4 * alike[:, 70:], alike[:, 70:])
    sides = (long, short) if turned else (short, long)
    assert len(find_lines(both.T.copy() if turned else both, *sides)) == 2
    (line,) = find_lines(alike.T.copy() if turned else alike, *sides)
    assert abs(line.offset) == pytest.approx(10, abs=0.3)


def test_unrelated_videos_have_hardly_any_evidence() -> None:
    query, target = times(20), times(60)
    assert all(line.evidence < 0.1 for line in find_lines(make_evidence(query, target), query, target))


def test_still_footage_is_aligned_at_speed_one() -> None:
    query, target = times(10), times(30)
    values = np.full((len(query), len(target)), -0.3, np.float32)
    values[:, 20:50] = 0.6
    (line, *_) = find_lines(values, query, target)
    assert line.speed == 1.0
    assert len(line) == len(query)


def test_single_frame_is_found_at_its_time() -> None:
    query, target = times(0.5), times(30)
    values = make_evidence(query, target, (0, 0.5, 12.0, 1.0))
    (line, *_) = find_lines(values, query, target)
    assert target[line.columns[0]] == 12.0


def test_maps_without_frames_have_no_lines() -> None:
    assert find_lines(np.zeros((0, 5), np.float32), times(0), times(2.5)) == []
