"""Decide whether a shot is critical by the trend of its curve, which rises if an event lies at the end of the shot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.shots.fitted_rule import FittedRule, fit_rule
from vidkin.shots.trend import end_rise, mann_kendall, theil_sen

__all__ = ["TREND_TESTS", "TrendTest", "critical_score", "fit_trend", "rise_moment", "trend_numbers"]

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

    ``tau``: Mann-Kendall's S over all pairs, in [-1, 1]; ``rise``: Theil-Sen slope times the length, how much higher
    the curve ends overall; ``end``: its last quarter against its first half. None for fewer than four values after the
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
    """The certainty that the shot with this curve is critical, in [0, 1]; at least 1/2 means yes.

    A shot too short for a trend scores 0.
    """
    numbers = trend_numbers(curve)
    return 0.0 if numbers is None else rule.confidence(numbers)


def rise_moment(curve: NDArray[np.floating]) -> int:
    """The window at which a rising curve leaves its calm part for good, where the event begins.

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
    out.

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
    )
