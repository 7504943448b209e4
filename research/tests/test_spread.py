"""Means and standard deviations."""

from __future__ import annotations

import pytest

from vidkin_research.spread import spread


def test_single_value_has_no_deviation() -> None:
    assert spread([0.5]) == {"mean": 0.5, "deviation": None}


def test_deviation_is_the_sample_standard_deviation() -> None:
    assert spread((1.0, 2.0, 3.0)) == {
        "mean": 2.0,
        "deviation": pytest.approx(1.0),
    }
