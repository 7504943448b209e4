"""Classify shots as critical by the trend of their curve, which rises if the shot ends with an event."""

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

"""Values from `trend_numbers` that each test uses."""

# A trend over fewer windows is due to chance.
_MIN_WINDOWS = 4


def trend_numbers(curve: NDArray[np.floating]) -> dict[str, float] | None:
    """Compute trend statistics of c(1 < n < N_o), the curve of the shot's own windows.

    ``tau``: Mann-Kendall's S divided by the number of pairs, in [-1, 1]; ``rise``: Theil-Sen slope times the length,
    the overall rise of the curve; ``end``: its last quarter compared with its first half. Returns None for fewer than
    four values after the first one, which is 0 by definition.
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
    """Return the confidence that the shot with this curve is critical, in [0, 1]; critical from 0.5.

    Shots too short for a trend score 0.
    """
    numbers = trend_numbers(curve)
    return 0.0 if numbers is None else rule.confidence(numbers)


def rise_moment(curve: NDArray[np.floating]) -> int:
    """Return the window at which a rising curve finally leaves its calm part, where the event begins.

    This is the first window after which the curve stays above the midpoint between the median of its first half and
    that of its last quarter; the last window if the curve does not rise; 0 for an empty curve.
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
    """Fit the rule for increasing curves to labeled shots.

    Curves that are too short are left out. Whatever the labels, only a curve with at least one positive statistic can
    be critical.

    Raises:
        InvalidArgumentError: The test is unknown, the lengths differ, or there are no critical or no other shots.
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


# Rank tests and robust slopes for detecting an increasing curve.


# Longer series are evenly thinned to this many values, because comparing all pairs would be slow and add nothing.
_MAX_VALUES = 1500


@dataclass(frozen=True, slots=True)
class MannKendall:
    """Result of the Mann-Kendall trend test.

    Attributes:
        statistic: S, the number of increasing pairs minus the number of decreasing pairs.
        tau: S / number of pairs, in [-1, 1]; 1 if every value is above all earlier ones (Kendall's tau-a).
        z: S with continuity correction, divided by its standard deviation under no trend, corrected for ties. Values
            that depend on their neighbors, like those of overlapping windows, inflate |z|: compare it with a fitted
            threshold, not with a table.
        p_value: Probability of an S at least this high under no trend, for independent values.
    """

    statistic: int
    tau: float
    z: float
    p_value: float


def mann_kendall(values: NDArray[np.floating]) -> MannKendall:
    """One-sided Mann-Kendall test for an increasing trend.

    ``S = sum over i < j of sign(x_j - x_i)``; ``Var S = (n (n-1) (2n+5) - sum over ties of t (t-1) (2t+5)) / 18``;
    ``z = (S - sign S) / sqrt(Var S)``. Fewer than two values, or equal values, have no trend (tau 0, z 0, p 0.5).

    Args:
        values: [N] values in order of time; more than 1,500 are evenly thinned.

    Raises:
        InvalidArgumentError: The values are not a 1-D array of finite numbers.

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
    """Return the median slope over all pairs of values, which is robust against up to 29 % outliers.

    Args:
        values: [N] values in order of time; more than 1,500 are evenly thinned.
        times: [N] strictly increasing times; default: 0, 1, 2, ...

    Returns:
        Slope per unit of time; 0 for fewer than two values.

    Raises:
        InvalidArgumentError: The values are not a 1-D array of finite numbers, or the times do not match or do not
            increase.

    Source: Theil 1950; Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 1968.
    """
    t = np.arange(len(values), dtype=np.float64) if times is None else np.asarray(times, dtype=np.float64)
    if t.shape != np.shape(values) or (len(t) > 1 and not bool((np.diff(t) > 0).all())):
        raise InvalidArgumentError(
            f"times must have one entry per value and be strictly increasing, got {list(t.shape)} for "
            f"{list(np.shape(values))} values"
        )
    x, t = _series(values), _thin(t)
    if len(x) < 2:
        return 0.0
    apart = t - t[:, None]
    later = apart > 0
    return float(np.median((x - x[:, None])[later] / apart[later]))


def end_rise(values: NDArray[np.floating]) -> float:
    """Return the median of the last quarter minus the median of the first half; 0 for fewer than four values.

    This measures the rise of a series that is flat at first: the event of a critical clip is at its end, so most of the
    curve is flat and the slopes over all pairs are small.
    """
    x = _series(values)
    if len(x) < 4:
        return 0.0
    return float(np.median(x[-(len(x) // 4) :]) - np.median(x[: len(x) // 2]))


def _series(values: NDArray[np.floating]) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not bool(np.isfinite(x).all()):
        raise InvalidArgumentError(f"values must be a 1-D array [N] of finite numbers, got {list(x.shape)}")
    return _thin(x)


def _thin(x: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(x) <= _MAX_VALUES:
        return x
    return x[np.linspace(0, len(x) - 1, _MAX_VALUES).round().astype(np.int64)]
