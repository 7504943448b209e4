"""From probabilities to cuts, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.detectors.band import TransitionThresholds, cuts_from_probabilities

HALF = TransitionThresholds(hard=0.5, gradual=0.5)


def made(length: int, hard: dict[int, float], gradual: dict[tuple[int, int], float]) -> np.ndarray:
    values = np.zeros((length, 2), np.float32)
    for frame, value in hard.items():
        values[frame, 0] = value
    for (first, last), value in gradual.items():
        values[first : last + 1, 1] = value
    return values


def found(values: np.ndarray, thresholds: TransitionThresholds = HALF) -> list[tuple[int, str, int | None, int | None]]:
    cuts = cuts_from_probabilities(values, thresholds)
    return [(cut.frame, cut.kind, cut.start_frame, cut.end_frame) for cut in cuts]


def test_peak_is_a_cut_with_its_probability() -> None:
    cuts = cuts_from_probabilities(made(50, {20: 0.9}, {}), HALF)
    assert [(cut.frame, cut.kind) for cut in cuts] == [(20, "hard")]
    assert cuts[0].confidence == pytest.approx(0.9)


def test_neighbors_of_a_stronger_peak_are_not_cuts() -> None:
    assert [cut[0] for cut in found(made(50, {20: 0.7, 21: 0.9, 22: 0.6, 25: 0.8}, {}))] == [21, 25]
    assert [cut[0] for cut in found(made(50, {20: 0.9, 21: 0.9}, {}))] == [20]


def test_run_of_high_probabilities_is_a_transition_with_its_interval() -> None:
    cuts = cuts_from_probabilities(made(60, {}, {(20, 31): 0.8}), HALF)
    assert found(made(60, {}, {(20, 31): 0.8})) == [(26, "gradual", 20, 31)]
    assert cuts[0].confidence == pytest.approx(0.8)


def test_small_gaps_are_closed_and_short_runs_dropped() -> None:
    assert found(made(60, {}, {(10, 14): 0.9, (17, 22): 0.9})) == [(16, "gradual", 10, 22)]
    assert found(made(60, {}, {(10, 11): 0.9})) == []
    assert len(found(made(60, {}, {(10, 14): 0.9, (19, 24): 0.9}))) == 2


def test_blurred_cut_stays_a_cut() -> None:
    assert found(made(60, {20: 0.7}, {(18, 22): 0.9})) == [(20, "hard", None, None)]


def test_weak_peak_inside_a_long_transition_is_part_of_it() -> None:
    assert found(made(80, {30: 0.7}, {(20, 40): 0.9})) == [(30, "gradual", 20, 40)]
    assert found(made(80, {30: 0.95}, {(20, 40): 0.9})) == [(30, "hard", None, None)]


def test_first_frame_is_never_a_cut() -> None:
    assert found(made(40, {0: 0.9}, {})) == []
    assert found(made(40, {}, {(0, 9): 0.9})) == [(5, "gradual", 0, 9)]


def test_no_frames_give_no_cuts() -> None:
    assert found(np.zeros((0, 2), np.float32)) == []
    assert found(np.zeros((1, 2), np.float32)) == []


def test_thresholds_are_probabilities() -> None:
    with pytest.raises(InvalidArgumentError, match="threshold hard must be above 0 and below 1, got 1"):
        TransitionThresholds(hard=1)
