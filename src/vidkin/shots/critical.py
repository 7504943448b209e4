"""Decide whether a shot is critical by the trend of its curve, which rises if an event lies at the end of the shot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.registry import import_part
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError

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
    out. Whatever the labels say, only a curve that rises by one of its numbers can be critical.

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


# A yes/no decision from a few numbers, fitted on labeled examples and stored beside a model.


@dataclass(frozen=True, slots=True)
class FittedRule:
    """Logistic regression on named numbers with a decision threshold.

    ``p = 1 / (1 + exp(-(bias + sum of weight * number)))``; the answer is yes if ``p >= threshold``.

    Attributes:
        weights: Weights by name of the number, in the numbers' own units.
        bias: Constant added to the weighted sum.
        threshold: Least probability that means yes, in (0, 1].
    """

    weights: Mapping[str, float]
    bias: float
    threshold: float = 0.5

    def __post_init__(self) -> None:
        values = (*self.weights.values(), self.bias, self.threshold)
        if not self.weights or not all(math.isfinite(value) for value in values):
            raise InvalidArgumentError(
                f"weights, bias and threshold must be finite, with at least one weight, got {self}"
            )
        if not 0 < self.threshold <= 1:
            raise InvalidArgumentError(f"threshold must be above 0 and at most 1, got {self.threshold}")

    def probability(self, numbers: Mapping[str, float]) -> float:
        """The probability p for one example; numbers that the rule does not use are ignored.

        Raises:
            InvalidArgumentError: A required number is missing.
        """
        missing = sorted(set(self.weights) - set(numbers))
        if missing:
            raise InvalidArgumentError(
                f"numbers must include {', '.join(missing)}, got {', '.join(sorted(numbers)) or 'none'}"
            )
        total = self.bias + sum(weight * numbers[name] for name, weight in self.weights.items())
        # exp of a large number overflows on the side where p is 0 or 1 anyway.
        return 1 / (1 + math.exp(-min(max(total, -500.0), 500.0)))

    def confidence(self, numbers: Mapping[str, float]) -> float:
        """p rescaled so that the threshold is at 1/2: above 1/2 means yes, 1 is certain."""
        p = self.probability(numbers)
        if p >= self.threshold:
            return 1.0 if self.threshold == 1 else 0.5 + 0.5 * (p - self.threshold) / (1 - self.threshold)
        return 0.5 * p / self.threshold

    def as_dict(self) -> dict[str, Any]:
        """The rule as JSON values, which `from_dict` reads."""
        return {"weights": dict(self.weights), "bias": self.bias, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FittedRule:
        """The rule from the values returned by `as_dict`.

        Raises:
            InvalidArgumentError: A part is missing or not a number.
        """
        try:
            weights = {str(name): float(value) for name, value in values["weights"].items()}
            return cls(weights, float(values["bias"]), float(values["threshold"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(
                f"a rule must have 'weights' (name: number), 'bias' and 'threshold', got {values!r}: {error}"
            ) from error


def fit_rule(
    examples: Sequence[Mapping[str, float]],
    labels: Sequence[bool],
    *,
    names: Sequence[str],
    missed: int = 0,
    strength: float = 1.0,
    rising: bool = False,
) -> FittedRule:
    """Fit a rule: weights from regularized logistic regression, and the threshold with the highest F1.

    Numbers are brought to a common scale for the fit, so their units do not matter. Among thresholds with equal F1,
    the middle of the widest gap is used.

    Args:
        examples: Numbers of each example, by name.
        labels: Whether each example is a yes.
        names: The numbers to use.
        missed: Number of positives that are not among the examples; F1 counts them as missed at any threshold.
        strength: Inverse strength of the L2 penalty (C of scikit-learn).
        rising: Whether a higher number always speaks for yes, and only numbers above 0 can mean it: weights are at
            least 0 (a number that the fit would turn around gets weight 0), and the threshold is above the probability
            where all numbers are 0. If all numbers speak against the labels, the answer is always no.

    Raises:
        InvalidArgumentError: Positive or negative examples are missing, or an example lacks a number.
    """
    positive = np.asarray(labels, dtype=bool)
    if len(examples) != len(positive) or positive.all() or not positive.any():
        raise InvalidArgumentError(
            f"examples must be both positive and negative, with one label each, got {len(examples)} examples and "
            f"{len(positive)} labels, {int(positive.sum())} of them positive"
        )
    try:
        table = np.array([[float(example[name]) for name in names] for example in examples])
    except KeyError as error:
        raise InvalidArgumentError(f"every example must have the number {error}") from None
    weights, bias = _logistic(table, positive, strength, rising=rising)
    if not weights.any():
        return FittedRule(dict(zip(names, weights.tolist(), strict=True)), 0.0, 1.0)
    rule = FittedRule(dict(zip(names, weights.tolist(), strict=True)), bias)
    chances = np.array([rule.probability(example) for example in examples])
    # The threshold with the highest F1; in log-odds the middle between the values on its two sides.
    order = np.argsort(-chances, kind="stable")
    ranked, right = chances[order], positive[order].cumsum()
    last = np.append(np.diff(ranked) < 0, True)  # only where a run of equal values ends
    f1 = 2 * right / (np.arange(1, len(ranked) + 1) + int(positive.sum()) + missed)
    logits = np.log(np.clip(ranked, 1e-12, 1 - 1e-12)) - np.log1p(-np.clip(ranked, 1e-12, 1 - 1e-12))
    below = np.append(logits[1:], logits[-1] - 1.0)
    if rising:
        # What is no higher than without any rise cannot be a yes.
        last &= logits > bias
        below = np.maximum(below, bias)
        if not last.any():
            return FittedRule(rule.weights, bias, 1.0)
    gaps = np.where(last & (f1 >= np.where(last, f1, 0).max() - 1e-12), logits - below, -1.0)
    place = int(gaps.argmax())
    return FittedRule(rule.weights, bias, float(1 / (1 + np.exp(-(logits[place] + below[place]) / 2))))


def _logistic(
    table: NDArray[np.float64], positive: NDArray[np.bool_], strength: float, *, rising: bool
) -> tuple[NDArray[np.float64], float]:
    """Weights [n] and bias of the numbers [N, n], in their own units; with ``rising``, without weights below 0."""
    linear = import_part("sklearn.linear_model", extra="train")
    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale == 0] = 1.0
    weights = np.zeros(table.shape[1])
    used = np.arange(table.shape[1])
    while len(used):
        model = linear.LogisticRegression(C=strength, class_weight="balanced", max_iter=1000)
        model.fit(((table - mean) / scale)[:, used], positive)
        found = model.coef_[0]
        if not rising or found.min() >= 0:
            weights[used] = found / scale[used]
            return weights, float(model.intercept_[0] - (weights * mean).sum())
        used = np.delete(used, int(found.argmin()))
    return weights, 0.0


# Rank tests and robust slopes that show whether the curve of a shot increases.


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
    x, t = _series(values), _thin(t)
    if len(x) < 2:
        return 0.0
    apart = t - t[:, None]
    later = apart > 0
    return float(np.median((x - x[:, None])[later] / apart[later]))


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
