"""A yes/no from a few numbers, fitted on labelled examples and stored beside a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

__all__ = ["FittedRule", "fit_rule"]


@dataclass(frozen=True, slots=True)
class FittedRule:
    """Logistic regression on named numbers with a decision threshold.

    ``p = 1 / (1 + exp(-(bias + sum of weight * number)))``; the answer is yes where ``p >= threshold``.

    Attributes:
        weights: Weight of each number by its name, in the numbers' own units.
        bias: Added to the weighted sum.
        threshold: In (0, 1].
    """

    weights: Mapping[str, float]
    bias: float
    threshold: float = 0.5

    def __post_init__(self) -> None:
        values = (*self.weights.values(), self.bias, self.threshold)
        if not self.weights or not all(math.isfinite(value) for value in values):
            raise InvalidArgumentError(
                f"a rule needs weights, a bias and a threshold that are finite, given is {self}"
            )
        if not 0 < self.threshold <= 1:
            raise InvalidArgumentError(f"threshold is {self.threshold}, allowed is above 0 and up to 1")

    def probability(self, numbers: Mapping[str, float]) -> float:
        """p for one example; numbers that the rule does not name are ignored.

        Raises:
            InvalidArgumentError: A number that the rule needs is missing.
        """
        missing = sorted(set(self.weights) - set(numbers))
        if missing:
            raise InvalidArgumentError(f"the rule needs {missing}, given are {sorted(numbers)}")
        total = self.bias + sum(weight * numbers[name] for name, weight in self.weights.items())
        # exp of a large number overflows on the side where p is 0 or 1 anyway.
        return 1 / (1 + math.exp(-min(max(total, -500.0), 500.0)))

    def confidence(self, numbers: Mapping[str, float]) -> float:
        """p moved so that the threshold is at 1/2: above 1/2 is yes, 1 is certain."""
        p = self.probability(numbers)
        if p >= self.threshold:
            return 1.0 if self.threshold == 1 else 0.5 + 0.5 * (p - self.threshold) / (1 - self.threshold)
        return 0.5 * p / self.threshold

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `from_dict` reads it."""
        return {"weights": dict(self.weights), "bias": self.bias, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FittedRule:
        """The rule that `as_dict` gave.

        Raises:
            InvalidArgumentError: A part is missing or no number.
        """
        try:
            weights = {str(name): float(value) for name, value in values["weights"].items()}
            return cls(weights, float(values["bias"]), float(values["threshold"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(
                f"a rule has 'weights' (name: number), 'bias' and 'threshold', given is {values!r}: {error}"
            ) from error


def fit_rule(
    examples: Sequence[Mapping[str, float]],
    labels: Sequence[bool],
    *,
    names: Sequence[str],
    missed: int = 0,
    strength: float = 1.0,
) -> FittedRule:
    """Fit the weights by regularised logistic regression, then the threshold with the highest F1.

    Numbers are brought to a common scale for the fit, so their units do not matter. Of thresholds with equal F1
    the middle of the widest gap is taken.

    Args:
        examples: One mapping of numbers each.
        labels: Which of them are yes.
        names: The numbers to use.
        missed: Positives that are not among the examples; they count as missed in F1 whatever the threshold.
        strength: Inverse strength of the L2 penalty (C of scikit-learn).

    Raises:
        InvalidArgumentError: The examples are not of both kinds, or lack a number.
    """
    wanted = np.asarray(labels, dtype=bool)
    if len(examples) != len(wanted) or wanted.all() or not wanted.any():
        raise InvalidArgumentError(
            f"a rule is fitted on examples of both kinds, given are {len(examples)} examples and "
            f"{len(wanted)} labels, {int(wanted.sum())} of them positive"
        )
    try:
        table = np.array([[float(example[name]) for name in names] for example in examples])
    except KeyError as error:
        raise InvalidArgumentError(f"an example lacks the number {error}") from None
    from sklearn.linear_model import LogisticRegression

    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale == 0] = 1.0
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=1000)
    model.fit((table - mean) / scale, wanted)
    weights = model.coef_[0] / scale
    bias = float(model.intercept_[0] - (weights * mean).sum())
    rule = FittedRule(dict(zip(names, weights.tolist(), strict=True)), bias)
    chances = np.array([rule.probability(example) for example in examples])
    return FittedRule(rule.weights, bias, _best_threshold(chances, wanted, missed))


def _best_threshold(chances: NDArray[np.float64], wanted: NDArray[np.bool_], missed: int) -> float:
    """The threshold with the highest F1; in log-odds the middle between the values on its two sides."""
    order = np.argsort(-chances, kind="stable")
    ranked, right = chances[order], wanted[order].cumsum()
    last = np.append(np.diff(ranked) < 0, True)  # only where a run of equal values ends
    f1 = 2 * right / (np.arange(1, len(ranked) + 1) + int(wanted.sum()) + missed)
    logits = np.log(np.clip(ranked, 1e-12, 1 - 1e-12)) - np.log1p(-np.clip(ranked, 1e-12, 1 - 1e-12))
    below = np.append(logits[1:], logits[-1] - 1.0)
    gaps = np.where(last & (f1 >= np.where(last, f1, 0).max() - 1e-12), logits - below, -1.0)
    place = int(gaps.argmax())
    return float(1 / (1 + np.exp(-(logits[place] + below[place]) / 2)))
