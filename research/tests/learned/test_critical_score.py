"""Classification of critical shots by the trend of a curve."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.trend import (
    TREND_TESTS,
    TrendTest,
    critical_score,
    fit_trend,
    rise_moment,
    trend_numbers,
)


def curve(seed: int, *, event: bool) -> np.ndarray:
    """Noise around 0.1 after the first window, rising to 0.6 over the last third if there is an event."""
    values = 0.1 + 0.02 * np.random.default_rng(seed).normal(size=60)
    values[0] = 0.0
    if event:
        values[40:] += np.linspace(0, 0.5, 20)
    return values


def test_trend_of_a_line_equals_hand_computed_values() -> None:
    # The first value is ignored; the others rise by 1 at each of 7 steps.
    numbers = trend_numbers(np.arange(9.0))
    assert numbers == {"tau": 1.0, "rise": pytest.approx(7.0), "end": pytest.approx(7.5 - 2.5)}
    assert trend_numbers(np.arange(4.0)) is None


@pytest.mark.parametrize("test", TREND_TESTS)
def test_all_trend_tests_fitted_on_labeled_curves_separate_others(test: TrendTest) -> None:
    fit = [curve(seed, event=seed % 2 == 0) for seed in range(20)]
    rule = fit_trend(fit, [seed % 2 == 0 for seed in range(20)], test=test)
    assert set(rule.weights) == set(TREND_TESTS[test])
    scores = [critical_score(curve(seed, event=seed % 2 == 0), rule) for seed in range(100, 130)]
    assert [score >= 0.5 for score in scores] == [seed % 2 == 0 for seed in range(100, 130)]
    assert critical_score(np.zeros(3), rule) == 0.0


@pytest.mark.parametrize("test", TREND_TESTS)
def test_falling_or_flat_curves_are_never_critical(test: TrendTest) -> None:
    """Labels by which critical curves fall, and labels by which nearly every curve is critical."""
    curves = [curve(seed, event=seed % 2 == 0) for seed in range(20)]
    fall = 0.6 - np.linspace(0, 0.5, 60)
    for labels in ([seed % 2 == 1 for seed in range(20)], [seed != 1 for seed in range(20)]):
        rule = fit_trend(curves, labels, test=test)
        assert min(rule.weights.values()) >= 0
        assert critical_score(fall, rule) < 0.5
        assert critical_score(np.full(60, 0.3), rule) < 0.5


def test_event_starts_at_the_end_of_the_calm_part() -> None:
    # Starts at 0 and ends at 4: the seventh value is the first to stay above the midpoint 2; the earlier peak was
    # short.
    assert rise_moment(np.array([0.0, 0, 3, 0, 0, 0, 2.5, 3, 4, 4, 4, 4])) == 6
    assert rise_moment(np.zeros(8)) == 7
    assert rise_moment(np.zeros(0)) == 0
    assert rise_moment(np.array([1.0, 2.0])) == 1


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"test must be one of 'mann-kendall', .* got 'slope'",
    ):
        fit_trend([curve(0, event=True)], [True], test="slope")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="one label per curve, got 1 for 2 curves"):
        fit_trend([curve(0, event=True)] * 2, [True])
    with pytest.raises(InvalidArgumentError, match="2 examples and 2 labels, 2 of them positive"):
        fit_trend([curve(0, event=True)] * 2, [True, True])
