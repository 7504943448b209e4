"""The published rule, the slope of the curve over full windows, on synthetic features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from research.tests.learned.test_windows_hard_cuts import mean_direction, scene

from vidkin_research.learned.detector import find_shots, fit_shot_rules
from vidkin_research.learned.fitted_rule import FittedRule
from vidkin_research.learned.windows import ShotWindows, find_slope_cuts, slope_examples

Array = NDArray[np.float32]


def film(seed: int, *lengths: int) -> tuple[Array, list[tuple[int, int]]]:
    parts = [scene(seed + place, length) for place, length in enumerate(lengths)]
    ends = np.cumsum(lengths).tolist()
    return np.concatenate(parts), list(zip([0, *ends[:-1]], ends, strict=True))


def test_slopes_only_use_full_windows_in_the_shot() -> None:
    features, _ = film(3, 20, 20)
    windows = ShotWindows(features, 8, mean_direction)
    found = dict(windows.slopes(0))
    # The first window of the shot ends at frame 7, so the first slope is that of the window ending at frame 8.
    assert min(found) == 8
    assert max(found) == 39
    # The first frame after the cut changes the slope more than any earlier frame.
    assert found[20]["jump"] > 1.5 * max(found[frame]["jump"] for frame in range(8, 20))
    assert set(found[20]) == {"jump"}
    assert list(windows.slopes(33)) == []


def test_cut_is_between_the_last_two_frames_of_the_window() -> None:
    features, _ = film(5, 30, 25, 40)
    windows = ShotWindows(features, 8, mean_direction)
    cuts = find_slope_cuts(windows, FittedRule({"jump": 1.0}, -1.2))
    assert [cut.frame for cut in cuts] == [30, 55]
    assert all(cut.confidence >= 0.5 for cut in cuts)


def test_cut_within_a_window_of_the_previous_cut_is_missed() -> None:
    features, shots = film(5, 30, 6, 40)
    windows = ShotWindows(features, 8, mean_direction)
    assert find_slope_cuts(windows, FittedRule({"jump": 1.0}, -1.2))[0].frame == 30
    examples, labels, missed = slope_examples(windows, shots)
    assert missed == 1  # the shot of six frames has no full window before its end
    assert sum(labels) == 1
    assert len(examples) == len(labels)


def test_rules_of_the_published_method_only_use_the_slope() -> None:
    films = [film(100 * number, 30, 25, 40) for number in range(1, 5)]
    # Frames between two shots are a gradual transition, which this rule does not support.
    labels = [shots if number else [(0, 28), (30, 55), (55, 95)] for number, (_, shots) in enumerate(films)]
    rules = fit_shot_rules(
        [features for features, _ in films],
        labels,
        mean_direction,
        window=8,
        rate=20.0,
        method="slope",
        critical=[[True, False, False]] * 4,
    )
    assert (rules.method, rules.rate, rules.gradual) == ("slope", 20.0, None)
    assert set(rules.cut.weights) == {"jump"}
    assert rules.critical is not None
    features, shots = film(900, 30, 25, 40)
    analysis = find_shots(features, mean_direction, rules)
    assert [frame for frame, _ in analysis.cuts] == [30, 55]
    assert list(analysis.stretches) == shots
    assert analysis.critical is not None
    assert len(analysis.critical) == 3
