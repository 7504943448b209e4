"""Trend tests on hand-computed series, and compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.trend import end_rise, mann_kendall, theil_sen


def test_strictly_increasing_series_has_tau_one() -> None:
    trend = mann_kendall(np.array([1.0, 2.0, 4.0, 8.0]))
    # 6 pairs, all rising; Var = 4*3*13/18 = 26/3; z = 5 / sqrt(26/3).
    assert (trend.statistic, trend.tau) == (6, 1.0)
    assert trend.z == pytest.approx(5 / np.sqrt(26 / 3))
    assert trend.p_value == pytest.approx(stats.norm.sf(trend.z))
    falling = mann_kendall(np.array([8.0, 4.0, 2.0, 1.0]))
    assert (falling.statistic, falling.tau, falling.z) == (-6, -1.0, pytest.approx(-trend.z))


def test_ties_reduce_the_variance() -> None:
    # Pairs: (1,1) 0, five others rise except (2,2) 0 -> S = 4; Var = (4*3*13 - 2*(2*1*9)) / 18 = 120/18.
    trend = mann_kendall(np.array([1.0, 1.0, 2.0, 2.0]))
    assert trend.statistic == 4
    assert trend.z == pytest.approx(3 / np.sqrt(120 / 18))


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0, 2.0]])
def test_constant_values_have_no_trend(values: list[float]) -> None:
    trend = mann_kendall(np.array(values))
    assert (trend.statistic, trend.tau, trend.z, trend.p_value) == (0, 0.0, 0.0, 0.5)


def test_trend_equals_scipy_on_noise() -> None:
    generator = np.random.default_rng(4)
    values = generator.normal(size=60) + 0.02 * np.arange(60)
    # Without ties tau-a equals SciPy's tau-b.
    assert mann_kendall(values).tau == pytest.approx(stats.kendalltau(np.arange(60), values).statistic)
    assert theil_sen(values) == pytest.approx(stats.theilslopes(values).slope)
    times = np.cumsum(generator.uniform(0.1, 1, 60))
    assert theil_sen(values, times) == pytest.approx(stats.theilslopes(values, times).slope)


@pytest.mark.parametrize("seed", range(4))
def test_trend_equals_scipy_with_ties(seed: int) -> None:
    """Recover the integer S from tau-b, which SciPy divides by the geometric mean of the untied pair counts."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 9, 50 + 30 * seed).astype(float)
    ties = np.unique(values, return_counts=True)[1]
    pairs = len(values) * (len(values) - 1) / 2
    untied = pairs - (ties * (ties - 1)).sum() / 2
    tau_b = stats.kendalltau(np.arange(len(values)), values).statistic
    assert mann_kendall(values).statistic == round(tau_b * np.sqrt(pairs * untied))
    assert mann_kendall(values).p_value == pytest.approx(stats.norm.sf(mann_kendall(values).z))
    times = np.sort(generator.choice(1000, len(values), replace=False)).astype(float)
    assert theil_sen(values, times) == stats.theilslopes(values, times).slope
    assert theil_sen(values) == stats.theilslopes(values).slope


def test_outlier_does_not_reverse_the_slope() -> None:
    values = 0.5 * np.arange(20)
    values[7] = 100.0
    assert theil_sen(values) == pytest.approx(0.5)
    assert theil_sen(np.array([1.0])) == 0.0


def test_subsampling_long_series_preserves_the_trend() -> None:
    values = np.arange(20_000) * 0.25
    assert mann_kendall(values).tau == 1.0
    assert theil_sen(values) == pytest.approx(0.25)


def test_end_rise_detects_a_step_at_the_end() -> None:
    # First half 1, last quarter 3.
    assert end_rise(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0])) == 2.0
    assert end_rise(np.array([1.0, 9.0])) == 0.0


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a 1-D array \[N\] of finite numbers, got \[2, 2\]"):
        mann_kendall(np.zeros((2, 2)))
    with pytest.raises(InvalidArgumentError, match="finite numbers"):
        end_rise(np.array([1.0, np.nan]))
    with pytest.raises(InvalidArgumentError, match=r"times must have one entry per value .* got \[2\] for \[3\]"):
        theil_sen(np.zeros(3), np.array([0.0, 1.0]))
    with pytest.raises(InvalidArgumentError, match="strictly increasing"):
        theil_sen(np.zeros(3), np.array([0.0, 1.0, 1.0]))
