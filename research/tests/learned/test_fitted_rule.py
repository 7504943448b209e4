"""Rules fitted on labeled examples."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.fitted_rule import FittedRule, fit_rule


def test_probability_is_the_logistic_of_the_weighted_sum() -> None:
    rule = FittedRule({"a": 2.0, "b": -1.0}, bias=1.0, threshold=0.8)
    assert rule.probability({"a": 0.5, "b": 2.0, "c": 99.0}) == pytest.approx(0.5)
    assert rule.probability({"a": 1.0, "b": 0.0}) == pytest.approx(0.952574, abs=1e-6)
    # Below the threshold: half of p / threshold; above: from 0.5 to 1.
    assert rule.confidence({"a": 0.5, "b": 2.0}) == pytest.approx(0.5 * 0.5 / 0.8)
    assert rule.confidence({"a": 1.0, "b": 0.0}) == pytest.approx(0.5 + 0.5 * 0.152574 / 0.2, abs=1e-5)
    assert rule.probability({"a": 1e9, "b": 0.0}) == 1.0
    assert rule.probability({"a": -1e9, "b": 0.0}) == pytest.approx(0.0, abs=1e-12)


def test_fit_separates_separable_examples_and_survives_json() -> None:
    examples = [{"x": value, "noise": 1.0} for value in (0.0, 0.1, 0.2, 0.9, 1.0, 1.1)]
    rule = fit_rule(examples, [False] * 3 + [True] * 3, names=["x", "noise"])
    answers = [rule.probability(example) >= rule.threshold for example in examples]
    assert answers == [False] * 3 + [True] * 3
    # A constant input is uninformative, and the threshold is midway between 0.2 and 0.9.
    assert rule.weights["noise"] == pytest.approx(0.0)
    assert rule.confidence({"x": 0.55, "noise": 1.0}) == pytest.approx(0.5, abs=1e-6)
    assert FittedRule.from_dict(json.loads(json.dumps(rule.as_dict()))) == rule


def test_monotone_input_never_has_a_negative_weight() -> None:
    """Both inputs separate the classes, but the second one in the wrong direction."""
    examples = [{"x": value, "y": -value} for value in (-1.0, -0.5, 0.1, 0.4, 0.9, 1.0)]
    labels = [False] * 3 + [True] * 3
    assert fit_rule(examples, labels, names=["x", "y"]).weights["y"] < 0
    rule = fit_rule(examples, labels, names=["x", "y"], rising=True)
    assert (rule.weights["x"] > 0, rule.weights["y"]) == (True, 0.0)
    # The threshold is midway between 0.1 and 0.4.
    assert rule.confidence({"x": 0.25, "y": 0.0}) == pytest.approx(0.5, abs=1e-6)
    turned = fit_rule(examples, labels, names=["y"], rising=True)
    assert turned.confidence({"y": 5.0}) < 0.5


def test_threshold_maximizes_f1_if_classes_overlap() -> None:
    # In descending order: yes, yes, no, yes, no, no. F1 is 0.8 with 2 and 6/7 with 4, so four are accepted.
    values, labels = [6, 5, 4, 3, 2, 1], [True, True, False, True, False, False]
    rule = fit_rule([{"x": float(value)} for value in values], labels, names=["x"])
    assert [rule.probability({"x": float(value)}) >= rule.threshold for value in values] == [True] * 4 + [False] * 2


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    with pytest.raises(InvalidArgumentError, match="2 examples and 2 labels, 2 of them positive"):
        fit_rule([{"x": 1.0}, {"x": 2.0}], [True, True], names=["x"])
    with pytest.raises(InvalidArgumentError, match="every example must have the input 'y'"):
        fit_rule([{"x": 1.0}, {"x": 2.0}], [True, False], names=["y"])
    with pytest.raises(InvalidArgumentError, match=r"inputs must include a, got b"):
        FittedRule({"a": 1.0}, 0.0).probability({"b": 1.0})
    with pytest.raises(InvalidArgumentError, match=r"threshold must be above 0 and at most 1, got 0\.0"):
        FittedRule({"a": 1.0}, 0.0, 0.0)
    with pytest.raises(InvalidArgumentError, match="weights must be a dictionary, got"):
        FittedRule({"a": float("nan")}, 0.0)
    with pytest.raises(InvalidArgumentError, match="a rule must have 'weights'"):
        FittedRule.from_dict({"bias": 1})


def best_f1(values: list[float], labels: list[bool], missed: int) -> float:
    """The highest F1 of "at least this value" over all values, by exhaustive search."""
    scores = []
    for least in values:
        taken = [value >= least for value in values]
        right = sum(take and label for take, label in zip(taken, labels, strict=True))
        scores.append(2 * right / (sum(taken) + sum(labels) + missed))
    return max(scores)


@pytest.mark.parametrize("seed", range(12))
def test_threshold_has_the_best_f1(seed: int) -> None:
    """Random values with many ties, and additional positives that are not among the examples."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 8, 14).astype(float).tolist()
    labels = [bool(value + random.normal(0, 2) > 4) for value in values]
    labels[0], labels[1] = True, False
    missed = int(random.integers(0, 4))
    rule = fit_rule([{"x": value} for value in values], labels, names=["x"], missed=missed)
    answers = [rule.probability({"x": value}) >= rule.threshold for value in values]
    right = sum(answer and label for answer, label in zip(answers, labels, strict=True))
    f1 = 2 * right / (sum(answers) + sum(labels) + missed)
    sign = 1.0 if rule.weights["x"] >= 0 else -1.0
    assert f1 == pytest.approx(best_f1([sign * value for value in values], labels, missed))


def test_fit_is_independent_of_input_units() -> None:
    random = np.random.default_rng(3)
    numbers = random.normal(size=(20, 2))
    labels = [bool(row[0] + 0.5 * row[1] > 0) for row in numbers]
    plain = [{"a": float(a), "b": float(b)} for a, b in numbers]
    scaled = [{"a": 1000 * float(a) + 7, "b": float(b) / 50} for a, b in numbers]
    one, other = (fit_rule(examples, labels, names=["a", "b"]) for examples in (plain, scaled))
    for first, second in zip(plain, scaled, strict=True):
        assert one.probability(first) == pytest.approx(other.probability(second), abs=1e-4)
    assert one.weights["a"] == pytest.approx(1000 * other.weights["a"], rel=1e-3)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9, 1.0])
def test_confidence_increases_with_the_probability_and_is_one_half_at_the_threshold(
    threshold: float,
) -> None:
    rule = FittedRule({"x": 1.0}, 0.0, threshold)
    sure = [rule.confidence({"x": float(x)}) for x in np.linspace(-40, 40, 161)]
    assert sure == sorted(sure)
    assert sure[0] < 1e-6
    assert sure[-1] == pytest.approx(1.0)
    for x in np.linspace(-5, 5, 41):
        yes = rule.probability({"x": float(x)}) >= threshold
        assert (rule.confidence({"x": float(x)}) >= 0.5) is yes


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"weights": {}, "bias": 0, "threshold": 0.5},
        {"weights": [1], "bias": 0, "threshold": 0.5},
        {"weights": {"a": "much"}, "bias": 0, "threshold": 0.5},
        {"weights": {"a": 1}, "bias": None, "threshold": 0.5},
        {"weights": {"a": float("nan")}, "bias": 0, "threshold": 0.5},
        {"weights": {"a": 1}, "bias": 0, "threshold": 0},
    ],
)
def test_damaged_rules_are_rejected(table: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be|must have 'weights' \(name: number\), 'bias' and 'thresh"):
        FittedRule.from_dict(table)
