"""Rank tests and robust slopes that show whether the curve of a shot increases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

__all__ = ["MannKendall", "end_rise", "mann_kendall", "theil_sen"]

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
    # Slow to import, and only detectors that judge critical shots need it.
    from scipy.stats import kendalltau

    x = _series(values)
    n = len(x)
    pairs = n * (n - 1) // 2
    ties = np.unique(x, return_counts=True)[1].astype(np.float64)
    untied = pairs - float((ties * (ties - 1)).sum()) / 2
    if not untied:
        return MannKendall(0, 0.0, 0.0, 0.5)
    # SciPy has tau-b, S over the root of both counts of pairs.
    statistic = round(float(kendalltau(np.arange(n), x).statistic) * math.sqrt(pairs * untied))
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    z = (statistic - math.copysign(1, statistic)) / math.sqrt(variance) if statistic else 0.0
    return MannKendall(statistic, statistic / pairs, z, 0.5 * math.erfc(z / math.sqrt(2)))


def theil_sen(values: NDArray[np.floating], times: NDArray[np.floating] | None = None) -> float:
    """Median slope of all pairs of values: a line that up to 29 % of outliers do not turn.

    Args:
        values: [N], in order of time. Of more than 1,500 an even sample is taken.
        times: [N], strictly increasing; default 0, 1, 2, ...

    Returns:
        Units of the values per unit of time; 0 for fewer than two values.

    Raises:
        InvalidArgumentError: The values are not one row of finite numbers, or the times do not fit or increase.

    Source: Theil 1950; Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 1968.
    """
    t = np.arange(len(values), dtype=np.float64) if times is None else np.asarray(times, dtype=np.float64)
    if t.shape != np.shape(values) or (len(t) > 1 and not bool((np.diff(t) > 0).all())):
        raise InvalidArgumentError(
            f"times must be one per value and strictly increasing, got {list(t.shape)} for "
            f"{list(np.shape(values))} values"
        )
    from scipy.stats import theilslopes

    x, t = _series(values), _thin(t)
    return float(theilslopes(x, t).slope) if len(x) > 1 else 0.0


def end_rise(values: NDArray[np.floating]) -> float:
    """Median of the last quarter minus median of the first half: how much higher a series ends if it is flat at first.

    The event of a critical clip lies at its end, so most of the clip is flat; slopes of all pairs then show little
    of it. 0 for fewer than four values.
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
