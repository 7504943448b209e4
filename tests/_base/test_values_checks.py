"""Argument checks name the argument."""

from __future__ import annotations

import math

import pytest

from vidkin._base.values import (
    check_at_least,
    check_choice,
    check_not_negative,
    check_positive,
    check_range,
    check_share,
)
from vidkin.errors import InvalidArgumentError


def test_values_in_range_pass() -> None:
    check_choice("form", "a", ("a", "b"))
    check_choice("size", 2, iter([1, 2]))
    check_at_least(2, count=2, rate=2.5)
    check_not_negative(margin=0.0, gap=math.inf)
    check_positive(tau=1e-9)
    check_range(-1.0, 1.0)
    check_share(confidence=0.0, share=1.0)


def test_values_out_of_range_are_reported_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^form must be one of 'a', 'b', got 'c'$"):
        check_choice("form", "c", ("a", "b"))
    with pytest.raises(InvalidArgumentError, match=r"^count must be at least 2, got 1$"):
        check_at_least(2, rate=2.0, count=1)
    with pytest.raises(InvalidArgumentError, match=r"^margin must be at least 0, got -0\.1$"):
        check_not_negative(margin=-0.1)
    with pytest.raises(InvalidArgumentError, match=r"^tau must be above 0, got 0$"):
        check_positive(tau=0)
    with pytest.raises(InvalidArgumentError, match=r"^low must be below high, got 1\.0 and 1\.0$"):
        check_range(1.0, 1.0)
    with pytest.raises(InvalidArgumentError, match=r"^confidence must be in \[0, 1\], got 1\.5$"):
        check_share(confidence=1.5)


def test_nan_is_never_in_range() -> None:
    with pytest.raises(InvalidArgumentError, match="got nan"):
        check_not_negative(margin=math.nan)
    with pytest.raises(InvalidArgumentError, match="got nan"):
        check_positive(tau=math.nan)
    with pytest.raises(InvalidArgumentError, match="got nan"):
        check_share(share=math.nan)
