"""A binary decision from a few numbers, fitted to labeled examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.registry import import_part
from vidkin.errors import InvalidArgumentError


@check_constructor
@dataclass(frozen=True, slots=True)
class FittedRule:
    """Logistic regression on named inputs, with a decision threshold.

    ``p = 1 / (1 + exp(-(bias + sum of weight * input)))``; positive if ``p >= threshold``.

    Attributes:
        weights: Weights by input name, for inputs in their own units.
        bias: Constant added to the weighted sum.
        threshold: Minimum probability of a positive, in (0, 1].
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
        """Return the probability p for one example; unused inputs are ignored.

        Raises:
            InvalidArgumentError: A required input is missing.
        """
        missing = sorted(set(self.weights) - set(numbers))
        if missing:
            raise InvalidArgumentError(
                f"inputs must include {', '.join(missing)}, got {', '.join(sorted(numbers)) or 'none'}"
            )
        total = self.bias + sum(weight * numbers[name] for name, weight in self.weights.items())
        # Clip to avoid overflow in exp; p is 0 or 1 there anyway.
        return 1 / (1 + math.exp(-min(max(total, -500.0), 500.0)))

    def confidence(self, numbers: Mapping[str, float]) -> float:
        """Return p rescaled so that the threshold maps to 0.5: at least 0.5 is positive, and 1 is certain."""
        p = self.probability(numbers)
        if p >= self.threshold:
            return 1.0 if self.threshold == 1 else 0.5 + 0.5 * (p - self.threshold) / (1 - self.threshold)
        return 0.5 * p / self.threshold

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as JSON values for `from_dict`."""
        return {"weights": dict(self.weights), "bias": self.bias, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FittedRule:
        """Restore a rule from the values returned by `as_dict`.

        Raises:
            InvalidArgumentError: A value is missing or not a number.
        """
        try:
            weights = {str(name): float(value) for name, value in values["weights"].items()}
            return cls(weights, float(values["bias"]), float(values["threshold"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(
                f"a rule must have 'weights' (name: number), 'bias' and 'threshold', got {values!r}: {error}"
            ) from error


@check_arguments
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

    Inputs are standardized for the fit, so their units do not matter. Among thresholds with equal F1, the middle of the
    widest gap is used.

    Args:
        examples: Inputs of each example, by name.
        labels: Whether each example is positive.
        names: Names of the inputs to use.
        missed: Number of positives without an example; F1 counts them as missed at any threshold.
        strength: Inverse strength of the L2 penalty (C of scikit-learn).
        rising: Whether higher inputs must always favor positive, and all zeros must be negative: inputs with a negative
            weight are dropped, and the threshold is above the probability at zero. If all weights would be negative,
            the result is always negative.

    Raises:
        InvalidArgumentError: There are no positive or no negative examples, or an example lacks an input.
    """
    positive = np.asarray(labels, dtype=bool)
    if len(examples) != len(positive) or positive.all() or not positive.any():
        raise InvalidArgumentError(
            f"examples must include positives and negatives, with one label each, got {len(examples)} examples and "
            f"{len(positive)} labels, {int(positive.sum())} of them positive"
        )
    try:
        table = np.array([[float(example[name]) for name in names] for example in examples])
    except KeyError as error:
        raise InvalidArgumentError(f"every example must have the input {error}") from None
    weights, bias = _logistic(table, positive, strength, rising=rising)
    if not weights.any():
        return FittedRule(dict(zip(names, weights.tolist(), strict=True)), 0.0, 1.0)
    rule = FittedRule(dict(zip(names, weights.tolist(), strict=True)), bias)
    chances = np.array([rule.probability(example) for example in examples])
    # Choose the threshold with the highest F1, halfway between the neighboring values in log-odds.
    order = np.argsort(-chances, kind="stable")
    ranked, right = chances[order], positive[order].cumsum()
    last = np.append(np.diff(ranked) < 0, True)  # a threshold cannot separate equal values
    f1 = 2 * right / (np.arange(1, len(ranked) + 1) + int(positive.sum()) + missed)
    logits = np.log(np.clip(ranked, 1e-12, 1 - 1e-12)) - np.log1p(-np.clip(ranked, 1e-12, 1 - 1e-12))
    below = np.append(logits[1:], logits[-1] - 1.0)
    if rising:
        # The probability of a positive must exceed the probability at zero.
        last &= logits > bias
        below = np.maximum(below, bias)
        if not last.any():
            return FittedRule(rule.weights, bias, 1.0)
    gaps = np.where(last & (f1 >= np.where(last, f1, 0).max() - 1e-12), logits - below, -1.0)
    widest = int(gaps.argmax())
    return FittedRule(rule.weights, bias, float(1 / (1 + np.exp(-(logits[widest] + below[widest]) / 2))))


def _logistic(
    table: NDArray[np.float64], positive: NDArray[np.bool_], strength: float, *, rising: bool
) -> tuple[NDArray[np.float64], float]:
    """Fit weights [n] and a bias to inputs [N, n] in their own units; with ``rising``, no weight is negative."""
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
