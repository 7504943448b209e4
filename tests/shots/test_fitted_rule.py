"""Rules fitted on labeled numbers."""

from __future__ import annotations

import json

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots.fitted_rule import FittedRule, fit_rule


def test_probability_is_the_logistic_of_the_weighted_sum() -> None:
    rule = FittedRule({"a": 2.0, "b": -1.0}, bias=1.0, threshold=0.8)
    assert rule.probability({"a": 0.5, "b": 2.0, "c": 99.0}) == pytest.approx(0.5)
    assert rule.probability({"a": 1.0, "b": 0.0}) == pytest.approx(0.952574, abs=1e-6)
    # Below the threshold: half of p / threshold; above: from a half to one.
    assert rule.confidence({"a": 0.5, "b": 2.0}) == pytest.approx(0.5 * 0.5 / 0.8)
    assert rule.confidence({"a": 1.0, "b": 0.0}) == pytest.approx(0.5 + 0.5 * 0.152574 / 0.2, abs=1e-5)
    assert rule.probability({"a": 1e9, "b": 0.0}) == 1.0
    assert rule.probability({"a": -1e9, "b": 0.0}) == pytest.approx(0.0, abs=1e-12)


def test_fit_separates_what_can_be_separated_and_survives_json() -> None:
    examples = [{"x": value, "noise": 1.0} for value in (0.0, 0.1, 0.2, 0.9, 1.0, 1.1)]
    rule = fit_rule(examples, [False] * 3 + [True] * 3, names=["x", "noise"])
    answers = [rule.probability(example) >= rule.threshold for example in examples]
    assert answers == [False] * 3 + [True] * 3
    # A constant number says nothing, and the threshold lies half-way between .2 and .9.
    assert rule.weights["noise"] == pytest.approx(0.0)
    assert rule.confidence({"x": 0.55, "noise": 1.0}) == pytest.approx(0.5, abs=1e-6)
    assert FittedRule.from_dict(json.loads(json.dumps(rule.as_dict()))) == rule


def test_threshold_maximizes_f1_where_kinds_overlap() -> None:
    # In falling order: yes, yes, no, yes, no, no. F1 with 2 = .8, with 4 = 6/7: four are taken.
    values, labels = [6, 5, 4, 3, 2, 1], [True, True, False, True, False, False]
    rule = fit_rule([{"x": float(value)} for value in values], labels, names=["x"])
    assert [rule.probability({"x": float(value)}) >= rule.threshold for value in values] == [True] * 4 + [
        False
    ] * 2


def test_mistakes_are_told() -> None:
    with pytest.raises(InvalidArgumentError, match="2 examples and 2 labels, 2 of them positive"):
        fit_rule([{"x": 1.0}, {"x": 2.0}], [True, True], names=["x"])
    with pytest.raises(InvalidArgumentError, match="every example must have the number 'y'"):
        fit_rule([{"x": 1.0}, {"x": 2.0}], [True, False], names=["y"])
    with pytest.raises(InvalidArgumentError, match=r"numbers must include a, got b"):
        FittedRule({"a": 1.0}, 0.0).probability({"b": 1.0})
    with pytest.raises(InvalidArgumentError, match=r"threshold must be above 0 and at most 1, got 0\.0"):
        FittedRule({"a": 1.0}, 0.0, 0.0)
    with pytest.raises(InvalidArgumentError, match="weights, bias and threshold must be finite"):
        FittedRule({"a": float("nan")}, 0.0)
    with pytest.raises(InvalidArgumentError, match="a rule must have 'weights'"):
        FittedRule.from_dict({"bias": 1})
