"""Scores of proposals by hand."""

from __future__ import annotations

import math

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots.cuts import ProposalScore


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_a_score_without_units_is_a_weighted_sum_of_standardized_numbers() -> None:
    score = ProposalScore(means=(1.0, 0.0), deviations=(2.0, 1.0), weights=(3.0, -1.0), bias=0.5)
    assert score.probability((2.0, 1.0)) == pytest.approx(logistic(3 * 0.5 - 1 + 0.5))


def test_numbers_far_out_count_as_four_deviations() -> None:
    score = ProposalScore(means=(0.0,), deviations=(1.0,), weights=(0.5,), bias=0.0)
    assert score.probability((1000.0,)) == pytest.approx(logistic(2))
    assert score.probability((-1000.0,)) == pytest.approx(logistic(-2))


def test_hidden_units_add_their_share() -> None:
    score = ProposalScore(
        means=(0.0,),
        deviations=(1.0,),
        weights=(0.0,),
        bias=1.0,
        units=((2.0, -1.0), (0.0, 9.0)),
        shares=(3.0, 1.0),
    )
    expected = 1 + 3 * math.tanh(2 * 0.25 - 1) + math.tanh(9)
    assert score.probability((0.25,)) == pytest.approx(logistic(expected))


def test_a_score_whose_parts_do_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="a score of 2 numbers must have as many means"):
        ProposalScore(means=(0.0,), deviations=(1.0, 1.0), weights=(1.0, 1.0), bias=0.0)
    with pytest.raises(InvalidArgumentError, match="3 weights of each hidden unit"):
        ProposalScore(
            means=(0.0, 0.0),
            deviations=(1.0, 1.0),
            weights=(1.0, 1.0),
            bias=0.0,
            units=((1.0, 1.0),),
            shares=(1.0,),
        )
