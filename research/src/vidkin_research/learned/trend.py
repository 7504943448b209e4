"""Decide whether a shot is critical by the trend of its curve, which rises if the shot ends with an event."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.fitted_rule import FittedRule, fit_rule

TrendTest = Literal["mann-kendall", "theil-sen", "end-rise", "combined"]

TREND_TESTS: Mapping[TrendTest, tuple[str, ...]] = {
    "mann-kendall": ("tau",),
    "theil-sen": ("rise",),
    "end-rise": ("end",),
    "combined": ("tau", "rise", "end"),
}

"""The values of `trend_numbers` that each test uses."""

# A trend over fewer windows is due to chance.
_MIN_WINDOWS = 4


def trend_numbers(curve: NDArray[np.floating]) -> dict[str, float] | None:
    """Numbers for the trend of c(1 < n < N_o), the curve of the shot's own windows.

    ``tau``: Mann-Kendall's S over all pairs, in [-1, 1]; ``rise``: Theil-Sen slope times the length, the overall rise
    of the curve; ``end``: its last quarter compared with its first half. None for fewer than four values after the
    first, which is 0 by definition.
    """
    own = np.asarray(curve, dtype=np.float64)[1:]
    if len(own) < _MIN_WINDOWS:
        return None
    return {
        "tau": mann_kendall(own).tau,
        "rise": theil_sen(own) * (len(own) - 1),
        "end": end_rise(own),
    }


def critical_score(curve: NDArray[np.floating], rule: FittedRule) -> float:
    """Confidence that the shot with this curve is critical, in [0, 1]; at least 1/2 means yes.

    A shot too short for a trend scores 0.
    """
    numbers = trend_numbers(curve)
    return 0.0 if numbers is None else rule.confidence(numbers)


def rise_moment(curve: NDArray[np.floating]) -> int:
    """The window at which a rising curve finally leaves its calm part, where the event begins.

    The first value after which the curve stays above the midpoint between the medians of its first half and its last
    quarter; the last value if the curve does not rise. 0 for an empty curve.
    """
    own = np.asarray(curve, dtype=np.float64)
    if len(own) < _MIN_WINDOWS:
        return max(0, len(own) - 1)
    calm, final = np.median(own[: len(own) // 2]), np.median(own[-(len(own) // 4) :])
    below = np.flatnonzero(own <= (calm + final) / 2)
    return min(int(below[-1]) + 1 if len(below) else 0, len(own) - 1)


def fit_trend(
    curves: Sequence[NDArray[np.floating]], critical: Sequence[bool], *, test: TrendTest = "combined"
) -> FittedRule:
    """Fit the rule for what counts as increasing on the curves of labeled shots; curves that are too short are left
    out. Regardless of the labels, only a curve with at least one positive number can be critical.

    Raises:
        InvalidArgumentError: The test is unknown, lengths differ, or critical or other shots are missing.
    """
    check_choice("test", test, TREND_TESTS)
    if len(curves) != len(critical):
        raise InvalidArgumentError(
            f"critical must have one label per curve, got {len(critical)} for {len(curves)} curves"
        )
    examples = [(trend_numbers(curve), bool(label)) for curve, label in zip(curves, critical, strict=True)]
    usable = [(numbers, label) for numbers, label in examples if numbers is not None]
    missed = sum(label for numbers, label in examples if numbers is None)
    return fit_rule(
        [numbers for numbers, _ in usable],
        [label for _, label in usable],
        names=TREND_TESTS[test],
        missed=missed,
        rising=True,
    )


# Rank tests and robust slopes for whether the curve of a shot increases.


# All pairs of a longer series cost too much and add nothing, so it is thinned evenly to this many values.
_MAX_VALUES = 1500


@dataclass(frozen=True, slots=True)
class MannKendall:
    """Outcome of the Mann-Kendall trend test.

    Attributes:
        statistic: S, the number of pairs that increase minus those that decrease.
        tau: S / number of pairs, in [-1, 1]: 1 if every value is above all before it (Kendall's tau-a).
        z: S minus its continuity correction, over its standard deviation without a trend, ties accounted for. Values
            that depend on their neighbors, like those of overlapping windows, make |z| too large: compare it with a
            fitted threshold, not with a table.
        p_value: Probability of this S or a higher one without a trend, for independent values.
    """

    statistic: int
    tau: float
    z: float
    p_value: float


def mann_kendall(values: NDArray[np.floating]) -> MannKendall:
    """One-sided Mann-Kendall test for an increasing trend.

    ``S = sum over i < j of sign(x_j - x_i)``; ``Var S = (n (n-1) (2n+5) - sum over ties of t (t-1) (2t+5)) / 18``;
    ``z = (S - sign S) / sqrt(Var S)``. Fewer than two values, or equal ones, have no trend (tau 0, z 0, p 1/2).

    Args:
        values: [N], in order of time. Of more than 1,500 an even sample is taken.

    Raises:
        InvalidArgumentError: The values are not one row of finite numbers.

    Source: Mann, Nonparametric tests against trend, Econometrica 1945; Kendall, Rank correlation methods.
    """
    x = _series(values)
    n = len(x)
    pairs = n * (n - 1) // 2
    ties = np.unique(x, return_counts=True)[1].astype(np.float64)
    if len(ties) < 2:
        return MannKendall(0, 0.0, 0.0, 0.5)
    # [i, j]: whether value i is below value j. Above the diagonal j comes later, below it earlier.
    below = x[:, None] < x
    statistic = int(np.count_nonzero(np.triu(below)) - np.count_nonzero(np.tril(below)))
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    z = (statistic - math.copysign(1, statistic)) / math.sqrt(variance) if statistic else 0.0
    return MannKendall(statistic, statistic / pairs, z, 0.5 * math.erfc(z / math.sqrt(2)))


def theil_sen(values: NDArray[np.floating], times: NDArray[np.floating] | None = None) -> float:
    """Median slope of all pairs of values, robust against up to 29 % of outliers.

    Args:
        values: [N], in order of time. Of more than 1,500 an even sample is taken.
        times: [N], strictly increasing; default 0, 1, 2, ...

    Returns:
        Units of the values per unit of time; 0 for fewer than two values.

    Raises:
        InvalidArgumentError: The values are not one row of finite numbers, or the times do not match or do not
            increase.

    Source: Theil 1950; Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 1968.
    """
    t = np.arange(len(values), dtype=np.float64) if times is None else np.asarray(times, dtype=np.float64)
    if t.shape != np.shape(values) or (len(t) > 1 and not bool((np.diff(t) > 0).all())):
        raise InvalidArgumentError(
            f"times must be one per value and strictly increasing, got {list(t.shape)} for "
            f"{list(np.shape(values))} values"
        )
    x, t = _series(values), _thin(t)
    if len(x) < 2:
        return 0.0
    apart = t - t[:, None]
    later = apart > 0
    return float(np.median((x - x[:, None])[later] / apart[later]))


def end_rise(values: NDArray[np.floating]) -> float:
    """Median of the last quarter minus median of the first half: the rise of a series that is flat at first.

    The event of a critical clip is at its end, so most of the curve is flat and slopes of all pairs are small. 0 for
    fewer than four values.
    """
    x = _series(values)
    if len(x) < 4:
        return 0.0
    return float(np.median(x[-(len(x) // 4) :]) - np.median(x[: len(x) // 2]))


def _series(values: NDArray[np.floating]) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not bool(np.isfinite(x).all()):
        raise InvalidArgumentError(f"values must be one row [N] of finite numbers, got {list(x.shape)}")
    return _thin(x)


def _thin(x: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(x) <= _MAX_VALUES:
        return x
    return x[np.linspace(0, len(x) - 1, _MAX_VALUES).round().astype(np.int64)]
