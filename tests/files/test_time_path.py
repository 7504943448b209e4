"""Each time in a removed file is mapped to the kept file, guided by the matched segments and by frame similarity."""

from __future__ import annotations

import numpy as np
import pytest

from tests.files.films import segment
from vidkin.files.time_path import candidate_times, find_path, match_lines
from vidkin.similarity import Segment

TIMES = np.arange(0, 20, 0.2)


def follow(segments: list[Segment], shown: np.ndarray) -> np.ndarray:
    """Find the path if each candidate costs its distance from the true time."""
    lines = match_lines(segments, 20.0)
    candidates = candidate_times(lines, TIMES)
    costs = 1 + np.minimum(5.0, 5.0 * np.abs(candidates - shown[:, None])).astype(np.float32)
    return candidates[np.arange(len(TIMES)), find_path(costs, len(lines))]


@pytest.mark.parametrize("wrong", [-0.5, 0.0, 0.3, 1.4])
def test_match_that_is_off_by_a_second_is_corrected_by_the_frames(wrong: float) -> None:
    assert follow([segment(20.0, 3.0 + wrong)], TIMES + 3.0) == pytest.approx(TIMES + 3.0, abs=0.06)


def test_jump_between_segments_is_located_by_the_frames() -> None:
    shown = np.where(TIMES < 9.0, TIMES, TIMES + 7.0)
    found = follow([segment(7.0, 0.3), segment(9.0, 6.8, start=11.0)], shown)
    assert found == pytest.approx(shown, abs=0.06)


def test_time_missing_from_the_kept_file_does_not_bend_the_path() -> None:
    shown = TIMES.copy()
    shown[40:44] = 1000.0
    found = follow([segment(20.0)], shown)
    assert found == pytest.approx(TIMES, abs=0.06)


def test_expected_time_is_chosen_among_similar_ones() -> None:
    lines = match_lines([segment(20.0, 2.0)], 20.0)
    path = find_path(np.ones((len(TIMES), 31), np.float32), 1)
    assert candidate_times(lines, TIMES)[np.arange(len(TIMES)), path] == pytest.approx(TIMES + 2.0)


def test_lines_are_distinct_and_the_longest_comes_first() -> None:
    pieces = [segment(2.0, 5.0), segment(9.0, 0.0, start=3.0), segment(3.0, 0.1, start=13.0)]
    lines = match_lines(pieces, 20.0)
    assert [(line.offset, line.speed) for line in lines] == [(pytest.approx(0.0), 1.0), (pytest.approx(5.0), 1.0)]
    assert len(match_lines([segment(1.0, -float(n), start=float(n)) for n in range(20)], 20.0)) == 8


def test_speeds_close_to_normal_are_rounded() -> None:
    assert match_lines([segment(10.0, speed=1.04)], 20.0)[0].speed == 1.04
    assert match_lines([segment(10.0, speed=1.01)], 20.0)[0].speed == 1.0
